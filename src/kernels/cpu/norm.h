// Normalisation along the last axis: root mean square, and mean with variance.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <holdfast/dtype.h>

#include "kernels/plan/layout.h"
#include "kernels/plan/norm.h"

namespace holdfast::kernels::cpu {

// Tasks are fixed groups of rows.
class NormPlan {
 public:
  // dtype: float16, bfloat16, float32 or float64. `shape` has one dimension or more; the last one
  // has stride 1 (or size 1). The output is dense; weight and bias are dense rows of that dtype.
  NormPlan(NormKind kind, Dtype::Val dtype, std::span<const int32_t> shape,
           std::span<const int64_t> strides, double epsilon);

  int64_t tasks() const { return tasks_; }
  // `weight` and `bias` may be null. The output may be the input if that is dense.
  void run(int64_t task, const void* input, const void* weight, const void* bias,
           void* output) const noexcept;

 private:
  NormKind kind_;
  Dtype::Val dtype_;
  int64_t item_;
  double epsilon_;
  int64_t length_;
  CollapsedLayout rows_;
  bool stream_ = false;
  int64_t rows_per_task_ = 1;
  int64_t tasks_ = 0;
};

}  // namespace holdfast::kernels::cpu
