// take and take_along_axis: elements of an array picked by indices along one axis.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <holdfast/dtype.h>

#include "kernels/cpu/index_offsets.h"
#include "kernels/plan/layout.h"

namespace holdfast::kernels::cpu {

// output[outer..., indices..., inner...] = input[outer..., indices[...], inner...], dense and
// row-major, where `outer` are the axes before `axis` and `inner` those behind it. Negative indices
// count from the end.
class GatherPlan {
 public:
  // index_type: any integer type. itemsize: 1, 2, 4 or 8.
  GatherPlan(size_t itemsize, std::span<const int32_t> shape, std::span<const int64_t> strides,
             int axis, Dtype::Val index_type, std::span<const int32_t> index_shape,
             std::span<const int64_t> index_strides);

  int64_t tasks() const { return tasks_; }
  IndexStatus run(int64_t task, const void* input, const void* indices,
                  void* output) const noexcept;

 private:
  // The slices at base + offsets[i], for i < count, one behind the other.
  void copy_slices(const char* base, const int64_t* offsets, int64_t count, char* to) const;

  size_t item_size_;
  CollapsedLayout outer_, inner_;
  IndexView index_;
  IndexedAxis axis_;
  int64_t places_;      // in the index array
  int64_t slices_ = 0;  // outer_.size * places_
  int64_t slices_per_task_ = 1;
  int64_t tasks_ = 0;
  bool stream_ = false;
};

// output[i] = the element of the input at base[i] + index[i] * stride, dense and row-major.
class GatherAxisPlan {
 public:
  // `views`: the input with a stride of 0 along the axis, and the indices, both as seen by the
  // output. index_type, itemsize as above.
  GatherAxisPlan(size_t itemsize, Dtype::Val index_type, const JointLayout& views, IndexedAxis axis)
      : item_size_(itemsize),
        index_{index_type, views.view(1), views.strides[0]},
        axis_(axis),
        size_(views.size) {}

  int64_t tasks() const { return (size_ + grain - 1) / grain; }
  IndexStatus run(int64_t task, const void* input, const void* indices,
                  void* output) const noexcept;

 private:
  static constexpr int64_t grain = 16 * index_block;

  size_t item_size_;
  IndexView index_;
  IndexedAxis axis_;
  int64_t size_;
};

}  // namespace holdfast::kernels::cpu
