// Cross-lane operations and barriers as NVIDIA's instructions: the rules of intrinsics.def, bit for
// bit.
#pragma once

#include "devices/cuda/compiler/convergence.h"

namespace holdfast::cuda {

// Replaces all calls of cross-lane functions and barriers.
void lower_cross_lane(llvm::Function& kernel, const Convergence& convergence);

}  // namespace holdfast::cuda
