// gather and scatter: slices of an array at places that index arrays name.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <holdfast/dtype.h>

#include "kernels/cpu/combine.h"
#include "kernels/cpu/index_offsets.h"
#include "kernels/plan/layout.h"

namespace holdfast::kernels::cpu {

// Turns the values of several index arrays of one shape into offsets. Negative values count from
// the end of their axis.
class SliceIndex {
 public:
  struct Axis {
    int axis;  // of the array
    IndexedAxis range;
    IndexView index;
  };
  explicit SliceIndex(std::vector<Axis> axes) : axes_(std::move(axes)) {}

  // offsets[i - begin] = the offset of the slice at position i, for at most index_block positions.
  IndexStatus offsets(std::span<const void* const> indices, int64_t begin, int64_t end,
                      int64_t* offsets) const;

 private:
  std::vector<Axis> axes_;
};

// output[i, …] = the slice of the input at the i-th place; dense and row-major.
struct GatherSlices {
  SliceIndex index;
  int64_t places;
  CollapsedLayout slice;  // in the input
  size_t item_size;
  int64_t places_per_task;

  int64_t tasks() const { return (places + places_per_task - 1) / places_per_task; }
  IndexStatus run(int64_t task, const void* input, std::span<const void* const> indices,
                  void* output) const;
};

// The slice of the output at the i-th place is combined with updates[i, …], in the order of i.
class ScatterSlices {
 public:
  // `slice` views: output, updates. `update_places`: strides of the updates over the places.
  // `may_overlap`: slices at different places may share elements without being the same.
  ScatterSlices(SliceIndex index, int64_t places, CollapsedLayout update_places, JointLayout slice,
                Dtype::Val dtype, UpdateMode mode, bool may_overlap);

  // Each task takes a part of every slice, so that updates of one element stay in order.
  int64_t tasks() const { return tasks_; }
  IndexStatus run(int64_t task, std::span<const void* const> indices, const void* updates,
                  void* output) const;

 private:
  template <typename T, UpdateMode mode>
  void apply(T* out, const T* update, int64_t begin, int64_t end) const;

  SliceIndex index_;
  int64_t places_;
  CollapsedLayout update_places_;
  JointLayout slice_;
  Dtype::Val dtype_;
  UpdateMode mode_;
  BlockCombine combine_;
  int64_t part_ = 1, tasks_ = 1;
};

}  // namespace holdfast::kernels::cpu
