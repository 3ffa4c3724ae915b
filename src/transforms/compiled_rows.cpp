#include "transforms/compiled_rows.h"

#include <unordered_map>

#include "kernels/backend.h"
#include "kernels/plan/elementwise.h"

namespace holdfast::detail {
namespace {

using kernels::RowStep;
using kernels::RowWidth;

// Makes the group of a list of calls.
class RowGroupBuilder {
 public:
  RowGroupBuilder(const RowShape& shape, std::span<const ValueInfo> values)
      : shape_(shape), values_(values) {
    group_.rows = shape.rows();
    group_.length = shape.length();
  }

  kernels::RowGroup make(std::span<const Call* const> calls, std::span<const int> inputs,
                         std::span<const int> outputs) {
    for (int input : inputs) add_value(input);
    for (const Call* call : calls) add_step(*call);
    for (int output : outputs) group_.outputs.push_back(places_.at(output));
    return std::move(group_);
  }

 private:
  void add_value(int number) {
    const ValueInfo& value = values_[static_cast<size_t>(number)];
    places_[number] = static_cast<uint16_t>(group_.values.size());
    group_.values.push_back({*shape_.width(value.shape), value.dtype});
  }

  void add_step(const Call& call) {
    RowStep step;
    for (int input : call.inputs) step.operands[step.arity++] = places_.at(input);
    step.op = call.primitive->traits().elementwise;
    if (step.op < 0) {
      std::optional<kernels::ReduceOp> reduction = row_reduction(call, values_);
      if (!reduction) {
        places_[call.outputs[0]] = step.operands[0];  // an alias
        return;
      }
      step.op = RowStep::reduces;
      step.reduction = *reduction;
      step.operands[0] = repeated(step.operands[0]);
    }
    add_value(call.outputs[0]);
    group_.steps.push_back(step);
  }

  // Reductions read whole rows: what is the same along them is written out.
  uint16_t repeated(uint16_t value) {
    const kernels::RowValue from = group_.values[value];
    if (from.width == RowWidth::full) return value;
    group_.values.push_back({RowWidth::full, from.dtype});
    group_.steps.push_back({kernels::conversion_code, {}, 1, {value}});
    return static_cast<uint16_t>(group_.values.size() - 1);
  }

  const RowShape& shape_;
  std::span<const ValueInfo> values_;
  kernels::RowGroup group_;
  std::unordered_map<int, uint16_t> places_;  // of numbered values among the group's
};

}  // namespace

CompiledRows::CompiledRows(std::span<const Call* const> calls, std::span<const int> inputs,
                           std::span<const int> outputs, std::span<const ValueInfo> values,
                           const RowShape& shape)
    : Op(calls.back()->primitive->stream()),
      group_(RowGroupBuilder(shape, values).make(calls, inputs, outputs)) {}

bool CompiledRows::is_equivalent(const Primitive& other) const {
  const auto* same = dynamic_cast<const CompiledRows*>(&other);
  return same != nullptr && group_ == same->group_;
}

void CompiledRows::encode(Encoder& encoder, const std::vector<array>& inputs,
                          std::vector<array>& outputs) {
  kernels::backend_of(encoder).rows(encoder, group_, inputs, outputs);
}

}  // namespace holdfast::detail
