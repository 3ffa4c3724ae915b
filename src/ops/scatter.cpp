// gather and scatter with any number of index arrays, and updates along one axis.
#include <algorithm>
#include <numeric>

#include "kernels/cpu/copy.h"
#include "ops/dynamic_shape.h"
#include "ops/scatter.h"

namespace holdfast {

namespace {

const char* function_of(UpdateMode mode) {
  constexpr const char* names[] = {"scatter", "scatter_add", "scatter_prod", "scatter_max",
                                   "scatter_min"};
  return names[static_cast<size_t>(mode)];
}

// The index arrays of a primitive: inputs[first], ….
kernels::cpu::SliceIndex slice_index(const array& a, const Strides& strides,
                                     const std::vector<int>& axes, const Shape& slice_sizes,
                                     const std::vector<array>& inputs, size_t first,
                                     const Shape& places) {
  std::vector<kernels::cpu::SliceIndex::Axis> list;
  for (size_t k = 0; k < axes.size(); ++k) {
    size_t axis = static_cast<size_t>(axes[k]);
    const array& index = inputs[first + k];
    Strides seen = broadcast_strides(index.shape(), index.strides(), places);
    int64_t size = a.shape(axes[k]);
    list.push_back({axes[k],
                    {size, size - slice_sizes[axis], strides[axis]},
                    kernels::cpu::IndexView::from_zero(
                        index.dtype(), kernels::collapse(span_of(places), span_of(seen)))});
  }
  return kernels::cpu::SliceIndex(std::move(list));
}

int64_t size_of(const Shape& shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

std::runtime_error index_error(const char* op, const kernels::cpu::IndexStatus& status,
                               const Shape& shape) {
  return std::runtime_error(text("[", op, "] index ", status.index, " at position ",
                                 status.position, " leaves axis ", status.axis, " of shape ",
                                 shape));
}

}  // namespace

// --- gather ---

void GatherGeneral::encode(Encoder& encoder, const std::vector<array>& inputs,
                           std::vector<array>& outputs) {
  const array& in = inputs[0];
  array& out = outputs[0];
  encoder.allocate(out);
  if (out.size() == 0) return;
  Shape places(out.shape().begin(), out.shape().end() - static_cast<int64_t>(in.ndim()));
  constexpr int64_t task_bytes = 128 << 10;
  kernels::CollapsedLayout slice = kernels::collapse(span_of(slice_sizes_), span_of(in.strides()));
  int64_t slice_bytes = slice.size * static_cast<int64_t>(in.itemsize());
  kernels::cpu::GatherSlices plan{
      slice_index(in, in.strides(), axes_, slice_sizes_, inputs, 1, places), size_of(places),
      std::move(slice), in.itemsize(), std::max<int64_t>(1, task_bytes / slice_bytes)};
  std::vector<const void*> indices;
  for (const array& input : inputs) encoder.input(input);
  for (size_t k = 1; k < inputs.size(); ++k) indices.push_back(inputs[k].data<char>());
  encoder.output(out);
  const void* source = in.data<char>();
  void* target = out.data<char>();
  int64_t tasks = plan.tasks();
  encoder.native(name(), tasks, 2 * static_cast<int64_t>(out.nbytes()) + 8 * plan.places,
                 [=, shape = in.shape(), indices = std::move(indices), plan = std::move(plan)](
                     int64_t begin, int64_t end) {
                   for (int64_t task = begin; task < end; ++task) {
                     kernels::cpu::IndexStatus status = plan.run(task, source, indices, target);
                     if (!status.ok) throw index_error("gather", status, shape);
                   }
                 });
}

// --- scatter ---

// inputs: the array, the updates, the indices.
void Scatter::encode(Encoder& encoder, const std::vector<array>& inputs,
                     std::vector<array>& outputs) {
  const array& updates = inputs[1];
  array& out = outputs[0];
  copy_or_take(encoder, inputs[0], out);
  if (updates.size() == 0 || out.size() == 0) return;
  auto split = updates.shape().end() - static_cast<int64_t>(out.ndim());
  Shape places(updates.shape().begin(), split), slice_sizes(split, updates.shape().end());
  auto split_strides = updates.strides().end() - static_cast<int64_t>(out.ndim());
  Strides place_strides(updates.strides().begin(), split_strides);
  Strides slice_strides(split_strides, updates.strides().end());
  std::span<const int64_t> views[] = {span_of(out.strides()), span_of(slice_strides)};
  bool may_overlap = false;
  for (int axis : axes_) may_overlap = may_overlap || slice_sizes[static_cast<size_t>(axis)] > 1;
  kernels::cpu::ScatterSlices plan(
      slice_index(out, out.strides(), axes_, slice_sizes, inputs, 2, places), size_of(places),
      kernels::collapse(span_of(places), span_of(place_strides)),
      kernels::collapse_jointly(span_of(slice_sizes), views), out.dtype(), mode_, may_overlap);
  std::vector<const void*> indices;
  for (size_t k = 1; k < inputs.size(); ++k) encoder.input(inputs[k]);
  for (size_t k = 2; k < inputs.size(); ++k) indices.push_back(inputs[k].data<char>());
  encoder.input(out);
  encoder.output(out);
  const void* source = updates.data<char>();
  void* target = out.data<char>();
  int64_t tasks = plan.tasks();
  encoder.native(name(), tasks, 3 * static_cast<int64_t>(updates.nbytes()),
                 [=, mode = mode_, shape = out.shape(), indices = std::move(indices),
                  plan = std::move(plan)](int64_t begin, int64_t end) {
                   for (int64_t task = begin; task < end; ++task) {
                     kernels::cpu::IndexStatus status = plan.run(task, indices, source, target);
                     if (!status.ok) throw index_error(function_of(mode), status, shape);
                   }
                 });
}

namespace {

// The index arrays of one dtype, and the shape they broadcast to.
Shape checked_indices(const char* op, const array& a, std::vector<array>& indices,
                      std::vector<int>& axes, StreamOrDevice s) {
  if (indices.size() != axes.size()) {
    throw std::invalid_argument(text("[", op, "] expected an index array for each axis, got ",
                                     indices.size(), " arrays and axes ", axes));
  }
  checked_axes(op, axes, a.ndim());
  for (int& axis : axes) axis = checked_axis(op, axis, a.ndim());
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

array gather(const array& a, const std::vector<array>& given, const std::vector<int>& given_axes,
             const Shape& slice_sizes, StreamOrDevice s) {
  std::vector<array> indices = given;
  std::vector<int> axes = given_axes;
  Shape shape = checked_indices("gather", a, indices, axes, s);
  bool fits = slice_sizes.size() == a.ndim();
  for (size_t i = 0; fits && i < slice_sizes.size(); ++i) {
    fits = slice_sizes[i] >= 0 && slice_sizes[i] <= a.shape()[i];
  }
  if (!fits) {
    throw std::invalid_argument(text("[gather] expected a slice size within each axis of shape ",
                                     a.shape(), ", got ", slice_sizes));
  }
  shape.insert(shape.end(), slice_sizes.begin(), slice_sizes.end());
  checked_size("gather", shape, a.dtype());
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
  return mode == UpdateMode::replace ? "put_along_axis" : "scatter_add_axis";
}

struct ScatterAxisPlan {
  kernels::JointLayout lines;  // views: the output, the indices, the values, each without the axis
  int64_t axis_size, count;
  int64_t strides[3];  // of the axis, in the same order

  // Lines [begin, end): one index after the other, so that neighbours are read together.
  template <typename T, typename Index, UpdateMode mode>
  void run(T* out, const Index* indices, const T* values, int64_t begin, int64_t end) const {
    for (int64_t j = 0; j < count; ++j) {
      kernels::Odometer to(lines.shape, lines.strides[0], begin);
      kernels::Odometer index_at(lines.shape, lines.strides[1], begin);
      kernels::Odometer from(lines.shape, lines.strides[2], begin);
      for (int64_t line = begin; line < end; ++line) {
        Index given = indices[index_at.offset() + j * strides[1]];
        int64_t index = static_cast<int64_t>(given);
        bool beyond = std::is_unsigned_v<Index> && index < 0;
        if (index < 0) index += axis_size;
        if (beyond || index < 0 || index >= axis_size) {
          throw std::runtime_error(text("[", axis_function_of(mode), "] index ", +given,
                                        " must be between ", -axis_size, " and ", axis_size - 1));
        }
        T& place = out[to.offset() + index * strides[0]];
        place = kernels::cpu::combined<mode>(place, values[from.offset() + j * strides[2]]);
        to.advance(1);
        index_at.advance(1);
        from.advance(1);
      }
    }
  }
};

}  // namespace

// inputs: the array, the indices, the values; the last two of one shape.
void ScatterAxis::encode(Encoder& encoder, const std::vector<array>& inputs,
                         std::vector<array>& outputs) {
  const array& indices = inputs[1];
  const array& values = inputs[2];
  array& out = outputs[0];
  copy_or_take(encoder, inputs[0], out);
  if (indices.size() == 0) return;
  Shape shape = out.shape();
  shape.erase(shape.begin() + axis_);
  Strides strides[3] = {out.strides(), indices.strides(), values.strides()};
  ScatterAxisPlan plan;
  for (int i = 0; i < 3; ++i) {
    plan.strides[i] = strides[i][static_cast<size_t>(axis_)];
    strides[i].erase(strides[i].begin() + axis_);
  }
  plan.axis_size = out.shape(axis_);
  plan.count = indices.shape(axis_);
  std::span<const int64_t> views[] = {span_of(strides[0]), span_of(strides[1]),
                                      span_of(strides[2])};
  plan.lines = kernels::collapse_jointly(span_of(shape), views);
  encoder.input(indices);
  encoder.input(values);
  encoder.input(out);
  encoder.output(out);
  const void* places = indices.data<char>();
  const void* source = values.data<char>();
  void* target = out.data<char>();
  int64_t lines = plan.lines.size;
  int64_t grain = std::max<int64_t>(1, std::min<int64_t>(512, 8192 / plan.count));
  dispatch_dtype(out.dtype(), [&](auto tag) {
    dispatch_dtype(indices.dtype(), [&](auto index_tag) {
      using T = typename decltype(tag)::type;
      using Index = typename decltype(index_tag)::type;
      if constexpr (std::is_same_v<Index, int32_t> || std::is_same_v<Index, int64_t> ||
                    std::is_same_v<Index, uint32_t>) {
        bool adds = mode_ == UpdateMode::add;
        encoder.native(name(), (lines + grain - 1) / grain,
                       8 * static_cast<int64_t>(values.size() * out.itemsize()),
                       [=, plan = std::move(plan)](int64_t begin, int64_t end) {
                         auto run = [&](auto mode) {
                           plan.template run<T, Index, mode.value>(
                               static_cast<T*>(target), static_cast<const Index*>(places),
                               static_cast<const T*>(source), begin * grain,
                               std::min(lines, end * grain));
                         };
                         if (adds)
                           run(std::integral_constant<UpdateMode, UpdateMode::add>{});
                         else
                           run(std::integral_constant<UpdateMode, UpdateMode::replace>{});
                       });
      }
    });
  });
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
