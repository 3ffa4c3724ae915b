// Backend::rows as it is by default: runs of element-wise steps as one pass each, and reductions
// between them, by the kernels that the ops have by themselves; so the bits are theirs.
#include <algorithm>
#include <limits>
#include <optional>

#include "kernels/backend.h"
#include "kernels/staging.h"
#include "kernels/views.h"

namespace holdfast::kernels {
namespace {

class RowEncoder {
 public:
  RowEncoder(Encoder& encoder, Backend& backend, const RowGroup& group)
      : encoder_(encoder),
        backend_(backend),
        group_(group),
        values_(group.values.size()),
        last_use_(group.values.size(), 0) {
    constexpr int64_t longest = std::numeric_limits<ShapeElem>::max();
    if (group.rows > longest || group.length > longest) throw exec::NoKernel();
    for (size_t k = 0; k < group.steps.size(); ++k) {
      const RowStep& step = group.steps[k];
      const int operands = step.op == RowStep::reduces ? 1 : step.arity;
      for (int i = 0; i < operands; ++i) last_use_[step.operands[i]] = k;
    }
    for (uint16_t output : group.outputs) last_use_[output] = group.steps.size();
  }

  void encode(const std::vector<array>& inputs, std::vector<array>& outputs) {
    for (size_t i = 0; i < inputs.size(); ++i)
      values_[i] = seen_as(make_dense(encoder_, inputs[i]), shape_of(static_cast<uint16_t>(i)));
    for (size_t first = 0; first < group_.steps.size();) {
      size_t last = first + 1;
      if (group_.steps[first].op == RowStep::reduces) {
        reduce(first);
      } else {
        while (last < group_.steps.size() && continues(first, last)) ++last;
        run_pass(first, last);
      }
      first = last;
    }
    for (size_t i = 0; i < outputs.size(); ++i) {
      const array& value = *values_[group_.outputs[i]];
      share(value, outputs[i], row_major_strides(outputs[i].shape()));
    }
  }

 private:
  uint16_t result_of(size_t k) const { return static_cast<uint16_t>(group_.inputs() + k); }
  RowWidth width_of(size_t k) const { return group_.values[result_of(k)].width; }
  bool continues(size_t first, size_t k) const {
    return group_.steps[k].op != RowStep::reduces && width_of(k) == width_of(first);
  }

  Shape shape_of(uint16_t value) const {
    const auto rows = static_cast<ShapeElem>(group_.rows);
    const auto length = static_cast<ShapeElem>(group_.length);
    switch (group_.values[value].width) {
      case RowWidth::full:
        return {rows, length};
      case RowWidth::single:
        return {rows, 1};
      case RowWidth::shared:
        return {1, length};
      case RowWidth::scalar:
        break;
    }
    return {1, 1};
  }

  static array seen_as(const array& dense, const Shape& shape) {
    array view(shape, dense.dtype(), nullptr, {});
    share(dense, view, row_major_strides(shape));
    return view;
  }

  array& make_value(uint16_t value) {
    return values_[value].emplace(shape_of(value), group_.values[value].dtype, nullptr,
                                  std::vector<array>{});
  }

  void reduce(size_t k) {
    const RowStep& step = group_.steps[k];
    backend_.reduce(encoder_, step.reduction, {1}, *values_[step.operands[0]],
                    make_value(result_of(k)));
  }

  // Steps [first, last), whose results have one shape.
  void run_pass(size_t first, size_t last) {
    std::vector<array> inputs;
    std::vector<uint16_t> numbers;  // of the inputs among the values
    std::vector<FusedStep> steps;
    const Shape shape = shape_of(result_of(first));
    for (size_t k = first; k < last; ++k) {
      const RowStep& from = group_.steps[k];
      const uint16_t result = result_of(k);
      FusedStep step{from.op,
                     from.arity,
                     {},
                     group_.values[result].dtype,
                     group_.values[from.operands[from.arity - 1]].dtype,
                     nullptr};
      for (int i = 0; i < from.arity; ++i) {
        const uint16_t operand = from.operands[i];
        if (operand >= result_of(first)) {
          step.values[i] = static_cast<uint16_t>(FusedStep::result + operand - result_of(first));
          continue;
        }
        auto found = std::find(numbers.begin(), numbers.end(), operand);
        step.values[i] = static_cast<uint16_t>(found - numbers.begin());
        if (found == numbers.end()) {
          numbers.push_back(operand);
          inputs.push_back(*values_[operand]);
        }
      }
      if (last_use_[result] >= last) step.output = &make_value(result);
      steps.push_back(step);
    }
    backend_.fused(encoder_, {&shape, inputs, 0, steps});
  }

  Encoder& encoder_;
  Backend& backend_;
  const RowGroup& group_;
  std::vector<std::optional<array>> values_;
  std::vector<size_t> last_use_;  // the step; of outputs the number of steps
};

}  // namespace

void Backend::rows(Encoder& encoder, const RowGroup& group, const std::vector<array>& inputs,
                   std::vector<array>& outputs) {
  RowEncoder(encoder, *this, group).encode(inputs, outputs);
}

}  // namespace holdfast::kernels
