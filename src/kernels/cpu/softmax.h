// Softmax over one or several axes of a strided view: exp(x - max) / sum(exp(x - max)).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <holdfast/dtype.h>

#include "kernels/plan/layout.h"

namespace holdfast::kernels::cpu {

// Tasks are fixed groups of rows (a row: the positions that are normalised together). float16 and
// bfloat16 compute in float32 and round once; a row of only -infinity gives NaN, as in NumPy. Rows
// up to 8192 elements move through memory once.
class SoftmaxPlan {
 public:
  // dtype: float16, bfloat16, float32 or float64. `axes`: distinct, 0 <= axis < shape.size(), any
  // order. The output is dense, row-major, of the same shape. It may be the input itself if that is
  // dense too.
  SoftmaxPlan(Dtype::Val dtype, std::span<const int32_t> shape, std::span<const int64_t> strides,
              std::span<const int> axes);

  int64_t tasks() const { return tasks_; }
  // `input` is the address of the view's first element.
  void run(int64_t task, const void* input, void* output) const noexcept;

 private:
  enum class Path : uint8_t { rows, columns, strided };

  void run_rows(int64_t begin, int64_t end, const char* input, char* output) const;
  void run_columns(int64_t begin, int64_t end, const char* input, char* output) const;
  void run_strided(int64_t begin, int64_t end, const char* input, char* output) const;

  Dtype::Val dtype_;
  size_t item_size_;
  Path path_ = Path::strided;
  bool stream_ = false;
  JointLayout kept_;                        // views: input, output
  JointLayout reduced_;                     // views: input, output
  CollapsedLayout row_input_, row_output_;  // the two views of reduced_; of a strided path only
  int64_t units_ = 0;                       // rows, or blocks of columns
  int64_t units_per_task_ = 1;
  int64_t column_blocks_ = 0;
  int64_t tasks_ = 0;
};

}  // namespace holdfast::kernels::cpu
