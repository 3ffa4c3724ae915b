#include "kernels/plan/layout.h"

#include <algorithm>

namespace holdfast::kernels {
namespace {

// Merges from the innermost dimension outwards; `stride(view, dimension)` reads the inputs. Results
// are innermost first until the final reversal.
template <typename Size, typename Stride>
void merge(std::span<const Size> shape, size_t views, const Stride& stride, int64_t& size,
           Dimensions& merged_shape, Dimensions* merged_strides) {
  size = 1;
  for (Size extent : shape) size *= extent;
  if (size == 0) {
    merged_shape = {0};
    for (size_t view = 0; view < views; ++view) merged_strides[view] = {1};
    return;
  }
  for (size_t dimension = shape.size(); dimension-- > 0;) {
    int64_t extent = shape[dimension];
    if (extent == 1) continue;
    bool joins = !merged_shape.empty();
    for (size_t view = 0; joins && view < views; ++view) {
      joins = stride(view, dimension) == merged_strides[view].back() * merged_shape.back();
    }
    if (joins) {
      merged_shape.back() *= extent;
      continue;
    }
    merged_shape.push_back(extent);
    for (size_t view = 0; view < views; ++view) {
      merged_strides[view].push_back(stride(view, dimension));
    }
  }
  std::reverse(merged_shape.begin(), merged_shape.end());
  for (size_t view = 0; view < views; ++view) {
    std::reverse(merged_strides[view].begin(), merged_strides[view].end());
  }
}

template <typename Size>
CollapsedLayout collapse_one(std::span<const Size> shape, std::span<const int64_t> strides) {
  CollapsedLayout layout;
  merge(
      shape, 1, [&](size_t, size_t dimension) { return strides[dimension]; }, layout.size,
      layout.shape, &layout.strides);
  return layout;
}

}  // namespace

size_t item_size(Dtype::Val dtype) {
  return dispatch_dtype(dtype, []<typename T>(std::type_identity<T>) { return sizeof(T); });
}

CollapsedLayout collapse(std::span<const int32_t> shape, std::span<const int64_t> strides) {
  return collapse_one(shape, strides);
}

CollapsedLayout collapse(std::span<const int64_t> shape, std::span<const int64_t> strides) {
  return collapse_one(shape, strides);
}

JointLayout collapse_jointly(std::span<const int32_t> shape,
                             std::span<const std::span<const int64_t>> stride_lists) {
  JointLayout layout;
  layout.strides.resize(stride_lists.size());
  merge(
      shape, stride_lists.size(),
      [&](size_t view, size_t dimension) { return stride_lists[view][dimension]; }, layout.size,
      layout.shape, layout.strides.data());
  return layout;
}

Dimensions dense_strides(std::span<const int32_t> shape) {
  Dimensions strides(shape.size());
  int64_t next = 1;
  for (size_t dimension = shape.size(); dimension-- > 0;) {
    strides[dimension] = next;
    next *= shape[dimension];
  }
  return strides;
}

int64_t element_count(std::span<const int32_t> shape) {
  int64_t count = 1;
  for (int32_t extent : shape) count *= extent;
  return count;
}

Odometer::Odometer(const CollapsedLayout& layout, int64_t position)
    : Odometer(layout.shape, layout.strides, position) {}

Odometer::Odometer(std::span<const int64_t> shape, std::span<const int64_t> strides,
                   int64_t position)
    : shape_(shape), strides_(strides) {
  if (shape.size() > inline_dimensions) heap_index_.resize(shape.size());
  if (shape.empty() || shape.back() == 0) return;
  int64_t rest = position;
  for (size_t dimension = shape.size(); dimension-- > 0;) {
    int64_t at = rest % shape[dimension];
    rest /= shape[dimension];
    index()[dimension] = at;
    offset_ += at * strides[dimension];
  }
  inner_size_ = shape.back();
  inner_stride_ = strides.back();
  run_ = inner_size_ - index()[shape.size() - 1];
}

void Odometer::carry() {
  run_ = inner_size_;
  offset_ -= inner_size_ * inner_stride_;
  int64_t* at = index();
  for (size_t dimension = shape_.size(); dimension-- > 1;) {
    size_t outer = dimension - 1;
    offset_ += strides_[outer];
    if (++at[outer] < shape_[outer]) return;
    offset_ -= shape_[outer] * strides_[outer];
    at[outer] = 0;
  }
}

int64_t offset_at(std::span<const int64_t> shape, std::span<const int64_t> strides,
                  int64_t position) {
  int64_t offset = 0;
  for (size_t dimension = shape.size(); dimension-- > 0;) {
    offset += position % shape[dimension] * strides[dimension];
    position /= shape[dimension];
  }
  return offset;
}

}  // namespace holdfast::kernels
