// Reductions over any axes of a strided view.
//
// A plan cuts the work by shape alone: the result is bit-equal for any number of threads and any
// order of tasks. Float sums add blocks in float lanes and the blocks in double, so their error
// does not grow with the length.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <holdfast/dtype.h>

#include "kernels/cpu/simd/reduce_kernels.h"
#include "kernels/plan/layout.h"

namespace holdfast::kernels::cpu {

// What reduces elements of this type, for those who walk memory themselves.
// `output` is reduce_output_type, or float32 for the sum of a half type.
const simd::ReduceKernel& reduce_kernel(ReduceOp op, Dtype::Val input, Dtype::Val output);

// min and max propagate NaN; argmin and argmax give the first NaN, else the first best element,
// counted in row-major order over the reduced axes. Complex numbers compare lexicographically. Half
// types compute in float and round once.
class ReducePlan {
 public:
  // `axes`: distinct, 0 <= axis < shape.size(), any order. The output is dense, row-major over the
  // kept axes, of a type as for reduce_kernel.
  ReducePlan(ReduceOp op, Dtype::Val input, Dtype::Val output, std::span<const int32_t> shape,
             std::span<const int64_t> strides, std::span<const int> axes);
  ReducePlan(ReduceOp op, Dtype::Val input, std::span<const int32_t> shape,
             std::span<const int64_t> strides, std::span<const int> axes)
      : ReducePlan(op, input, reduce_output_type(op, input), shape, strides, axes) {}

  // Stages run one after the other (all tasks of stage 0, then all of stage 1); tasks of one stage
  // in any order.
  int stages() const { return chunks_ > 1 ? 2 : 1; }
  int64_t tasks(int stage) const { return stage == 0 ? first_tasks_ : combine_tasks_; }
  // Shared by all tasks of both stages, aligned to 64 bytes; 0 where there is one stage.
  size_t scratch_bytes() const { return scratch_bytes_; }
  int64_t output_size() const { return layout_.kept.size; }

  // `input` is the address of the view's first element.
  void run(int stage, int64_t task, const void* input, void* output, void* scratch) const noexcept;

 private:
  void plan_rows();
  void plan_columns();
  void run_rows(int64_t task, const char* input, char* output, char* scratch) const;
  void run_columns(int64_t task, const char* input, char* output, char* scratch) const;
  void run_combine(int64_t task, char* output, char* scratch) const;
  void reduce_one(const char* base, int64_t begin, int64_t end, void* state) const;

  const simd::ReduceKernel* kernel_;
  size_t item_size_;
  size_t output_item_size_;
  ReducedLayout layout_;
  bool columns_;  // walks along the outputs: they are closer together in memory
  // Columns: the outputs, split into blocks of columns_per_task_ inside its innermost dimension.
  int64_t columns_per_task_ = 0;
  int64_t column_blocks_ = 0;
  int64_t outputs_per_task_ = 1;
  int64_t chunk_ = 0;  // reduced positions per chunk
  int64_t chunks_ = 1;
  int64_t first_tasks_ = 0;
  int64_t combine_tasks_ = 0;
  size_t scratch_bytes_ = 0;
};

}  // namespace holdfast::kernels::cpu
