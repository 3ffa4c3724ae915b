// What reductions there are, and what they give.
#pragma once

#include <cstdint>

#include <span>

#include <holdfast/dtype.h>

#include "kernels/plan/layout.h"

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

// A view as outputs and what is reduced to each of them.
struct ReducedLayout {
  int64_t base = 0;         // elements from the view's first one to where both begin
  CollapsedLayout kept;     // in output order
  CollapsedLayout reduced;  // in memory order, except for argmin and argmax
  // Neighbouring outputs are closer together in memory than what is reduced to one of them.
  bool has_columns() const;
};
// `axes`: distinct, 0 <= axis < shape.size(), any order.
ReducedLayout reduced_layout(ReduceOp op, std::span<const int32_t> shape,
                             std::span<const int64_t> strides, std::span<const int> axes);

}  // namespace holdfast::kernels
