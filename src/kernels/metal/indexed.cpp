#include "kernels/metal/indexed.h"

#include <bit>

#include "base/text.h"
#include "kernels/staging.h"
#include "kernels/views.h"

namespace holdfast::kernels::metal {
namespace {

// As in indexing.metal.
struct AxisParameters {
  int64_t size, room, stride;
  uint64_t first, factor, divisor;
  uint32_t kind;
};
constexpr uint32_t kind_none = 8, kind_offsets = 9;
struct UpdateParameters {
  uint32_t mode, is_wide;
};
struct DynamicAxis {
  int64_t stride, room;
};

uint32_t kind_of(Dtype dtype) {
  const auto width = static_cast<uint32_t>(std::bit_width(dtype.size()) - 1);
  return width + (issubdtype(dtype, signedinteger) ? 4 : 0);
}

AxisParameters parameters_of(const Indices& indices, const WalkPart& part, int64_t factor) {
  const IndexedAxis& axis = indices.axis;
  AxisParameters parameters{axis.size,       axis.room,   axis.stride / factor,
                            fit(part.first), fit(factor), fit(axis.divisor),
                            kind_none};
  if (axis.indices) parameters.kind = kind_of(axis.indices->dtype());
  if (indices.are_offsets) {
    parameters.kind = kind_offsets;
    parameters.stride = std::bit_width(static_cast<uint64_t>(factor)) - 1;
  }
  if (!axis.indices) parameters.stride = 0;
  return parameters;
}

// Do kernels read indices of this dtype themselves? Others become offsets first.
bool is_read_directly(Dtype dtype) { return dtype == int32 || dtype == uint32 || dtype == int64; }

// As many threadgroups of 256 as positions need.
void over_positions(Launch& launch, int64_t size, int64_t per_thread) {
  launch.over(divide_up(size, 256 * per_thread) * 256, 256);
}

}  // namespace

array offsets_of_indices(Encoder& encoder, std::span<const IndexedAxis> axes, const Shape& places,
                         const Strides& origins) {
  array offsets(places, int64, nullptr, {});
  encoder.allocate(offsets);
  bool is_first = true;
  for (const IndexedAxis& axis : axes) {
    const array& index = *axis.indices;
    const Strides seen = broadcast_strides(index.shape(), index.strides(), places);
    std::span<const int64_t> views[] = {span_of(seen), span_of(origins)};
    for (const WalkPart& part : parts_of(collapse_jointly(span_of(places), views))) {
      const WalkParameters<2> walk(part);
      AxisParameters parameters = parameters_of(Indices(axis), part, 1);
      if (axis.divisor > 0) parameters.divisor = 1;
      const uint32_t starts = is_first;
      Launch launch(encoder, "indexing", "index_offsets");
      launch.with(index, output(offsets), starts, parameters);
      walk.add_to(launch);
      launch.errors({axis.message}).over(part.layout.size);
    }
    is_first = false;
  }
  return offsets;
}

std::string start_message(const char* op, int axis, int64_t room) {
  return text("[", op, "] start {} of axis ", axis, " must be between 0 and ", room);
}

array offset_of_start(Encoder& encoder, const char* op, std::span<const int> axes,
                      const Shape& whole, const Strides& strides, const Shape& slice,
                      const array& start) {
  array offset(Shape{1}, int64, nullptr, {});
  encoder.allocate(offset);
  SmallVector<DynamicAxis, 4> parameters;
  std::vector<std::string> messages;
  for (int axis : axes) {
    const auto at = static_cast<size_t>(axis);
    const int64_t room = int64_t{whole[at]} - slice[at];
    parameters.push_back({strides[at], room});
    messages.push_back(start_message(op, axis, room));
  }
  const auto count = static_cast<int32_t>(axes.size());
  const int64_t step = start.ndim() == 0 ? 0 : start.strides(0);
  const uint32_t kind = kind_of(start.dtype());
  Launch(encoder, "indexing", "start_offset")
      .with(start, output(offset), parameters, count, step, kind)
      .errors(messages)
      .over(1, 1);
  return offset;
}

NamedElements::NamedElements(Encoder& encoder, std::vector<IndexedAxis> axes, const Shape& places)
    : strides(no_strides(places.size())) {
  if (axes.empty()) return;
  if (axes.size() == 1 && is_read_directly(axes[0].indices->dtype())) {
    const array& index = *axes[0].indices;
    indices = Indices(std::move(axes[0]));
    strides = broadcast_strides(index.shape(), index.strides(), places);
    return;
  }
  offsets_.push_back(offsets_of_indices(encoder, axes, places, strides));
  indices.axis.indices = &offsets_[0];
  indices.are_offsets = true;
  for (const IndexedAxis& axis : axes) indices.axis.stride |= axis.stride;
  strides = offsets_[0].strides();
}

std::vector<IndexedAxis> axes_of_slices(const char* function, std::span<const int> axes,
                                        std::span<const array> indices, const array& a,
                                        const Shape& slice) {
  std::vector<IndexedAxis> list;
  for (size_t k = 0; k < axes.size(); ++k) {
    const int64_t size = a.shape(axes[k]);
    list.push_back({&indices[k], size, size - slice[static_cast<size_t>(axes[k])],
                    a.strides(axes[k]),
                    text("[", function, "] index {} at position {} leaves axis ", axes[k],
                         " of shape ", a.shape()),
                    element_count(span_of(slice))});
  }
  return list;
}

void encode_gather(Encoder& encoder, JointLayout layout, const Indices& indices, const array& in,
                   array& out) {
  const auto item = static_cast<int64_t>(in.itemsize());
  const int64_t unit = join_units(layout, item, {alignment_of(in, indices.axis.stride * item), 0});
  const array& index = indices.axis.indices ? *indices.axis.indices : in;
  for (const WalkPart& part : parts_of(layout)) {
    const WalkParameters<2> walk(part);
    const AxisParameters axis = parameters_of(indices, part, unit / item);
    Launch launch(encoder, "indexing", "gather_" + std::to_string(unit));
    launch.with(in, index, output(out), axis);
    walk.add_to(launch);
    launch.errors({indices.axis.message});
    over_positions(launch, part.layout.size, unit <= 2 ? 8 : 4);
  }
}

namespace {

// `update_alignment`: 0 for a block that is repeated.
void encode_joined(Encoder& encoder, UpdateMode mode, JointLayout layout, const Indices& indices,
                   const array& updates, int64_t update_alignment, array& out) {
  const auto item = static_cast<int64_t>(out.itemsize());
  JointLayout joined = layout;
  int64_t unit = join_units(joined, item,
                            {alignment_of(out, indices.axis.stride * item), 0, update_alignment});
  std::string type = dtype_name(out.dtype().val());
  if (mode == UpdateMode::replace) {
    type = "uint" + std::to_string(8 * std::min<int64_t>(unit, 8));
  } else if (unit < 16) {
    unit = item;
    joined = std::move(layout);
  }
  const UpdateParameters how{fit(mode), unit == 16};
  const array& index = indices.axis.indices ? *indices.axis.indices : updates;
  for (const WalkPart& part : parts_of(joined)) {
    const WalkParameters<3> walk(part);
    const AxisParameters axis = parameters_of(indices, part, unit / item);
    Launch launch(encoder, "indexing", "update_" + type);
    launch.with(output(out), index, updates, how, axis);
    walk.add_to(launch);
    launch.errors({indices.axis.message});
    over_positions(launch, part.layout.size, 4);
  }
}

}  // namespace

void encode_update(Encoder& encoder, UpdateMode mode, JointLayout layout, const Indices& indices,
                   const array& updates, array& out) {
  encode_joined(encoder, mode, std::move(layout), indices, updates, alignment_of(updates), out);
}

void encode_repeated(Encoder& encoder, JointLayout layout, const array& block, array& out) {
  encode_joined(encoder, UpdateMode::replace, std::move(layout), {}, block, 0, out);
}

}  // namespace holdfast::kernels::metal
