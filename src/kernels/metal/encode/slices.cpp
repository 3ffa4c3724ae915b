#include "base/text.h"
#include "kernels/metal/indexed.h"
#include "kernels/metal/metal_backend.h"
#include "kernels/views.h"

namespace holdfast::kernels::metal {
namespace {

// A slice of an array that starts where `start` says.
class DynamicSlice {
 public:
  // The start is that of one axis, which the kernel reads itself, or becomes an offset first, also
  // for slices without elements: a bad one is an error for those, too.
  DynamicSlice(Encoder& encoder, const char* op, std::span<const int> axes, const Shape& whole,
               const Strides& strides, const Shape& slice, const array& start) {
    if (axes.size() == 1 && element_count(span_of(slice)) > 0) {
      const auto at = static_cast<size_t>(axes[0]);
      const int64_t room = int64_t{whole[at]} - slice[at];
      indices_ = Indices({&start, 0, room, strides[at], start_message(op, axes[0], room)});
      return;
    }
    offset_.push_back(offset_of_start(encoder, op, axes, whole, strides, slice, start));
    indices_.axis.indices = &offset_[0];
    indices_.are_offsets = true;
    for (int axis : axes) indices_.axis.stride |= strides[static_cast<size_t>(axis)];
  }
  DynamicSlice(const DynamicSlice&) = delete;
  const Indices& indices() const { return indices_; }

 private:
  std::vector<array> offset_;  // at most one
  Indices indices_;
};

JointLayout region_layout(const Shape& shape, const Strides& out, const Strides& update) {
  const Strides none(shape.size(), 0);
  std::span<const int64_t> views[] = {span_of(out), span_of(none), span_of(update)};
  return collapse_jointly(span_of(shape), views);
}

// `offset` elements after the first one of `a`.
array part_of(const array& a, const Shape& shape, const Strides& strides, int64_t offset) {
  array part(shape, a.dtype(), nullptr, {});
  share(a, part, strides, offset);
  return part;
}

// Copies `in`, which has elements, to a part of an output.
void encode_part(Encoder& encoder, const array& in, array part) {
  if (part.flags().row_contiguous) {
    backend_of(encoder).copy(encoder, in, part);
  } else {
    encode_update(encoder, UpdateMode::replace,
                  region_layout(in.shape(), part.strides(), in.strides()), {}, in, part);
  }
}

}  // namespace

void MetalBackend::dynamic_slice(Encoder& encoder, std::span<const int> axes, const array& in,
                                 const array& start, array& out) {
  encoder.allocate(out);
  const DynamicSlice slice(encoder, "slice", axes, in.shape(), in.strides(), out.shape(), start);
  if (out.size() == 0) return;
  const Strides none(out.ndim(), 0);
  std::span<const int64_t> views[] = {span_of(in.strides()), span_of(none)};
  encode_gather(encoder, collapse_jointly(span_of(out.shape()), views), slice.indices(), in, out);
}

void MetalBackend::slice_update(Encoder& encoder, const SliceRegion& region, UpdateMode mode,
                                const array& update, const array* start, array& out) {
  if (start) {
    const DynamicSlice slice(encoder, "slice_update", region.axes, out.shape(), region.strides,
                             update.shape(), *start);
    if (update.size() == 0) return;
    encode_update(encoder, mode, region_layout(update.shape(), region.strides, update.strides()),
                  slice.indices(), update, out);
  } else {
    array part = part_of(out, update.shape(), region.strides, region.offset);
    encode_update(encoder, mode, region_layout(update.shape(), part.strides(), update.strides()),
                  {}, update, part);
  }
}

// Each part of the border once: along axis k, what lies outside of the input there and inside of it
// along the axes before.
void MetalBackend::pad(Encoder& encoder, const Shape& low, const array& in, const array& value,
                       array& out) {
  encoder.allocate(out);
  if (out.size() == 0) return;
  // As many elements of the border as a unit may have.
  array block(Shape{static_cast<ShapeElem>(16 / out.itemsize())}, out.dtype(), nullptr, {});
  fill(encoder, value, block);
  int64_t offset = 0;
  Shape shape = out.shape();
  for (size_t k = 0; k < shape.size(); ++k) {
    const int64_t stride = out.strides()[k];
    const ShapeElem size = in.shape()[k], high = shape[k] - low[k] - size;
    auto encode_border = [&](ShapeElem begin, ShapeElem count) {
      shape[k] = count;
      if (element_count(span_of(shape)) == 0) return;
      array part = part_of(out, shape, out.strides(), offset + begin * stride);
      encode_repeated(encoder, region_layout(shape, part.strides(), Strides(shape.size(), 0)),
                      block, part);
    };
    encode_border(0, low[k]);
    encode_border(low[k] + size, high);
    shape[k] = size;
    offset += low[k] * stride;
  }
  if (in.size() > 0) encode_part(encoder, in, part_of(out, shape, out.strides(), offset));
}

void MetalBackend::concatenate(Encoder& encoder, int axis, const std::vector<array>& inputs,
                               array& out) {
  encoder.allocate(out);
  int64_t offset = 0;
  for (const array& in : inputs) {
    if (in.size() == 0) continue;
    encode_part(encoder, in, part_of(out, in.shape(), out.strides(), offset));
    offset += in.shape(axis) * out.strides(axis);
  }
}

}  // namespace holdfast::kernels::metal
