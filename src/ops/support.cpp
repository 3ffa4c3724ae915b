#include "ops/support.h"

#include "ops/dynamic_shape.h"

#include <algorithm>
#include <limits>
#include <numeric>

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

}  // namespace holdfast
