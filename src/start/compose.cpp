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
  exec::Device& cpu = runtime.cpu_device();
  cpu.backend = &kernels::cpu::CpuBackend::get();
  cpu.target = &exec::cpu_target();
  // Where there is no GPU these are the CPU's cores.
  exec::Device& gpu = runtime.device(Device::gpu);
  if (&gpu != &cpu) {
    gpu.backend = &kernels::Backend::none();
    gpu.target = cpu.target;
  }
  exec::capture::start_from_environment();
}

}  // namespace holdfast::start
