#include "kernels/views.h"

#include <algorithm>

#include "devices/memory.h"
#include "kernels/plan/layout.h"

namespace holdfast {

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
  // 0 where there is one element, too, as programs for MLX expect of what broadcast_to gives.
  for (size_t i = 0; i < shape.size(); ++i) {
    result[skip + i] = shape[i] == target[skip + i] && shape[i] != 1 ? strides[i] : 0;
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
  kernels::CollapsedLayout view = kernels::collapse(span_of(shape), span_of(strides));
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

bool is_aligned_everywhere(const array& in, size_t bytes) {
  const exec::Storage& storage = *exec::buffer_of(in.buffer())->storage();
  uintptr_t begin = storage.adopted ? reinterpret_cast<uintptr_t>(storage.address) : 0;
  return (begin + static_cast<uintptr_t>(in.offset())) % bytes == 0;
}

array with_axes(const array& in, std::span<const int> order) {
  Shape shape;
  Strides strides;
  for (int axis : order) {
    shape.push_back(in.shape(axis));
    strides.push_back(in.strides(axis));
  }
  array view(std::move(shape), in.dtype(), nullptr, {});
  share(in, view, strides);
  return view;
}

std::vector<int> axes_with_last(size_t axes, std::span<const int> last) {
  std::vector<int> order;
  order.reserve(axes);
  for (const bool is_last : {false, true}) {
    for (int axis = 0; axis < static_cast<int>(axes); ++axis) {
      if ((std::find(last.begin(), last.end(), axis) != last.end()) == is_last)
        order.push_back(axis);
    }
  }
  return order;
}

}  // namespace holdfast
