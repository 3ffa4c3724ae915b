// The target of kernels for NVIDIA GPUs: the compiler's PTX, assembled where something assembles.
#pragma once

#include <functional>
#include <string>

#include "devices/cuda/gpu.h"
#include "devices/cuda/gpu_kernel.h"
#include "devices/target.h"

namespace holdfast::cuda {

// For the architecture sm_<number>. It lives as long as the process. `gpu` runs the pipelines;
// null: none can be made, as where caches are filled for other machines.
exec::Target& cuda_target(uint32_t architecture, Gpu* gpu);

// What compiles a kernel in the place of the target, where it is not null: for tests.
using CompileFunction =
    std::function<CompiledKernel(const msl::KernelSource&, const exec::KernelOptions&)>;
void set_compiler_for_tests(CompileFunction compile);

}  // namespace holdfast::cuda
