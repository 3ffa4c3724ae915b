// Reductions over some axes.
#pragma once

#include <holdfast/primitives.h>

#include "kernels/plan/reduce.h"

namespace holdfast {

inline kernels::ReduceOp op_of(const detail::Reduction& reduction) {
  return static_cast<kernels::ReduceOp>(reduction.op());
}

}  // namespace holdfast
