// Where the process is put together: which backend encodes ops for which device.
#include "base/environment.h"
#include "devices/simulated/simulated_gpu.h"
#include "exec/runtime.h"
#include "kernels/cpu/cpu_backend.h"

namespace holdfast::exec {

void Runtime::compose(Runtime& runtime) {
  runtime.cpu_device().backend = &kernels::cpu::CpuBackend::get();
  if (environment::settings().gpu == environment::Gpu::simulated) {
    std::unique_ptr<Device> gpu = make_simulated_gpu(runtime.cpu_device());
    gpu->backend = &kernels::Backend::none();
    runtime.install_gpu(std::move(gpu));
  }
}

}  // namespace holdfast::exec
