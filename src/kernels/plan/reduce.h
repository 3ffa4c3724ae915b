// What reductions there are, and what they give.
#pragma once

#include <cstdint>

#include <holdfast/dtype.h>

namespace holdfast::kernels {

// Numbers that files of functions and captures hold: append only.
enum class ReduceOp : uint8_t {
  sum = 0,
  prod = 1,
  min = 2,
  max = 3,
  all = 4,
  any = 5,
  argmin = 6,
  argmax = 7,
};

// Whether reducing no elements has a value: sum 0, prod 1, all true, any false. Others must not be
// encoded over an empty axis (with a non-empty output).
bool has_identity(ReduceOp op);

// sum, prod: bool and narrow signed integers give int32, narrow unsigned ones uint32, others stay.
// min, max stay. all, any give bool; argmin, argmax give uint32.
Dtype::Val reduce_output_type(ReduceOp op, Dtype::Val input);

}  // namespace holdfast::kernels
