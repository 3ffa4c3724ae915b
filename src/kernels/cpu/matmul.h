// Batched matrix product C = A B, on tiles cut by shape alone.
//
// The kernels are our own. Calling Debian's serial OpenBLAS (0.3.21, built without locking) from
// several threads at once was tried first: some results differed from those of one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <holdfast/dtype.h>

#include "kernels/plan/layout.h"

namespace holdfast::kernels::cpu {

// How a stack of matrices lies in memory; strides count elements and may be anything. Batch strides
// belong to the common (broadcast) batch shape: 0 where the operand is repeated.
struct MatrixStack {
  std::span<const int64_t> batch_strides;
  int64_t row_stride = 0;
  int64_t column_stride = 0;
};

// A is [batch..., m, k], B is [batch..., k, n], C is dense [batch..., m, n].
// dtype: float32, float64, complex64, float16 or bfloat16 (the half types multiply in float32 and
// round once, or with `widens` not at all: C is of float32).
class MatmulPlan {
 public:
  // `in_parts`: the depth may be cut, for a matrix that is read along its rows to give few outputs.
  MatmulPlan(Dtype::Val dtype, std::span<const int32_t> batch_shape, int64_t m, int64_t n,
             int64_t k, const MatrixStack& a, const MatrixStack& b, bool in_parts = false,
             bool widens = false);

  int64_t tasks() const { return tasks_; }
  // Scratch for each task that runs at the same time, aligned to 64 bytes; below 4 MiB.
  size_t task_scratch_bytes() const { return task_scratch_bytes_; }
  // `c` is memory of part_bytes() in place of the product where the depth is cut.
  void run(int64_t task, const void* a, const void* b, void* c, void* task_scratch) const noexcept;

  // Not 0: after all tasks, products [begin, end) of the batch are to be added up from their parts.
  size_t part_bytes() const;
  int64_t products() const { return batch_.size; }
  void add_parts(int64_t begin, int64_t end, const void* parts, void* c) const noexcept;

 private:
  void plan_tiles();
  void plan_vector(bool in_parts);
  void run_one(int64_t product, int64_t tile, const char* a, const char* b, char* c,
               void* task_scratch) const;
  void run_part(int64_t product, int64_t part, int64_t first, int64_t outputs, const char* a,
                const char* b, char* parts) const;

  Dtype::Val dtype_, c_dtype_;
  size_t item_size_, c_item_size_;
  int64_t m_, n_, k_;
  int64_t a_row_stride_, a_column_stride_, b_row_stride_, b_column_stride_;
  JointLayout batch_;  // views: a, b
  bool vector_ =
      false;  // m or n is 1, and the other operand is contiguous along one of its dimensions
  int64_t tile_rows_ = 1, tile_columns_ = 1;
  int64_t row_tiles_ = 0, column_tiles_ = 0;
  int64_t part_depth_ = 0, parts_ = 1;  // of the depth
  int64_t products_per_task_ = 1;       // small products: several of the batch in one task
  int64_t tasks_ = 0;
  size_t task_scratch_bytes_ = 0;
};

}  // namespace holdfast::kernels::cpu
