// Where the process is put together: which backend encodes ops for which device, what kernels are
// compiled for there, and which layers run from the start.
#include <cstdio>
#include <cstdlib>

#include "base/environment.h"
#include "devices/cpu/cpu_target.h"
#include "devices/cuda/cuda_target.h"
#include "devices/cuda/gpu_device.h"
#include "devices/cuda/memory.h"
#include "devices/simulated/simulated_gpu.h"
#include "exec/kernel_library.h"
#include "exec/kernel_warming.h"
#include "exec/layers/capture/capture.h"
#include "exec/layers/chaos/chaos.h"
#include "exec/layers/validation/validator.h"
#include "exec/runtime.h"
#include "exec/start.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/metal/entries.h"
#include "kernels/metal/metal_backend.h"

namespace holdfast::start {

void before_first_buffer() {
  validation::start_from_environment();
  exec::chaos::start_from_environment();
}

namespace {

std::unique_ptr<exec::Device> make_cuda_gpu() {
  cuda::Gpu& gpu = cuda::gpu_of_system();
  std::unique_ptr<exec::Device> device =
      cuda::make_gpu_device(gpu, *new cuda::GpuMemory(gpu));  // as long as the process
  device->backend = &kernels::metal::MetalBackend::get();
  device->target = &cuda::cuda_target(gpu.architecture(), &gpu);
  // What was registered last is called first: before the driver takes its leave, whose library was
  // loaded just now.
  static exec::Device* made = device.get();
  std::atexit([] { made->shut_down(std::chrono::seconds(5)); });
  return device;
}

std::unique_ptr<exec::Device> make_cuda_gpu_if_possible() {
  try {
    return make_cuda_gpu();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "holdfast: Device::gpu is the processor's cores: %s\n", error.what());
    return nullptr;
  }
}

}  // namespace

void runtime(exec::Runtime& runtime) {
  exec::KernelLibrary::find_image = kernels::metal::find_image;
  exec::Device& cpu = runtime.cpu_device();
  cpu.backend = &kernels::cpu::CpuBackend::get();
  cpu.target = &exec::cpu_target();
  if (environment::settings().gpu == environment::Gpu::simulated) {
    std::unique_ptr<exec::Device> gpu = exec::make_simulated_gpu(runtime.cpu_device());
    gpu->backend = &kernels::metal::MetalBackend::get();
    gpu->target = cpu.target;
    runtime.install_gpu(std::move(gpu));
  }
  const environment::Gpu wanted = environment::settings().gpu;
  if (wanted == environment::Gpu::cuda) runtime.install_gpu_later(make_cuda_gpu);
  if (wanted == environment::Gpu::automatic && cuda::Driver::may_be_there())
    runtime.install_gpu_later(make_cuda_gpu_if_possible);
  if (const int architecture = environment::settings().warm_architecture)
    exec::warm_for(cuda::cuda_target(static_cast<uint32_t>(architecture), nullptr));
  exec::capture::start_from_environment();
}

}  // namespace holdfast::start
