// take: slices of an array picked by an array of indices along one axis.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <holdfast/dtype.h>

#include "kernels/cpu/layout.h"

namespace holdfast::cpu {

// What a task met. An index outside [-axis_size, axis_size) is never followed: the task stops
// there, and says which.
struct GatherStatus {
  bool ok = true;
  int64_t index =
      0;  // the value that is out of range (a uint64 beyond int64 appears as its maximum)
  int64_t position = 0;  // row-major position in the index array
};

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
  GatherStatus run(int64_t task, const void* input, const void* indices,
                   void* output) const noexcept;

 private:
  template <typename Index>
  GatherStatus run_typed(int64_t begin, int64_t end, const char* input, const char* indices,
                         char* output) const;

  size_t item_size_;
  Dtype::Val index_type_;
  CollapsedLayout outer_, inner_, index_;
  int64_t axis_size_, axis_stride_;
  int64_t slices_ = 0;  // outer_.size * index_.size
  int64_t slices_per_task_ = 1;
  int64_t tasks_ = 0;
};

}  // namespace holdfast::cpu
