#include <holdfast/holdfast.h>

#include <cstdio>

#include "benchmarks/machine_info.h"
#include "exec/disk_cache.h"
#include "kernels/cpu/instruction_set.h"
#include "tools/holdfast/commands.h"

namespace holdfast::tool {
namespace {

double gibibytes(size_t bytes) { return static_cast<double>(bytes) / (1 << 30); }

}  // namespace

int run_info(Arguments arguments) {
  if (!arguments.empty()) throw UsageError("unexpected argument \"" + arguments[0] + "\"");
  bench::MachineInfo machine = bench::machine_info();
  std::string built;
  for (kernels::cpu::InstructionSet set : kernels::cpu::available_instruction_sets()) {
    built += (built.empty() ? "" : ", ") + std::string(kernels::cpu::instruction_set_name(set));
  }
  bool is_gpu = default_device() == Device::gpu;
  std::printf("holdfast         %s, built with %s\n", HOLDFAST_VERSION, machine.compiler.c_str());
  std::printf("processor        %s\n", machine.processor.c_str());
  std::printf("threads          %d of %d that this process may use\n", machine.library_threads,
              machine.threads);
  std::printf("kernels          %s (this processor runs: %s)\n", machine.kernels, built.c_str());
  std::printf("default device   %s\n",
              is_gpu ? "gpu (the CPU device under the GPU's rules)" : "cpu");
  std::string folder = exec::DiskCache::default_folder();
  std::printf("custom kernels   %s\n",
              metal::is_available() ? "yes" : "no: built without clang and LLVM 19");
  std::printf("kernel cache     %s\n", folder.empty() ? "in memory only" : folder.c_str());
  std::printf("memory           %.1f GiB that this process may use, limit of arrays %.1f GiB\n",
              gibibytes(machine.memory_bytes), gibibytes(get_memory_limit()));
  return 0;
}

}  // namespace holdfast::tool
