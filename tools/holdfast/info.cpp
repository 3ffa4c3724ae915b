#include <holdfast/holdfast.h>

#include <cstdio>

#include "base/environment.h"
#include "benchmarks/machine_info.h"
#include "devices/cuda/gpu.h"
#include "exec/disk_cache.h"
#include "kernels/cpu/instruction_set.h"
#include "tools/holdfast/commands.h"

namespace holdfast::tool {
namespace {

double gibibytes(size_t bytes) { return static_cast<double>(bytes) / (1 << 30); }

// What Device::gpu is.
std::string describe_gpu() {
  const environment::Gpu wanted = environment::settings().gpu;
  if (wanted == environment::Gpu::simulated) return "simulated, on the processor's cores";
  const bool is_optional = wanted != environment::Gpu::cuda;
  if (wanted == environment::Gpu::native || (is_optional && !cuda::Driver::may_be_there()))
    return "none: the processor's cores under a GPU's rules";
  try {
    const cuda::Gpu& gpu = cuda::gpu_of_system();
    int version = 0;
    gpu.driver().driver_version(&version);
    char text[400];
    std::snprintf(text, sizeof(text), "%s, sm_%u, %.1f GiB, driver of CUDA %d.%d",
                  gpu.name().c_str(), gpu.architecture(), gibibytes(gpu.memory_bytes()),
                  version / 1000, version % 1000 / 10);
    return text;
  } catch (const std::exception& error) {
    return error.what();
  }
}

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
  std::printf("default device   %s\n", is_gpu ? "gpu" : "cpu");
  std::printf("gpu              %s\n", describe_gpu().c_str());
  std::string folder = exec::DiskCache::default_folder();
  std::printf("custom kernels   %s\n",
              metal::is_available() ? "yes" : "no: built without clang and LLVM 19");
  std::printf("kernel cache     %s\n", folder.empty() ? "in memory only" : folder.c_str());
  std::printf("memory           %.1f GiB that this process may use, limit of arrays %.1f GiB\n",
              gibibytes(machine.memory_bytes), gibibytes(get_memory_limit()));
  return 0;
}

}  // namespace holdfast::tool
