// What a guarded kernel reports about accesses that it did not make.
#pragma once

#include <string>

#include "devices/cuda/gpu_kernel.h"

namespace holdfast::cuda {

// Why the dispatch fails; empty when it does not. Prints a line about a read, once for each kernel.
std::string text_of(const GuardReport& report, const GpuKernel& kernel,
                    const exec::Dispatch& dispatch);

}  // namespace holdfast::cuda
