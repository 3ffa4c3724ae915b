// gather and scatter with any number of index arrays, and updates along one axis.
#include <span>

#include "ops/dynamic_shape.h"
#include "ops/scatter.h"

namespace holdfast {

namespace {

using kernels::IndexKind;

const char* function_of(UpdateMode mode) {
  return kernels::scatter_function(IndexKind::slices, mode);
}

}  // namespace

// --- gather ---

void GatherGeneral::encode(Encoder& encoder, const std::vector<array>& inputs,
                           std::vector<array>& outputs) {
  kernels::backend_of(encoder).gather(encoder, {IndexKind::slices, axes_}, inputs[0],
                                      std::span(inputs).subspan(1), outputs[0]);
}

// --- scatter ---

// inputs: the array, the updates, the indices.
void Scatter::encode(Encoder& encoder, const std::vector<array>& inputs,
                     std::vector<array>& outputs) {
  const array& updates = inputs[1];
  array& out = outputs[0];
  copy_or_take(encoder, inputs[0], out);
  if (updates.size() == 0 || out.size() == 0) return;
  kernels::backend_of(encoder).scatter(encoder, {IndexKind::slices, axes_}, mode_,
                                       std::span(inputs).subspan(2), updates, out);
}

namespace {

// The index arrays of one dtype, and the shape they broadcast to.
Shape checked_indices(const char* op, const array& a, std::vector<array>& indices,
                      std::vector<int>& axes, StreamOrDevice s) {
  if (indices.size() != axes.size()) {
    throw std::invalid_argument(text("[", op, "] expected an index array for each axis, got ",
                                     indices.size(), " arrays and axes ", axes));
  }
  // Counted from the front only, as in MLX, which refuses negative ones here.
  for (int axis : axes) {
    if (axis >= 0 && axis < static_cast<int>(a.ndim())) continue;
    throw std::invalid_argument(
        text("[", op, "] expected axes from 0 to ", a.ndim(), ", not included, got ", axes));
  }
  checked_axes(op, axes, a.ndim());
  Shape places;
  bool same_dtype = true;
  for (const array& index : indices) {
    if (!issubdtype(index.dtype(), integer)) {
      throw std::invalid_argument(
          text("[", op, "] expected indices of integers, got ", index.dtype()));
    }
    places = broadcast_shapes_for(op, places, index.shape());
    same_dtype = same_dtype && index.dtype() == indices[0].dtype();
  }
  if (!same_dtype) {
    for (array& index : indices) index = astype(index, int64, s);
  }
  return places;
}

// `places`: the shape of the indices.
void check_updates(const char* op, const array& a, const array& updates, const Shape& places) {
  size_t ndim = places.size() + a.ndim();
  bool fits = updates.ndim() == ndim;
  for (size_t i = 0; fits && i < ndim; ++i) {
    ShapeElem dim = updates.shape()[i];
    fits = i < places.size() ? dim == places[i] : dim <= a.shape()[i - places.size()];
  }
  if (!fits) {
    throw std::invalid_argument(text("[", op, "] expected updates of the indices' shape ", places,
                                     " followed by a slice within shape ", a.shape(), ", got ",
                                     updates.shape()));
  }
}

// A slice for each of the places.
Shape shape_of_slices(const array& a, Shape places, const Shape& slice_sizes) {
  bool fits = slice_sizes.size() == a.ndim();
  for (size_t i = 0; fits && i < slice_sizes.size(); ++i) {
    fits = slice_sizes[i] >= 0 && slice_sizes[i] <= a.shape()[i];
  }
  if (!fits) {
    throw std::invalid_argument(text("[gather] expected a slice size within each axis of shape ",
                                     a.shape(), ", got ", slice_sizes));
  }
  places.insert(places.end(), slice_sizes.begin(), slice_sizes.end());
  checked_size("gather", places, a.dtype());
  return places;
}

array scatter_with(UpdateMode mode, const array& a, std::vector<array> indices,
                   const array& updates, std::vector<int> axes, StreamOrDevice s) {
  const char* op = function_of(mode);
  check_updates(op, a, updates, checked_indices(op, a, indices, axes, s));
  std::vector<array> inputs = {a, astype(updates, a.dtype(), s)};
  inputs.insert(inputs.end(), indices.begin(), indices.end());
  return make_node<Scatter>(a.shape(), a.dtype(), std::move(inputs), s, mode, std::move(axes));
}

}  // namespace

std::vector<Shape> Scatter::output_shapes(const std::vector<array>& inputs) {
  const char* op = function_of(mode_);
  Shape places;
  for (size_t k = 2; k < inputs.size(); ++k) {
    places = broadcast_shapes_for(op, places, inputs[k].shape());
  }
  check_updates(op, inputs[0], inputs[1], places);
  return {inputs[0].shape()};
}

std::vector<Shape> GatherGeneral::output_shapes(const std::vector<array>& inputs) {
  Shape places;
  for (size_t k = 1; k < inputs.size(); ++k) {
    places = broadcast_shapes_for("gather", places, inputs[k].shape());
  }
  return {shape_of_slices(inputs[0], std::move(places), slice_sizes_)};
}

array gather(const array& a, const std::vector<array>& given, const std::vector<int>& given_axes,
             const Shape& slice_sizes, StreamOrDevice s) {
  std::vector<array> indices = given;
  std::vector<int> axes = given_axes;
  Shape shape = shape_of_slices(a, checked_indices("gather", a, indices, axes, s), slice_sizes);
  std::vector<array> inputs = {a};
  inputs.insert(inputs.end(), indices.begin(), indices.end());
  return make_node<GatherGeneral>(std::move(shape), a.dtype(), std::move(inputs), s,
                                  std::move(axes), slice_sizes);
}

array gather(const array& a, const array& indices, int axis, const Shape& slice_sizes,
             StreamOrDevice s) {
  return gather(a, std::vector<array>{indices}, std::vector<int>{axis}, slice_sizes, s);
}

#define HOLDFAST_SCATTER(name, mode)                                                  \
  array name(const array& a, const std::vector<array>& indices, const array& updates, \
             const std::vector<int>& axes, StreamOrDevice s) {                        \
    return scatter_with(UpdateMode::mode, a, indices, updates, axes, s);              \
  }                                                                                   \
  array name(const array& a, const array& indices, const array& updates, int axis,    \
             StreamOrDevice s) {                                                      \
    return scatter_with(UpdateMode::mode, a, std::vector<array>{indices}, updates,    \
                        std::vector<int>{axis}, s);                                   \
  }
HOLDFAST_SCATTER(scatter, replace)
HOLDFAST_SCATTER(scatter_add, add)
HOLDFAST_SCATTER(scatter_prod, multiply)
HOLDFAST_SCATTER(scatter_max, maximum)
HOLDFAST_SCATTER(scatter_min, minimum)
#undef HOLDFAST_SCATTER

// --- along one axis ---

namespace {

const char* axis_function_of(UpdateMode mode) {
  return kernels::scatter_function(IndexKind::along_axis, mode);
}

}  // namespace

// inputs: the array, the indices, the values; the last two of one shape.
void ScatterAxis::encode(Encoder& encoder, const std::vector<array>& inputs,
                         std::vector<array>& outputs) {
  array& out = outputs[0];
  copy_or_take(encoder, inputs[0], out);
  if (inputs[1].size() == 0) return;
  kernels::backend_of(encoder).scatter(encoder, {IndexKind::along_axis, {&axis_, 1}}, mode_,
                                       {&inputs[1], 1}, inputs[2], out);
}

namespace {

array scatter_along(UpdateMode mode, const array& a, const array& indices, const array& values,
                    int axis, StreamOrDevice s) {
  const char* op = axis_function_of(mode);
  int at = checked_axis(op, axis, a.ndim());
  if (!issubdtype(indices.dtype(), integer)) {
    throw std::invalid_argument(
        text("[", op, "] expected indices of integers, got ", indices.dtype()));
  }
  if (indices.ndim() != a.ndim()) {
    throw std::invalid_argument(text("[", op, "] expected indices with ", a.ndim(),
                                     " dimensions, got shape ", indices.shape()));
  }
  // Indices repeat along the other axes, values over all of them.
  Shape shape = a.shape();
  shape[static_cast<size_t>(at)] = indices.shape(at);
  if (broadcast_shapes_for(op, indices.shape(), shape) != shape ||
      broadcast_shapes_for(op, values.shape(), shape) != shape) {
    throw std::invalid_argument(text("[", op, "] indices of shape ", indices.shape(),
                                     " and values of shape ", values.shape(),
                                     " must broadcast to shape ", shape));
  }
  Dtype index_type = indices.dtype();
  bool is_kept = index_type == int32 || index_type == uint32 || index_type == int64;
  array places = is_kept ? indices : astype(indices, int64, s);
  array taken = astype(values, a.dtype(), s);
  // In a trace for any shape, of those two at least one must have it: ScatterAxis looks.
  if (has_open_shape(a) && broadcast_shapes(places.shape(), taken.shape()) == shape) {
    array wide = broadcast_like(taken, places, s);
    return make_node<ScatterAxis>(a.shape(), a.dtype(), {a, broadcast_like(places, taken, s), wide},
                                  s, mode, at);
  }
  return make_node<ScatterAxis>(
      a.shape(), a.dtype(), {a, broadcast_here(places, shape, s), broadcast_here(taken, shape, s)},
      s, mode, at);
}

}  // namespace

array put_along_axis(const array& a, const array& indices, const array& values, int axis,
                     StreamOrDevice s) {
  return scatter_along(UpdateMode::replace, a, indices, values, axis, s);
}

array scatter_add_axis(const array& a, const array& indices, const array& values, int axis,
                       StreamOrDevice s) {
  return scatter_along(UpdateMode::add, a, indices, values, axis, s);
}

}  // namespace holdfast
