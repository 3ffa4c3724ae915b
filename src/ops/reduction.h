// Reductions over some axes.
#pragma once

#include <holdfast/primitives.h>

#include "kernels/cpu/simd/reduce_kernels.h"

namespace holdfast {

inline cpu::ReduceOp op_of(const detail::Reduction& reduction) {
  return static_cast<cpu::ReduceOp>(reduction.op());
}

}  // namespace holdfast
