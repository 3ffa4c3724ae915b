// Derivatives of views, and views of mapped arrays.
#include <algorithm>
#include <numeric>

#include "ops/dynamic_shape.h"
#include "ops/views.h"

namespace holdfast {

array Transpose::pull_back(const array&, const array& cotangent, const array&) {
  std::vector<int> inverse(axes_.size());
  for (size_t i = 0; i < axes_.size(); ++i) {
    inverse[static_cast<size_t>(axes_[i])] = static_cast<int>(i);
  }
  return transpose(cotangent, std::move(inverse), stream());
}
std::shared_ptr<Primitive> Transpose::with_leading_axis() {
  std::vector<int> axes = one_further(axes_);
  axes.insert(axes.begin(), 0);
  return std::make_shared<Transpose>(stream(), std::move(axes));
}

array Broadcast::pull_back(const array& input, const array& cotangent, const array&) {
  return sum_like(cotangent, input, stream());
}

array Squeeze::pull_back(const array&, const array& cotangent, const array&) {
  return expand_dims(cotangent, axes_, stream());
}
std::shared_ptr<Primitive> Squeeze::with_leading_axis() {
  return std::make_shared<Squeeze>(stream(), one_further(axes_));
}

array ExpandDims::pull_back(const array&, const array& cotangent, const array&) {
  return squeeze(cotangent, axes_, stream());
}
std::shared_ptr<Primitive> ExpandDims::with_leading_axis() {
  return std::make_shared<ExpandDims>(stream(), one_further(axes_));
}

namespace {

// Where a slice of this shape ends, as slice and slice_update want to hear it.
Shape stop_of(const Shape& start, const Shape& steps, const Shape& shape, const Shape& of) {
  Shape stop;
  for (size_t i = 0; i < start.size(); ++i) {
    int last = start[i] + (shape[i] - 1) * steps[i];
    int behind = steps[i] > 0 ? last + 1 : last - 1;
    // Before the first element: -1 would be the last one.
    stop.push_back(shape[i] == 0 ? start[i] : behind < 0 ? -of[i] - 1 : behind);
  }
  return stop;
}

}  // namespace

array Slice::pull_back(const array& input, const array& cotangent, const array&) {
  if (cotangent.size() == 0) return zeros_like(input, stream());
  return slice_update(zeros_like(input, stream()), cotangent, start_,
                      stop_of(start_, steps_, cotangent.shape(), input.shape()), steps_, stream());
}
std::shared_ptr<Primitive> Slice::with_leading_axis() {
  return std::make_shared<Slice>(stream(), with_front(0, start_), with_front(1, steps_));
}

// Parts may overlap, and need not be all there is.
std::vector<array> Split::vjp_rule(const std::vector<array>& primals,
                                   const std::vector<array>& cotangents, const std::vector<int>&,
                                   const std::vector<array>&) {
  const array& input = primals[0];
  ShapeElem behind = 0;
  bool is_partition = true;
  for (size_t k = 0; k < cotangents.size(); ++k) {
    is_partition = is_partition && starts_[k] == behind;
    behind += cotangents[k].shape(axis_);
  }
  if (is_partition && behind == input.shape(axis_)) {
    return {concatenate(cotangents, axis_, stream())};
  }
  array result = zeros_like(input, stream());
  for (size_t k = 0; k < cotangents.size(); ++k) {
    Shape start(input.ndim(), 0), stop = cotangents[k].shape();
    start[static_cast<size_t>(axis_)] = starts_[k];
    stop[static_cast<size_t>(axis_)] += starts_[k];
    if (cotangents[k].size() > 0) {
      result = slice_update_add(result, cotangents[k], start, stop, stream());
    }
  }
  return {result};
}
std::shared_ptr<Primitive> Split::with_leading_axis() {
  return std::make_shared<Split>(stream(), starts_, axis_ + 1);
}

// The elements stand where a shifted unit matrix has its ones.
array Diagonal::pull_back(const array& input, const array& cotangent, const array&) {
  check_shape_known("diagonal", input);
  int rows = input.shape(axis1_), columns = input.shape(axis2_), length = cotangent.shape(-1);
  if (length == 0) return zeros_like(input, stream());
  int low = std::max(0, -offset_);
  int last = static_cast<int>(cotangent.ndim()) - 1;
  array zero(0, input.dtype());
  array padded = length == rows ? cotangent
                                : pad(cotangent, {last}, {low}, {rows - low - length}, zero,
                                      "constant", stream());
  array mask = eye(rows, columns, offset_, bool_, stream());
  array matrices = where(mask, expand_dims(padded, last + 1, stream()), zero, stream());
  // The last two axes go back to where they were.
  std::vector<int> order(input.ndim());
  int next = 0;
  for (int axis = 0; axis < static_cast<int>(input.ndim()); ++axis) {
    order[static_cast<size_t>(axis)] = axis == axis1_ ? last : axis == axis2_ ? last + 1 : next++;
  }
  return transpose(matrices, std::move(order), stream());
}
std::shared_ptr<Primitive> Diagonal::with_leading_axis() {
  return std::make_shared<Diagonal>(stream(), offset_, axis1_ + 1, axis2_ + 1);
}

std::vector<array> AsStrided::decomposed(const std::vector<array>& inputs) {
  const array& input = inputs[0];
  if (input.size() == 0) return {zeros(shape_, input.dtype(), stream())};
  array numbers = arange(0, static_cast<double>(input.size()), int64, stream());
  array places = as_strided(numbers, shape_, strides_, offset_, stream());
  return {take(flatten(input, stream()), places, 0, stream())};
}

array Identity::pull_back(const array&, const array& cotangent, const array&) { return cotangent; }
std::shared_ptr<Primitive> Identity::with_leading_axis() {
  return std::make_shared<Identity>(stream());
}

std::shared_ptr<Primitive> StopGradient::with_leading_axis() {
  return std::make_shared<StopGradient>(stream());
}

std::vector<array> Depends::vjp_rule(const std::vector<array>& primals,
                                     const std::vector<array>& cotangents,
                                     const std::vector<int>& argnums, const std::vector<array>&) {
  std::vector<array> result;
  for (int argnum : argnums) {
    size_t i = static_cast<size_t>(argnum);
    result.push_back(i < cotangents.size() ? cotangents[i] : zeros_like(primals[i], stream()));
  }
  return result;
}
std::pair<std::vector<array>, std::vector<int>> Depends::vmap_rule(const std::vector<array>& inputs,
                                                                   const std::vector<int>& axes) {
  std::vector<Shape> shapes;
  std::vector<Dtype> dtypes;
  for (size_t i = 0; i < count_; ++i) {
    shapes.push_back(inputs[i].shape());
    dtypes.push_back(inputs[i].dtype());
  }
  std::vector<int> kept(axes.begin(), axes.begin() + static_cast<std::ptrdiff_t>(count_));
  return {detail::make_all_checked(std::move(shapes), dtypes,
                                   std::make_shared<Depends>(stream(), count_), inputs),
          std::move(kept)};
}

array Reshape::pull_back(const array& input, const array& cotangent, const array&) {
  return reshape_like(cotangent, input, stream());
}
std::shared_ptr<Primitive> Reshape::with_leading_axis() {
  return std::make_shared<Reshape>(stream());
}

std::shared_ptr<Primitive> View::with_leading_axis() { return std::make_shared<View>(stream()); }

array Contiguous::pull_back(const array&, const array& cotangent, const array&) {
  return cotangent;
}
std::shared_ptr<Primitive> Contiguous::with_leading_axis() {
  return std::make_shared<Contiguous>(stream(), allow_column_major_);
}

array Copy::pull_back(const array&, const array& cotangent, const array&) { return cotangent; }
std::shared_ptr<Primitive> Copy::with_leading_axis() { return std::make_shared<Copy>(stream()); }

}  // namespace holdfast
