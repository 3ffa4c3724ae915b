// Where the process is put together: which backend encodes ops for which device.
#include "exec/runtime.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/metal/metal_backend.h"

namespace holdfast::exec {

void Runtime::compose(Runtime& runtime) {
  runtime.cpu_device().backend = &kernels::cpu::CpuBackend::get();
  if (runtime.gpu_) runtime.gpu_->backend = &kernels::metal::MetalBackend::get();
}

}  // namespace holdfast::exec
