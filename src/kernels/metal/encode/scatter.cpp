#include <bit>
#include <numeric>

#include "base/text.h"
#include "kernels/metal/indexed.h"
#include "kernels/metal/metal_backend.h"
#include "kernels/metal/radix_sort.h"
#include "kernels/plan/indexing.h"
#include "kernels/views.h"

namespace holdfast::kernels::metal {
namespace {

// As in scatter.metal.
struct SortedScatter {
  int64_t distance;
  uint32_t count, first, launched, mode, is_wide;
};

// Updates over `places`, each a slice. The array is dense: elements have offsets that name them.
struct Scatter {
  std::vector<IndexedAxis> axes;  // strides: those of the array
  Shape places, slice;
  Strides origins;                      // of the array, over the places
  Strides update_places, update_slice;  // of the updates
  Strides out_slice;                    // of the array
  int64_t last_origin = 0;              // the largest
};

// `a` with `count` more axes of size 1 at the end.
array with_trailing_axes(const array& a, size_t count) {
  Shape shape = a.shape();
  Strides strides = a.strides();
  shape.resize(shape.size() + count, 1);
  strides.resize(strides.size() + count, 0);
  array result(shape, a.dtype(), nullptr, {});
  share(a, result, strides);
  return result;
}

int64_t last_offset(const Shape& shape, const Strides& strides) {
  int64_t last = 0;
  for (size_t i = 0; i < shape.size(); ++i) last += (shape[i] - 1) * strides[i];
  return last;
}

// Sorts the updates of a part of the places by `keys`, which say where they go.
void encode_sorted_part(Encoder& encoder, UpdateMode mode, const Scatter& scatter,
                        const array& keys, int64_t distance, int64_t limit, const WalkPart& places,
                        const array& updates, array& out) {
  const SortedNumbers sorted = sort_numbers(encoder, keys, limit);
  const auto item = static_cast<int64_t>(out.itemsize());
  std::span<const int64_t> views[] = {span_of(scatter.out_slice), span_of(scatter.update_slice)};
  JointLayout slice = collapse_jointly(span_of(scatter.slice), views), joined = slice;
  int64_t steps = 0;  // of the updates
  for (int64_t stride : places.layout.strides[0]) steps |= stride;
  const int64_t update_alignment = alignment_of(updates, (steps | places.bases[0]) * item);
  int64_t unit = join_units(joined, item, {alignment_of(out, distance * item), update_alignment});
  std::string type = dtype_name(out.dtype().val());
  if (mode == UpdateMode::replace) {
    type = "uint" + std::to_string(8 * std::min<int64_t>(unit, 8));
  } else if (unit < 16) {
    unit = item;
    joined = std::move(slice);
  }
  const int64_t factor = unit / item;
  WalkPart from = places;
  from.bases[0] /= factor;
  for (int64_t& stride : from.layout.strides[0]) stride /= factor;
  const WalkParameters<1> places_walk(from);
  const auto count = static_cast<int64_t>(keys.size());
  for (const WalkPart& part : parts_of(joined)) {
    const WalkParameters<2> walk(part);
    const Extent per_update = extent_of(part.layout.size, 0);
    const int64_t at_a_time = most_small_elements / part.layout.size;
    for (int64_t first = 0; first < count; first += at_a_time) {
      const int64_t launched = std::min(at_a_time, count - first);
      const SortedScatter parameters{distance / factor, fit(count), fit(first),
                                     fit(launched),     fit(mode),  unit == 16};
      Launch launch(encoder, "scatter", "scatter_sorted_" + type);
      launch.with(output(out), updates, sorted.numbers, sorted.positions);
      launch.with(parameters, per_update);
      places_walk.add_to(launch);
      walk.add_to(launch);
      launch.over(launched * part.layout.size);
    }
  }
}

// Of updates that may meet.
void encode_sorted(Encoder& encoder, UpdateMode mode, Scatter scatter, const array& updates,
                   array& out) {
  // Keys are offsets, as far as those are multiples of one number.
  int64_t distance = 0, last = scatter.last_origin;
  for (int64_t stride : scatter.origins) distance = std::gcd(distance, stride);
  for (const IndexedAxis& axis : scatter.axes) {
    distance = std::gcd(distance, axis.stride);
    last += axis.room * axis.stride;
  }
  distance = std::max<int64_t>(distance, 1);
  for (int64_t& stride : scatter.origins) stride /= distance;
  for (IndexedAxis& axis : scatter.axes) axis.stride /= distance;
  const array keys = offsets_of_indices(encoder, scatter.axes, scatter.places, scatter.origins);
  std::span<const int64_t> views[] = {span_of(scatter.update_places)};
  for (const WalkPart& part : parts_of(collapse_jointly(span_of(scatter.places), views))) {
    array part_keys(Shape{static_cast<ShapeElem>(part.layout.size)}, int64, nullptr, {});
    share(keys, part_keys, Strides{1}, part.first);
    encode_sorted_part(encoder, mode, scatter, part_keys, distance, last / distance + 1, part,
                       updates, out);
  }
}

// No two updates meet the same element.
void encode_distinct(Encoder& encoder, UpdateMode mode, const Scatter& scatter,
                     const array& updates, array& out) {
  const NamedElements named(encoder, scatter.axes, scatter.places);
  const Strides to = joined(scatter.origins, scatter.out_slice);
  const Strides index = joined(named.strides, no_strides(scatter.slice.size()));
  const Strides from = joined(scatter.update_places, scatter.update_slice);
  std::span<const int64_t> views[] = {span_of(to), span_of(index), span_of(from)};
  encode_update(encoder, mode,
                collapse_jointly(span_of(joined(scatter.places, scatter.slice)), views),
                named.indices, updates, out);
}

void scatter_along_axis(Encoder& encoder, UpdateMode mode, int axis, const array& indices,
                        const array& updates, array& out) {
  const int64_t size = out.shape(axis);
  Scatter scatter;
  scatter.axes = {{&indices, size, size - 1, out.strides(axis),
                   text("[", scatter_function(IndexKind::along_axis, mode),
                        "] index {} must be between ", -size, " and ", size - 1)}};
  scatter.places = updates.shape();
  scatter.origins = out.strides();
  scatter.origins[static_cast<size_t>(axis)] = 0;
  scatter.last_origin = last_offset(out.shape(), scatter.origins);
  scatter.update_places = updates.strides();
  if (updates.shape(axis) == 1) {
    encode_distinct(encoder, mode, scatter, updates, out);
  } else {
    encode_sorted(encoder, mode, std::move(scatter), updates, out);
  }
}

void scatter_slices(Encoder& encoder, UpdateMode mode, std::span<const int> axes,
                    std::span<const array> indices, const array& updates, array& out) {
  const size_t split = updates.ndim() - out.ndim(), all = updates.ndim();
  Scatter scatter;
  scatter.places = range_of(updates.shape(), 0, split);
  scatter.slice = range_of(updates.shape(), split, all);
  scatter.origins = no_strides(split);
  scatter.update_places = range_of(updates.strides(), 0, split);
  scatter.update_slice = range_of(updates.strides(), split, all);
  scatter.out_slice = out.strides();
  scatter.axes =
      axes_of_slices(scatter_function(IndexKind::slices, mode), axes, indices, out, scatter.slice);
  if (element_count(span_of(scatter.places)) == 1) {
    return encode_distinct(encoder, mode, scatter, updates, out);
  }
  bool may_overlap = false;
  for (int axis : axes) may_overlap = may_overlap || scatter.slice[static_cast<size_t>(axis)] > 1;
  std::vector<array> extended;
  if (may_overlap) {
    // Each element by itself.
    extended.reserve(scatter.axes.size());
    for (IndexedAxis& axis : scatter.axes) {
      extended.push_back(with_trailing_axes(*axis.indices, out.ndim()));
      axis.indices = &extended.back();
    }
    scatter.places = updates.shape();
    scatter.origins = joined(scatter.origins, scatter.out_slice);
    scatter.last_origin = last_offset(scatter.slice, scatter.out_slice);
    scatter.update_places = updates.strides();
    scatter.slice = {};
    scatter.out_slice = scatter.update_slice = {};
  }
  encode_sorted(encoder, mode, std::move(scatter), updates, out);
}

}  // namespace

void MetalBackend::scatter(Encoder& encoder, const Indexing& indexing, UpdateMode mode,
                           std::span<const array> indices, const array& updates, array& out) {
  if (indexing.kind == IndexKind::along_axis) {
    scatter_along_axis(encoder, mode, indexing.axes[0], indices[0], updates, out);
  } else {
    scatter_slices(encoder, mode, indexing.axes, indices, updates, out);
  }
}

}  // namespace holdfast::kernels::metal
