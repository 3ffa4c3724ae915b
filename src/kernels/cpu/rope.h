// Rotary position embedding of a [batch, heads, positions, features] view.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include <holdfast/dtype.h>

namespace holdfast::kernels::cpu {

namespace simd {
struct RopeKernels;
}

struct RopeShape {
  int64_t batch, heads, positions, features;
  // Of the input, in elements; features are contiguous. The output is dense.
  int64_t batch_stride, head_stride, position_stride;
};

// Pair i of position p turns by the angle (offset + p) * scale * rate(i), which is computed in
// double: far positions stay exact. rate(i) is base^(-i / pairs), or 1 / frequencies[i].
class RopePlan {
 public:
  // dtype: float16, bfloat16 or float32. 2 * pairs <= features. `base` empty: frequencies are given
  // when the plan runs.
  RopePlan(Dtype::Val dtype, const RopeShape& shape, int64_t pairs, bool traditional,
           std::optional<double> base, double scale);

  int64_t tasks() const { return tasks_; }
  size_t task_scratch_bytes() const;
  // One offset per batch, `offset_stride` apart (0: one for all). `frequencies`: `pairs` of
  // them; not used with a base.
  void run(int64_t task, const void* input, const int64_t* offsets, int64_t offset_stride,
           const float* frequencies, void* output, void* task_scratch) const noexcept;

 private:
  Dtype::Val dtype_;
  int64_t item_;
  RopeShape shape_;
  int64_t pairs_, padded_pairs_;
  bool traditional_;
  double scale_;
  const simd::RopeKernels& kernels_;
  std::vector<double> rates_;  // as kernels_ arrange them, padded with zeros; empty without a base
  bool stream_ = false;
  int64_t positions_per_task_ = 1, heads_per_task_ = 1;
  int64_t position_tasks_ = 0, head_tasks_ = 0;
  int64_t tasks_ = 0;
};

}  // namespace holdfast::kernels::cpu
