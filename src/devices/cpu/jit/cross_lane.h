// What the cross-lane functions of kernels compute, lane by lane: the rules of msl/intrinsics.def.
#pragma once

#include <cstdint>

#include "devices/cpu/jit/kernel_abi.h"
#include "msl/scalar_ir.h"

namespace holdfast::jit {

struct LaneValues {
  uint64_t operands[7];
  uint64_t result;
};

// Performs one operation for the lanes whose bit is set in `active` (not zero): reads their
// operands, sets their results.
void perform_cross_lane(msl::Intrinsic operation, uint32_t active,
                        LaneValues* const lanes[simdgroup_width]);

}  // namespace holdfast::jit
