// The part of guarded kernels that is not generated code: see GuardRuntime (kernel_abi.h).
#pragma once

#include "devices/cpu/jit/kernel_abi.h"

namespace holdfast::jit {

extern const GuardRuntime guard_runtime;

}  // namespace holdfast::jit
