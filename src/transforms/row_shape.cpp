#include "transforms/row_shape.h"

#include <algorithm>

#include "ops/reduction.h"
#include "ops/views.h"

namespace holdfast::detail {
namespace {

// Shorter rows are not worth a call of a kernel each, longer ones leave the cache.
constexpr int64_t shortest = 32, longest = 32768, fewest = 4;

const ValueInfo& info(std::span<const ValueInfo> values, int number) {
  return values[static_cast<size_t>(number)];
}

// Half types are rounded after each op, and complex numbers are rare: left to the block engine.
bool has_kernels(Dtype dtype) {
  return dtype != float16 && dtype != bfloat16 && dtype != complex64;
}

int64_t size_of(const Shape& shape) {
  int64_t size = 1;
  for (ShapeElem dim : shape) size *= dim;
  return size;
}

}  // namespace

std::optional<kernels::ReduceOp> row_reduction(const Call& call,
                                               std::span<const ValueInfo> values) {
  const auto* reduce = dynamic_cast<const Reduction*>(call.primitive.get());
  if (reduce == nullptr) return {};
  const Shape& shape = info(values, call.inputs[0]).shape;
  if (reduce->axes() != std::vector<int>{static_cast<int>(shape.size()) - 1}) return {};
  return op_of(*reduce);
}

RowShape::RowShape(Shape full) : full_(std::move(full)), kept_(full_), single_(full_) {
  length_ = full_.back();
  rows_ = size_of(full_) / std::max<int64_t>(1, length_);
  kept_.back() = 1;
  single_.pop_back();
}

std::optional<RowShape> RowShape::reduced_by(const Call& call, std::span<const ValueInfo> values) {
  if (!row_reduction(call, values)) return {};
  RowShape shape(info(values, call.inputs[0]).shape);
  if (shape.length_ < shortest || shape.length_ > longest || shape.rows_ < fewest) return {};
  // One element a row, without its axis, must not look like one row.
  if (shape.width(shape.single_) != Width::single) return {};
  return shape.takes(call, values) ? std::optional(shape) : std::nullopt;
}

std::optional<RowShape::Width> RowShape::width(const Shape& shape) const {
  if (shape == full_) return Width::full;
  if (size_of(shape) == 1) return Width::scalar;
  if (shape == kept_) return Width::single;
  if (!shape.empty() && shape.back() == length_ && size_of(shape) == length_ &&
      shape.size() <= full_.size()) {
    return Width::shared;
  }
  return shape == single_ ? std::optional(Width::single) : std::nullopt;
}

bool RowShape::is_elementwise(const Call& call, std::span<const ValueInfo> values) const {
  const Shape& shape = call.shapes[0];
  bool is_full = shape == full_;
  if (!is_full && shape != kept_ && shape != single_) return false;
  return std::all_of(call.inputs.begin(), call.inputs.end(), [&](int input) {
    const Shape& operand = info(values, input).shape;
    if (operand == shape || size_of(operand) == 1) return true;
    // Without its axis, what has one element a row would broadcast along another one.
    return is_full && operand != single_ && width(operand).has_value();
  });
}

bool RowShape::is_alias(const Call& call, std::span<const ValueInfo> values) const {
  const Primitive* primitive = call.primitive.get();
  const Shape& from = info(values, call.inputs[0]).shape;
  const Shape& to = call.shapes[0];
  std::optional<Width> before = width(from), after = width(to);
  if (!before || !after) return false;
  if (dynamic_cast<const Broadcast*>(primitive) != nullptr) {
    return to == full_ && (from == kept_ || *before == Width::shared || *before == Width::scalar);
  }
  bool reshapes = dynamic_cast<const Reshape*>(primitive) != nullptr ||
                  dynamic_cast<const Squeeze*>(primitive) != nullptr ||
                  dynamic_cast<const ExpandDims*>(primitive) != nullptr;
  return reshapes && before == after && (*after == Width::single || *after == Width::scalar);
}

bool RowShape::takes(const Call& call, std::span<const ValueInfo> values) const {
  if (call.outputs.size() != 1 || !has_kernels(call.dtypes[0])) return false;
  for (int input : call.inputs) {
    if (!has_kernels(info(values, input).dtype)) return false;
  }
  if (call.primitive->traits().elementwise >= 0) return is_elementwise(call, values);
  if (row_reduction(call, values)) return info(values, call.inputs[0]).shape == full_;
  return is_alias(call, values);
}

}  // namespace holdfast::detail
