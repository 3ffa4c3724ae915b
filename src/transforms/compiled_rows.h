// CompiledRows: calls of a trace that work on rows, as one node.
#pragma once

#include <span>
#include <vector>

#include "graph/op.h"
#include "kernels/plan/rows.h"
#include "transforms/row_shape.h"

namespace holdfast::detail {

// Norms, softmax and losses, with what stands before and behind their reductions, move each element
// through memory once. The bits are those of the calls one after the other.
class CompiledRows final : public Op {
 public:
  // `calls`, in order, are what `shape` takes; `inputs` and `outputs` are the numbers of the values
  // that they share with others. No output is an alias.
  CompiledRows(std::span<const Call* const> calls, std::span<const int> inputs,
               std::span<const int> outputs, std::span<const ValueInfo> values,
               const RowShape& shape);
  void encode(Encoder& encoder, const std::vector<array>& inputs,
              std::vector<array>& outputs) override;
  const char* name() const override { return "CompiledRows"; }
  bool is_equivalent(const Primitive& other) const override;

 private:
  kernels::RowGroup group_;
};

}  // namespace holdfast::detail
