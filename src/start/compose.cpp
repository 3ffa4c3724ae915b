// Where the process is put together: which backend encodes ops for which device, what kernels are
// compiled for there, and which layers run from the start.
#include "devices/cpu/cpu_target.h"
#include "exec/layers/capture/capture.h"
#include "exec/layers/chaos/chaos.h"
#include "exec/layers/validation/validator.h"
#include "exec/runtime.h"
#include "exec/start.h"
#include "kernels/cpu/cpu_backend.h"

namespace holdfast::start {

void before_first_buffer() {
  validation::start_from_environment();
  exec::chaos::start_from_environment();
}

void runtime(exec::Runtime& runtime) {
  runtime.cpu_device().backend = &kernels::cpu::CpuBackend::get();
  runtime.cpu_device().target = &exec::cpu_target();
  exec::capture::start_from_environment();
}

}  // namespace holdfast::start
