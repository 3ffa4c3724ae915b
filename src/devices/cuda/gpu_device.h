// A GPU of NVIDIA as a device.
#pragma once

#include <memory>

#include "devices/cuda/gpu.h"
#include "devices/device.h"

namespace holdfast::cuda {

// `memory` is that of the GPU; both outlive the device. Starts no thread before one is needed.
std::unique_ptr<exec::Device> make_gpu_device(Gpu& gpu, exec::MemorySpace& memory);

}  // namespace holdfast::cuda
