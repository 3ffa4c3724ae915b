// The fake GPU as the GPU of the process, and kernels of sources for it.
#include <atomic>
#include <cstring>
#include <stdexcept>

#include "base/environment.h"
#include "cuda/fake_driver.h"
#include "devices/cpu/cpu_target.h"
#include "devices/cpu/jit/dispatch.h"
#include "devices/cpu/jit/kernel_abi.h"
#include "devices/cuda/cuda_target.h"
#include "devices/cuda/gpu_device.h"
#include "devices/cuda/memory.h"
#include "exec/runtime.h"
#include "kernels/metal/metal_backend.h"

namespace holdfast::testing {
namespace {

// What the CPU's kernel says about an access outside of its arguments, as a GPU's would.
void note_outside(const FakeLaunch& launch, const std::string& what) {
  cuda::OutsideReport& report = launch.outside->write;
  jit::OutsideSite site{};
  site.argument = jit::OutsideSite::no_argument;
  site.writes = what.find("the kernel writes") != std::string::npos;
  std::strncpy(site.name, "its arguments", sizeof(site.name) - 1);
  std::memcpy(report.site, &site, sizeof(site));
  report.is_claimed = 1;
}

void run_on_cpu(const Ref<jit::CpuPipeline>& pipeline, const FakeLaunch& launch) {
  // The program's watch over kernels, by the word that the GPU's kernels look at.
  jit::DispatchArguments arguments = launch.arguments;
  jit::begin_dispatch(arguments);
  try {
    jit::run_groups(*pipeline, arguments, 0, jit::threadgroups(arguments));
  } catch (const std::exception& error) {
    if (!launch.outside) throw;
    note_outside(launch, error.what());
  }
}

}  // namespace

cuda::CompiledKernel compile_for_fake(const msl::KernelSource& source,
                                      const exec::KernelOptions& options) {
  jit::CompileOptions compile;
  compile.instruction_set = jit::host_instruction_set();
  compile.guarded = options.guarded;
  Ref<jit::CpuPipeline> pipeline =
      jit::CpuPipeline::load(source.kernel, jit::default_compiler().compile(source, compile));
  FakeKernel kernel;
  kernel.interface = pipeline->interface();
  kernel.is_guarded = options.guarded;
  kernel.has_inline_constants = options.is_of_library;
  kernel.run = [pipeline](const FakeLaunch& launch) { run_on_cpu(pipeline, launch); };
  return FakeDriver::get().add(source.kernel, std::move(kernel));
}

cuda::Gpu& install_fake_gpu() {
  static cuda::Gpu* gpu = [] {
    auto* made = new cuda::Gpu(FakeDriver::get().driver(), 0);
    std::unique_ptr<exec::Device> device =
        cuda::make_gpu_device(*made, *new cuda::GpuMemory(*made));
    device->backend = &kernels::metal::MetalBackend::get();
    device->target = &cuda::cuda_target(made->architecture(), made);
    if (jit::default_compiler_version() != "none") cuda::set_compiler_for_tests(compile_for_fake);
    exec::Runtime::get().install_gpu(std::move(device));
    return made;
  }();
  return *gpu;
}

}  // namespace holdfast::testing
