#include "kernels/plan/indexing.h"

#include <algorithm>
#include <stdexcept>

#include "base/text.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/gather.h"
#include "kernels/cpu/indexed_slices.h"
#include "kernels/cpu/scatter_axis.h"
#include "kernels/views.h"

namespace holdfast::kernels::cpu {

namespace {

// --- along one axis ---

// Encodes a plan that picks elements of `in` along an axis.
template <typename Plan>
void encode_picking(Encoder& encoder, const char* function, Plan plan, const array& in,
                    const array& indices, array& out, int axis) {
  const Bound source = encoder.input(in), places = encoder.input(indices);
  const Bound target = encoder.output(out);
  const int64_t tasks = plan.tasks(), axis_size = in.shape(axis);
  encoder.native(
      encoder.op(), tasks, 2 * static_cast<int64_t>(out.nbytes() + indices.nbytes()),
      [=, plan = std::move(plan)](const NativeContext& context, int64_t begin, int64_t end) {
        for (int64_t task = begin; task < end; ++task) {
          IndexStatus status =
              plan.run(task, context.data(source), context.data(places), context.data(target));
          if (status.ok) continue;
          throw std::runtime_error(text("[", function, "] index ", status.index, " at position ",
                                        status.position, " must be between ", -axis_size, " and ",
                                        axis_size - 1, " for axis ", axis));
        }
      });
}

GatherPlan take_plan(const array& in, const array& indices, int axis) {
  return GatherPlan(in.itemsize(), span_of(in.shape()), span_of(in.strides()), axis,
                    indices.dtype(), span_of(indices.shape()), span_of(indices.strides()));
}

GatherAxisPlan along_axis_plan(const array& in, const array& indices, const array& out, int axis) {
  const auto at = static_cast<size_t>(axis);
  Shape seen = in.shape();
  seen[at] = 1;
  Strides in_strides = broadcast_strides(seen, in.strides(), out.shape());
  in_strides[at] = 0;  // the index says where to go
  Strides index_strides = broadcast_strides(indices.shape(), indices.strides(), out.shape());
  std::span<const int64_t> lists[] = {span_of(in_strides), span_of(index_strides)};
  return GatherAxisPlan(in.itemsize(), indices.dtype(),
                        collapse_jointly(span_of(out.shape()), lists),
                        {in.shape(axis), in.shape(axis) - 1, in.strides(axis)});
}

// `out` holds the array; indices and values are of one shape.
void scatter_along_axis(Encoder& encoder, UpdateMode mode, int axis, const array& indices,
                        const array& values, array& out) {
  Shape shape = out.shape();
  shape.erase(shape.begin() + axis);
  Strides strides[3] = {out.strides(), indices.strides(), values.strides()};
  ScatterAxisPlan plan;
  plan.dtype = out.dtype();
  plan.index_type = indices.dtype();
  plan.mode = mode;
  for (int i = 0; i < 3; ++i) {
    plan.strides[i] = strides[i][static_cast<size_t>(axis)];
    strides[i].erase(strides[i].begin() + axis);
  }
  plan.axis_size = out.shape(axis);
  plan.count = indices.shape(axis);
  std::span<const int64_t> views[] = {span_of(strides[0]), span_of(strides[1]),
                                      span_of(strides[2])};
  plan.lines = collapse_jointly(span_of(shape), views);
  const Bound places = encoder.input(indices), source = encoder.input(values);
  encoder.input(out);
  const Bound target = encoder.output(out);
  const int64_t tasks = plan.tasks();
  encoder.native(
      encoder.op(), tasks, 8 * static_cast<int64_t>(values.size() * out.itemsize()),
      [=, plan = std::move(plan)](const NativeContext& context, int64_t begin, int64_t end) {
        IndexStatus status =
            plan.run(begin, end, context.data(places), context.data(source), context.data(target));
        if (status.ok) return;
        throw std::runtime_error(text("[", scatter_function(IndexKind::along_axis, plan.mode),
                                      "] index ", status.index, " must be between ",
                                      -plan.axis_size, " and ", plan.axis_size - 1));
      });
}

// --- slices ---

// What the arrays of indices say about slices of `a` over `places`, the shape that they broadcast
// to.
SliceIndex slice_index(std::span<const int> axes, std::span<const array> indices, const array& a,
                       const Shape& slice_sizes, const Shape& places) {
  std::vector<SliceIndex::Axis> list;
  for (size_t k = 0; k < axes.size(); ++k) {
    const array& index = indices[k];
    Strides seen = broadcast_strides(index.shape(), index.strides(), places);
    int64_t size = a.shape(axes[k]);
    list.push_back({axes[k],
                    {size, size - slice_sizes[static_cast<size_t>(axes[k])], a.strides(axes[k])},
                    IndexView::from_zero(index.dtype(), collapse(span_of(places), span_of(seen)))});
  }
  return SliceIndex(std::move(list));
}

// The arrays of indices in a command, and their addresses while it runs.
using BoundIndices = SmallVector<Bound, 4>;
using IndexAddresses = SmallVector<const void*, 4>;

BoundIndices bind_indices(Encoder& encoder, std::span<const array> indices) {
  BoundIndices bound;
  for (const array& index : indices) bound.push_back(encoder.input(index));
  return bound;
}

IndexAddresses addresses_of(const BoundIndices& bound, const NativeContext& context) {
  IndexAddresses addresses;
  for (Bound indices : bound) addresses.push_back(context.data(indices));
  return addresses;
}

void check_status(const IndexStatus& status, const char* function, const Shape& shape) {
  if (status.ok) return;
  throw std::runtime_error(text("[", function, "] index ", status.index, " at position ",
                                status.position, " leaves axis ", status.axis, " of shape ",
                                shape));
}

void gather_slices(Encoder& encoder, std::span<const int> axes, const array& in,
                   std::span<const array> indices, array& out) {
  constexpr int64_t task_bytes = 128 << 10;
  const auto split = out.shape().end() - static_cast<int64_t>(in.ndim());
  const Shape places(out.shape().begin(), split), slice_sizes(split, out.shape().end());
  CollapsedLayout slice = collapse(span_of(slice_sizes), span_of(in.strides()));
  const int64_t slice_bytes = slice.size * static_cast<int64_t>(in.itemsize());
  GatherSlices plan{slice_index(axes, indices, in, slice_sizes, places),
                    element_count(span_of(places)), std::move(slice), in.itemsize(),
                    std::max<int64_t>(1, task_bytes / slice_bytes)};
  const Bound source = encoder.input(in);
  BoundIndices bound = bind_indices(encoder, indices);
  const Bound target = encoder.output(out);
  const int64_t tasks = plan.tasks();
  encoder.native(encoder.op(), tasks, 2 * static_cast<int64_t>(out.nbytes()) + 8 * plan.places,
                 [=, shape = in.shape(), bound = std::move(bound), plan = std::move(plan)](
                     const NativeContext& context, int64_t begin, int64_t end) {
                   const IndexAddresses addresses = addresses_of(bound, context);
                   for (int64_t task = begin; task < end; ++task) {
                     check_status(
                         plan.run(task, context.data(source), addresses, context.data(target)),
                         "gather", shape);
                   }
                 });
}

void scatter_slices(Encoder& encoder, UpdateMode mode, std::span<const int> axes,
                    std::span<const array> indices, const array& updates, array& out) {
  const auto split = updates.shape().end() - static_cast<int64_t>(out.ndim());
  const Shape places(updates.shape().begin(), split), slice_sizes(split, updates.shape().end());
  const auto split_strides = updates.strides().end() - static_cast<int64_t>(out.ndim());
  const Strides place_strides(updates.strides().begin(), split_strides);
  const Strides slice_strides(split_strides, updates.strides().end());
  std::span<const int64_t> views[] = {span_of(out.strides()), span_of(slice_strides)};
  bool may_overlap = false;
  for (int axis : axes) may_overlap = may_overlap || slice_sizes[static_cast<size_t>(axis)] > 1;
  ScatterSlices plan(slice_index(axes, indices, out, slice_sizes, places),
                     element_count(span_of(places)),
                     collapse(span_of(places), span_of(place_strides)),
                     collapse_jointly(span_of(slice_sizes), views), out.dtype(), mode, may_overlap);
  const Bound source = encoder.input(updates);
  BoundIndices bound = bind_indices(encoder, indices);
  encoder.input(out);
  const Bound target = encoder.output(out);
  const int64_t tasks = plan.tasks();
  encoder.native(encoder.op(), tasks, 3 * static_cast<int64_t>(updates.nbytes()),
                 [=, shape = out.shape(), bound = std::move(bound), plan = std::move(plan)](
                     const NativeContext& context, int64_t begin, int64_t end) {
                   const IndexAddresses addresses = addresses_of(bound, context);
                   for (int64_t task = begin; task < end; ++task) {
                     check_status(
                         plan.run(task, addresses, context.data(source), context.data(target)),
                         scatter_function(IndexKind::slices, mode), shape);
                   }
                 });
}

}  // namespace

void CpuBackend::gather(Encoder& encoder, const Indexing& indexing, const array& in,
                        std::span<const array> indices, array& out) {
  encoder.allocate(out);
  if (out.size() == 0) return;
  if (indexing.kind == IndexKind::slices) {
    return gather_slices(encoder, indexing.axes, in, indices, out);
  }
  const array& index = indices[0];
  const int axis = indexing.axes[0];
  if (indexing.kind == IndexKind::take) {
    encode_picking(encoder, "take", take_plan(in, index, axis), in, index, out, axis);
  } else {
    encode_picking(encoder, "take_along_axis", along_axis_plan(in, index, out, axis), in, index,
                   out, axis);
  }
}

void CpuBackend::scatter(Encoder& encoder, const Indexing& indexing, UpdateMode mode,
                         std::span<const array> indices, const array& updates, array& out) {
  if (indexing.kind == IndexKind::along_axis) {
    scatter_along_axis(encoder, mode, indexing.axes[0], indices[0], updates, out);
  } else {
    scatter_slices(encoder, mode, indexing.axes, indices, updates, out);
  }
}

}  // namespace holdfast::kernels::cpu
