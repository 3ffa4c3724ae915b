// RowShape: which calls work on the rows of one shape, each row by itself.
#pragma once

#include <optional>
#include <span>

#include "kernels/plan/rows.h"
#include "transforms/call.h"

namespace holdfast::detail {

class RowShape {
 public:
  using Width = kernels::RowWidth;

  // The rows that a call reduces; nothing when it is no reduction along the last axis, or its rows
  // are too few, too short or too long to be worth a program.
  static std::optional<RowShape> reduced_by(const Call& call, std::span<const ValueInfo> values);

  int64_t rows() const { return rows_; }
  int64_t length() const { return length_; }
  // What a value of this shape is to the rows; nothing where it has no part in them.
  std::optional<Width> width(const Shape& shape) const;

  // Can the call be one of the program's? It is element-wise, over all elements or over one a row,
  // or reduces the rows, or hands on one of its inputs.
  bool takes(const Call& call, std::span<const ValueInfo> values) const;
  // Its result is its input, seen with another shape: so repeated that it broadcasts as before.
  bool is_alias(const Call& call, std::span<const ValueInfo> values) const;

 private:
  explicit RowShape(Shape full);
  bool is_elementwise(const Call& call, std::span<const ValueInfo> values) const;

  Shape full_;    // (…, length)
  Shape kept_;    // (…, 1)
  Shape single_;  // (…)
  int64_t rows_ = 1, length_ = 1;
};

// Of a call that reduces the last axis alone.
std::optional<kernels::ReduceOp> row_reduction(const Call& call, std::span<const ValueInfo> values);

}  // namespace holdfast::detail
