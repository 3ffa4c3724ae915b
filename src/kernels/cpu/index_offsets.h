// Index arrays as offsets: what take, take_along_axis, gather and scatter have in common.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <holdfast/dtype.h>

#include "kernels/cpu/simd/index_kernels.h"
#include "kernels/plan/layout.h"

namespace holdfast::kernels::cpu {

// What a task met. An index that would leave its axis is never followed: the task stops there, and
// says which.
struct IndexStatus {
  bool ok = true;
  int64_t index = 0;     // the value (a uint64 beyond int64 appears as its maximum)
  int64_t position = 0;  // in the index array, row-major
  int axis = 0;
};

// Places whose offsets are found at a time: they stay in the first-level cache.
inline constexpr int64_t index_block = 512;

// An index array as the output sees it, beside the offsets that its indices are added to.
struct IndexView {
  Dtype::Val type;  // any integer type
  CollapsedLayout indices;
  Dimensions origins;  // strides of the offsets, over the same shape

  // All offsets start from 0.
  static IndexView from_zero(Dtype::Val type, CollapsedLayout indices);

  // offsets[i - begin] = origin i + axis.stride * index i, for begin <= i < end. Negative indices
  // count from the end.
  IndexStatus offsets(const void* values, int64_t begin, int64_t end, const IndexedAxis& axis,
                      int64_t* offsets) const;
};

// to[i] = base[offsets[i]], for i < count. itemsize: 1, 2, 4 or 8.
void gather_elements(size_t itemsize, const void* base, const int64_t* offsets, int64_t count,
                     void* to);

}  // namespace holdfast::kernels::cpu
