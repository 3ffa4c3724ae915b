#include "ops/support.h"

#include "ops/dynamic_shape.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "kernels/cpu/copy.h"

namespace holdfast {

const array& only(const std::vector<array>& inputs) {
  if (inputs.size() != 1) {
    throw std::invalid_argument(text("expected 1 input, got ", inputs.size()));
  }
  return inputs[0];
}

int checked_axis(const char* op, int axis, size_t ndim) {
  int count = static_cast<int>(ndim);
  if (axis < -count || axis >= count) {
    throw std::out_of_range(text("[", op, "] axis ", axis, " is out of range for an array with ",
                                 count, " dimensions"));
  }
  return axis < 0 ? axis + count : axis;
}

std::vector<int> checked_axes(const char* op, const std::vector<int>& axes, size_t ndim) {
  std::vector<int> result;
  result.reserve(axes.size());
  for (int axis : axes) result.push_back(checked_axis(op, axis, ndim));
  std::sort(result.begin(), result.end());
  if (std::adjacent_find(result.begin(), result.end()) != result.end()) {
    throw std::invalid_argument(text("[", op, "] each axis may appear once, got axes ", axes));
  }
  return result;
}

std::vector<int> all_axes(const array& a) {
  std::vector<int> axes(a.ndim());
  std::iota(axes.begin(), axes.end(), 0);
  return axes;
}

int64_t checked_size(const char* op, const Shape& shape, Dtype dtype) {
  constexpr int64_t limit = std::numeric_limits<int64_t>::max();
  int64_t bytes = dtype.size();
  bool empty = false;
  for (ShapeElem dim : shape) {
    if (dim < 0) {
      throw std::invalid_argument(
          text("[", op, "] dimensions must not be negative, got shape ", shape));
    }
    empty = empty || dim == 0;
  }
  for (ShapeElem dim : shape) {
    if (dim == 0) continue;
    if (bytes > limit / dim) {
      throw std::overflow_error(text("[", op, "] the size of shape ", shape, " with dtype ", dtype,
                                     " must be below 2^63 bytes"));
    }
    bytes *= dim;
  }
  return empty ? 0 : bytes / dtype.size();
}

Shape broadcast_shapes_for(const char* op, const Shape& a, const Shape& b) {
  if (a == b) return a;
  try {
    return broadcast_shapes(a, b);
  } catch (const std::invalid_argument&) {
    throw std::invalid_argument(text(
        "[", op, "] expected shapes that broadcast (equal dimensions or 1), got ", a, " and ", b));
  }
}

Dtype at_least_float(Dtype dtype) { return issubdtype(dtype, inexact) ? dtype : float32; }

Strides row_major_strides(const Shape& shape) {
  Strides strides(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;) {
    // Wraps around only where an empty array has very large dimensions.
    strides[i - 1] = static_cast<int64_t>(static_cast<uint64_t>(strides[i]) *
                                          static_cast<uint64_t>(std::max(shape[i], 1)));
  }
  return strides;
}

Strides broadcast_strides(const Shape& shape, const Strides& strides, const Shape& target) {
  Strides result(target.size(), 0);
  size_t skip = target.size() - shape.size();
  for (size_t i = 0; i < shape.size(); ++i) {
    result[skip + i] = shape[i] == target[skip + i] ? strides[i] : 0;
  }
  return result;
}

ViewLayout layout_of(const Shape& shape, const Strides& strides) {
  bool row = true, column = true;
  int64_t expected = 1, extent = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    if (shape[i] == 0) return {{true, true, true}, 0};
    if (shape[i] == 1) continue;
    row = row && strides[i] == expected;
    expected *= shape[i];
    extent += (shape[i] - 1) * (strides[i] < 0 ? -strides[i] : strides[i]);
  }
  expected = 1;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 1) continue;
    column = column && strides[i] == expected;
    expected *= shape[i];
  }
  bool gapless = row || column;
  if (!gapless) {
    // Without its repeated dimensions, and in order of strides, the view must be dense. Negative
    // strides never are: the range would not start at the view's first element.
    SmallVector<std::pair<int64_t, int64_t>> walk;
    for (size_t i = 0; i < shape.size(); ++i) {
      if (shape[i] != 1 && strides[i] != 0) walk.push_back({strides[i], shape[i]});
    }
    std::sort(walk.begin(), walk.end());
    int64_t dense = 1;
    gapless = true;
    for (auto [stride, dim] : walk) {
      gapless = gapless && stride == dense;
      dense *= dim;
    }
  }
  return {{gapless, row, column}, static_cast<size_t>(extent)};
}

void share(const array& in, array& out, const Strides& strides, int64_t offset) {
  ViewLayout layout = layout_of(out.shape(), strides);
  if (layout.data_size == 0) offset = 0;
  out.copy_shared_buffer(in, strides, layout.flags, layout.data_size, offset);
}

bool reshaped_strides(const Shape& shape, const Strides& strides, const Shape& target,
                      Strides& result) {
  result = row_major_strides(target);
  cpu::CollapsedLayout view = cpu::collapse(span_of(shape), span_of(strides));
  if (view.size <= 1) return true;
  // Every dimension of the view must be the product of some neighbours in the target.
  size_t part = view.shape.size();
  int64_t room = 1, stride = 0;
  for (size_t i = target.size(); i-- > 0;) {
    if (target[i] == 1) continue;
    if (room == 1) {
      --part;
      room = view.shape[part];
      stride = view.strides[part];
    }
    if (room % target[i] != 0) return false;
    result[i] = stride;
    stride *= target[i];
    room /= target[i];
  }
  return true;
}

SliceRange normalized_range(int64_t start, int64_t stop, int64_t step, int64_t size) {
  if (start < 0) start += size;
  if (stop < 0) stop += size;
  if (step > 0) {
    start = std::clamp<int64_t>(start, 0, size);
    stop = std::clamp<int64_t>(stop, start, size);
    return {static_cast<ShapeElem>(start),
            static_cast<ShapeElem>((stop - start + step - 1) / step)};
  }
  start = std::clamp<int64_t>(start, -1, size - 1);
  stop = std::clamp<int64_t>(stop, -1, start);
  int64_t count = (start - stop - step - 1) / -step;
  return {static_cast<ShapeElem>(std::max<int64_t>(start, 0)), static_cast<ShapeElem>(count)};
}

array sum_to_shape(const array& a, const Shape& shape, StreamOrDevice s) {
  if (a.shape() == shape) return a;
  std::vector<int> axes;
  size_t added = a.ndim() - shape.size();
  for (size_t i = 0; i < a.ndim(); ++i) {
    if (i < added || shape[i - added] != a.shape()[i]) axes.push_back(static_cast<int>(i));
  }
  return reshape_here(sum(a, axes, true, s), shape, s);
}

array scaled_cotangent(const array& cotangent, const array& factor, StreamOrDevice s) {
  return multiply(cotangent, factor.dtype() == complex64 ? conjugate(factor, s) : factor, s);
}

array with_mapped_axis(const array& a, int axis, int size, StreamOrDevice s) {
  if (axis >= 0) return moveaxis(a, axis, 0, s);
  return broadcast_here(expand_dims(a, 0, s), with_front(size, a.shape()), s);
}

void encode_copy(Encoder& encoder, const char* op, const array& in, array& out) {
  encoder.allocate(out);
  if (out.size() == 0) return;
  encoder.input(in);
  encoder.output(out);
  size_t item = in.itemsize();
  const char* source = in.data<char>();
  char* target = out.data<char>();
  cpu::CollapsedLayout layout = cpu::collapse(span_of(in.shape()), span_of(in.strides()));
  int64_t size = layout.size;
  int64_t grain = cpu::copy_grain(layout, item);
  bool dense = layout.is_dense();
  bool stream = dense && out.nbytes() > cpu::stream_threshold();
  encoder.native(op, (size + grain - 1) / grain, 2 * static_cast<int64_t>(out.nbytes()),
                 [=, layout = std::move(layout)](int64_t begin, int64_t end) {
                   int64_t first = begin * grain;
                   int64_t last = std::min(size, end * grain);
                   int64_t bytes = static_cast<int64_t>(item);
                   if (dense) {
                     cpu::copy_dense(target + first * bytes, source + first * bytes,
                                     static_cast<size_t>((last - first) * bytes), stream);
                   } else {
                     cpu::gather_range(source, layout, item, first, last, target + first * bytes);
                   }
                 });
}

array make_temporary(Encoder& encoder, size_t bytes) {
  // A dimension ends at 2^31; a temporary need not.
  constexpr size_t row = 1 << 20;
  Shape shape = bytes < row ? Shape{static_cast<ShapeElem>(bytes)}
                            : Shape{safe_cast((bytes + row - 1) / row, "temporary"), row};
  array temporary(std::move(shape), uint8, nullptr, {});
  bytes = temporary.nbytes();
  temporary.set_data(encoder.allocate(bytes));
  return temporary;
}

array make_dense(Encoder& encoder, const char* op, const array& in) {
  if (in.flags().row_contiguous) return in;
  array dense(in.shape(), in.dtype(), nullptr, {});
  encode_copy(encoder, op, in, dense);
  return dense;
}

array make_rows_dense(Encoder& encoder, const char* op, const array& in) {
  if (in.ndim() == 0 || in.strides(-1) == 1 || in.shape(-1) <= 1) return in;
  return make_dense(encoder, op, in);
}

void allocate_or_take(Encoder& encoder, const array& in, array& out) {
  if (in.is_donatable() && in.flags().row_contiguous && in.itemsize() == out.itemsize() &&
      in.size() == out.size()) {
    share(in, out, row_major_strides(out.shape()));
  } else {
    encoder.allocate(out);
  }
}

void copy_or_take(Encoder& encoder, const char* op, const array& in, array& out) {
  if (in.is_donatable() && in.flags().row_contiguous) {
    share(in, out, row_major_strides(out.shape()));
  } else {
    encode_copy(encoder, op, in, out);
  }
}

}  // namespace holdfast
