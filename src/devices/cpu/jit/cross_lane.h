// What the cross-lane functions of kernels compute, lane by lane: the rules of msl/intrinsics.def.
#pragma once

#include <cstdint>

#include "devices/cpu/jit/kernel_abi.h"
#include "msl/scalar_ir.h"

namespace holdfast::jit {

// Performs one operation for the lanes whose bit is set in `active` (not zero): reads their
// operands, sets their results.
void perform_cross_lane(msl::Intrinsic operation, uint32_t active, LaneValues& lanes);

}  // namespace holdfast::jit
