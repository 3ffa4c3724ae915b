// What is compiled ahead of time, all kernels of a file at once, is what the compiler makes of
// each.
#include <doctest/doctest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "devices/cpu/cpu_target.h"
#include "devices/cpu/jit/compiler.h"
#include "devices/cpu/jit/dispatch.h"
#include "devices/cpu/jit/kernel_format.h"
#include "devices/cuda/compiled_kernel.h"
#include "kernels/metal/entries.h"

using namespace holdfast;

TEST_CASE("images are what the compiler makes of a kernel by itself") {
  jit::Compiler& compiler = jit::default_compiler();
  jit::CompileOptions for_cpu;
  for_cpu.instruction_set = jit::host_instruction_set();
  const std::string cpu_image = jit::image_name(for_cpu.instruction_set);
  const std::string gpu_image = cuda::image_name(80);
  for (const kernels::metal::EmbeddedSource& file : kernels::metal::embedded_sources()) {
    exec::KernelImages& images = kernels::metal::images_of(file.name);
    const std::vector<std::string> entries = images.entries(cpu_image);
    REQUIRE(!entries.empty());
    // In the long suite also the last one.
    const bool is_long = std::getenv("HOLDFAST_TEST_LONG") != nullptr;
    for (const std::string& entry : {entries.front(), is_long ? entries.back() : entries.front()}) {
      CAPTURE(entry);
      msl::KernelSource source;
      source.kernel = source.entry = entry;
      source.text = file.text;
      const jit::CompiledKernel kernel = compiler.compile(source, for_cpu);
      CHECK((jit::to_bytes(kernel) == images.find(cpu_image, entry)));
      cuda::PtxOptions for_gpu;
      for_gpu.target = 80;
      const std::vector<cuda::PtxOptions> ways = cuda::image_options(for_gpu, true);
      CHECK((cuda::to_images(ways, compiler.compile_to_ptx(source, ways)).to_bytes() ==
             images.find(gpu_image, entry)));
    }
  }
}
