// Reshaping, permuting and broadcasting: the checks, and the nodes.
#include <algorithm>
#include <numeric>

#include <holdfast/tracing.h>
#include "ops/dynamic_shape.h"
#include "ops/views.h"

namespace holdfast {

Shape inferred_shape(const char* op, const array& a, int64_t size, Shape shape) {
  int64_t known = 1;
  ShapeElem* unknown = nullptr;
  Shape given = shape;
  for (ShapeElem& dim : shape) {
    if (dim == -1) {
      if (unknown != nullptr) {
        throw std::invalid_argument(
            text("[", op, "] at most one dimension can be inferred, got shape ", given));
      }
      unknown = &dim;
      dim = 1;
    }
  }
  known = checked_size(op, shape, a.dtype());
  if (unknown != nullptr) {
    if (known == 0) {
      throw std::invalid_argument(text(
          "[", op, "] a dimension beside one of size 0 cannot be inferred, got shape ", given));
    }
    if (size % known == 0) *unknown = safe_cast(size / known, op);
  }
  if (unknown == nullptr ? known != size : size % known != 0) {
    throw std::invalid_argument(text("[", op, "] expected a shape of ", size,
                                     " elements for an array of shape ", a.shape(), ", got ",
                                     given));
  }
  return shape;
}

array reshape(const array& a, Shape shape, StreamOrDevice s) {
  if (has_open_shape(a) && std::all_of(shape.begin(), shape.end(), [](int d) { return d >= -1; })) {
    return reshape_by(a, std::move(shape), s);
  }
  shape = inferred_shape("reshape", a, static_cast<int64_t>(a.size()), std::move(shape));
  if (shape == a.shape()) return a;
  return make_node<Reshape>(std::move(shape), a.dtype(), {a}, s);
}

array flatten(const array& a, int start_axis, int end_axis, StreamOrDevice s) {
  int count = static_cast<int>(a.ndim());
  // Axes before the first and behind the last are taken as those: flatten(a, 0, 10) is legal.
  int start = std::max(0, start_axis < 0 ? start_axis + count : start_axis);
  int end = std::min(count - 1, end_axis < 0 ? end_axis + count : end_axis);
  if (count == 0) return reshape(a, {1}, s);
  if (start > end) {
    throw std::invalid_argument(text("[flatten] expected start_axis <= end_axis, got ", start_axis,
                                     " and ", end_axis, " for shape ", a.shape()));
  }
  if (start == end) return a;
  if (has_open_shape(a)) {
    Shape recipe;
    for (int i = 0; i < start; ++i) recipe.push_back(same_as(i));
    recipe.push_back(-1);
    for (int i = end + 1; i < count; ++i) recipe.push_back(same_as(i));
    return reshape_by(a, std::move(recipe), s);
  }
  int64_t merged = 1;
  for (int i = start; i <= end; ++i) merged *= a.shape(i);
  Shape shape(a.shape().begin(), a.shape().begin() + start);
  shape.push_back(safe_cast(merged, "flatten"));
  shape.insert(shape.end(), a.shape().begin() + end + 1, a.shape().end());
  return reshape(a, std::move(shape), s);
}

array flatten(const array& a, StreamOrDevice s) { return flatten(a, 0, -1, s); }

array unflatten(const array& a, int axis, Shape shape, StreamOrDevice s) {
  int at = checked_axis("unflatten", axis, a.ndim());
  if (shape.empty())
    throw std::invalid_argument("[unflatten] expected a shape of one or more dimensions, got ()");
  Shape inner = inferred_shape("unflatten", a, a.shape(at), shape);
  if (has_open_shape(a)) {
    for (int i = at; i-- > 0;) shape.insert(shape.begin(), same_as(i));
    for (int i = at + 1; i < static_cast<int>(a.ndim()); ++i) shape.push_back(same_as(i));
    return reshape_by(a, std::move(shape), s);
  }
  Shape result(a.shape().begin(), a.shape().begin() + at);
  result.insert(result.end(), inner.begin(), inner.end());
  result.insert(result.end(), a.shape().begin() + at + 1, a.shape().end());
  return reshape(a, std::move(result), s);
}

array squeeze(const array& a, const std::vector<int>& axes, StreamOrDevice s) {
  std::vector<int> sorted = checked_axes("squeeze", axes, a.ndim());
  if (sorted.empty()) return a;
  Shape shape = a.shape();
  for (size_t i = sorted.size(); i-- > 0;) {
    if (a.shape(sorted[i]) != 1) {
      throw std::invalid_argument(
          text("[squeeze] expected size 1 at axis ", sorted[i], ", got shape ", a.shape()));
    }
    shape.erase(shape.begin() + sorted[i]);
  }
  return make_node<Squeeze>(std::move(shape), a.dtype(), {a}, s, std::move(sorted));
}

array squeeze(const array& a, int axis, StreamOrDevice s) {
  return squeeze(a, std::vector<int>{axis}, s);
}

array squeeze(const array& a, StreamOrDevice s) {
  std::vector<int> axes;
  for (int i = 0; i < static_cast<int>(a.ndim()); ++i) {
    if (a.shape(i) == 1) axes.push_back(i);
  }
  return squeeze(a, axes, s);
}

array expand_dims(const array& a, const std::vector<int>& axes, StreamOrDevice s) {
  std::vector<int> sorted = checked_axes("expand_dims", axes, a.ndim() + axes.size());
  if (sorted.empty()) return a;
  Shape shape = a.shape();
  for (int axis : sorted) shape.insert(shape.begin() + axis, 1);
  return make_node<ExpandDims>(std::move(shape), a.dtype(), {a}, s, std::move(sorted));
}

array expand_dims(const array& a, int axis, StreamOrDevice s) {
  return expand_dims(a, std::vector<int>{axis}, s);
}

array transpose(const array& a, std::vector<int> axes, StreamOrDevice s) {
  if (axes.size() != a.ndim()) {
    throw std::invalid_argument(text("[transpose] expected ", a.ndim(), " axes for shape ",
                                     a.shape(), ", got axes ", axes));
  }
  checked_axes("transpose", axes, a.ndim());
  bool is_identity = true;
  Shape shape;
  for (size_t i = 0; i < axes.size(); ++i) {
    axes[i] = checked_axis("transpose", axes[i], a.ndim());
    is_identity = is_identity && axes[i] == static_cast<int>(i);
    shape.push_back(a.shape(axes[i]));
  }
  if (is_identity) return a;
  return make_node<Transpose>(std::move(shape), a.dtype(), {a}, s, std::move(axes));
}

array transpose(const array& a, StreamOrDevice s) {
  std::vector<int> axes = all_axes(a);
  std::reverse(axes.begin(), axes.end());
  return transpose(a, std::move(axes), s);
}

array swapaxes(const array& a, int axis1, int axis2, StreamOrDevice s) {
  int first = checked_axis("swapaxes", axis1, a.ndim());
  int second = checked_axis("swapaxes", axis2, a.ndim());
  std::vector<int> axes = all_axes(a);
  std::swap(axes[static_cast<size_t>(first)], axes[static_cast<size_t>(second)]);
  return transpose(a, std::move(axes), s);
}

array moveaxis(const array& a, int source, int destination, StreamOrDevice s) {
  int from = checked_axis("moveaxis", source, a.ndim());
  int to = checked_axis("moveaxis", destination, a.ndim());
  std::vector<int> axes = all_axes(a);
  axes.erase(axes.begin() + from);
  axes.insert(axes.begin() + to, from);
  return transpose(a, std::move(axes), s);
}

array broadcast_to(const array& a, const Shape& shape, StreamOrDevice s) {
  if (a.shape() == shape && !has_open_shape(a)) return a;
  checked_size("broadcast_to", shape, a.dtype());
  if (broadcast_shapes_for("broadcast_to", a.shape(), shape) != shape) {
    throw std::invalid_argument(text("[broadcast_to] an array of shape ", a.shape(),
                                     " cannot be broadcast to shape ", shape));
  }
  if (has_open_shape(a)) return broadcast_with(a, {}, shape, s);
  return make_node<Broadcast>(shape, a.dtype(), {a}, s);
}

std::vector<array> broadcast_arrays(const std::vector<array>& inputs, StreamOrDevice s) {
  Shape shape;
  for (const array& a : inputs) shape = broadcast_shapes_for("broadcast_arrays", shape, a.shape());
  bool is_open = std::any_of(inputs.begin(), inputs.end(), has_open_shape);
  std::vector<array> results;
  for (const array& a : inputs) {
    results.push_back(is_open ? broadcast_with(a, inputs, {}, s) : broadcast_to(a, shape, s));
  }
  return results;
}

array atleast_1d(const array& a, StreamOrDevice s) { return a.ndim() > 0 ? a : reshape(a, {1}, s); }

array atleast_2d(const array& a, StreamOrDevice s) {
  if (a.ndim() >= 2) return a;
  return a.ndim() == 0 ? reshape(a, {1, 1}, s) : expand_dims(a, 0, s);
}

array atleast_3d(const array& a, StreamOrDevice s) {
  switch (a.ndim()) {
    case 0:
      return reshape(a, {1, 1, 1}, s);
    case 1:
      return expand_dims(a, {0, 2}, s);
    case 2:
      return expand_dims(a, 2, s);
    default:
      return a;
  }
}

#define HOLDFAST_FOR_EACH(function)                                                 \
  std::vector<array> function(const std::vector<array>& arrays, StreamOrDevice s) { \
    std::vector<array> results;                                                     \
    for (const array& a : arrays) results.push_back(function(a, s));                \
    return results;                                                                 \
  }
HOLDFAST_FOR_EACH(atleast_1d)
HOLDFAST_FOR_EACH(atleast_2d)
HOLDFAST_FOR_EACH(atleast_3d)
#undef HOLDFAST_FOR_EACH

// --- copies and reinterpretations ---

array copy(array a, StreamOrDevice s) {
  Shape shape = a.shape();
  Dtype dtype = a.dtype();
  return make_node<Copy>(std::move(shape), dtype, inputs_of(std::move(a)), s);
}

array contiguous(const array& a, bool allow_col_major, StreamOrDevice s) {
  return make_node<Contiguous>(a.shape(), a.dtype(), {a}, s, allow_col_major);
}

array view(const array& a, const Dtype& dtype, StreamOrDevice s) {
  if (a.dtype() == dtype) return a;
  Shape shape = a.shape();
  const int item = dtype_of(dtype.val()).size();  // throws for one that a program made up
  if (static_cast<int>(a.itemsize()) != item) {
    if (shape.empty()) {
      throw std::invalid_argument(
          text("[view] a 0-d array can only be viewed as a dtype of its size, got ", a.dtype(),
               " and ", dtype));
    }
    int64_t bytes = int64_t{shape.back()} * static_cast<int64_t>(a.itemsize());
    if (bytes % item != 0) {
      throw std::invalid_argument(text("[view] expected a last axis of a multiple of ", item,
                                       " bytes, got shape ", a.shape(), " of ", a.dtype()));
    }
    shape.back() = safe_cast(bytes / item, "view");
  }
  return make_node<View>(std::move(shape), dtype, {a}, s);
}

array as_strided(array a, Shape shape, Strides strides, size_t offset, StreamOrDevice s) {
  if (shape.size() != strides.size()) {
    throw std::invalid_argument(text("[as_strided] expected one stride per dimension, got shape ",
                                     shape, " and strides ", strides));
  }
  int64_t size = checked_size("as_strided", shape, a.dtype());
  // Everything that can be reached must be inside the array. In 128 bits: strides are anything.
  __int128 lowest = offset, highest = offset;
  for (size_t i = 0; size > 0 && i < shape.size(); ++i) {
    __int128 reach = static_cast<__int128>(shape[i] - 1) * strides[i];
    (reach < 0 ? lowest : highest) += reach;
  }
  if (size > 0 && (lowest < 0 || highest >= static_cast<__int128>(a.size()))) {
    throw std::invalid_argument(text("[as_strided] shape ", shape, ", strides ", strides,
                                     " and offset ", offset, " leave the array of ", a.size(),
                                     " elements"));
  }
  array dense = contiguous(a, false, s);
  Dtype dtype = a.dtype();
  return make_node<AsStrided>(shape, dtype, inputs_of(std::move(dense)), s, shape,
                              std::move(strides), offset);
}

array stop_gradient(const array& a, StreamOrDevice s) {
  return make_node<StopGradient>(a.shape(), a.dtype(), {a}, s);
}

std::vector<array> depends(const std::vector<array>& inputs,
                           const std::vector<array>& dependencies) {
  if (inputs.empty()) return {};
  std::vector<array> all_inputs = inputs;
  all_inputs.insert(all_inputs.end(), dependencies.begin(), dependencies.end());
  std::vector<Shape> shapes;
  std::vector<Dtype> dtypes;
  for (const array& a : inputs) {
    shapes.push_back(a.shape());
    dtypes.push_back(a.dtype());
  }
  return detail::make_all_checked(std::move(shapes), dtypes,
                                  std::make_shared<Depends>(to_stream({}), inputs.size()),
                                  all_inputs);
}

array number_of_elements(const array& a, std::vector<int> axes, bool inverted, Dtype dtype,
                         StreamOrDevice s) {
  std::vector<int> sorted = checked_axes("number_of_elements", axes, a.ndim());
  // Nothing is known of a trace for any shape; elsewhere the number is a constant.
  if (detail::in_dynamic_tracing() && a.is_tracer()) {
    return make_node<NumberOfElements>({}, dtype, {stop_gradient(a, s)}, s, std::move(sorted),
                                       inverted);
  }
  return array(count_elements(a, sorted, inverted), dtype);
}

}  // namespace holdfast
