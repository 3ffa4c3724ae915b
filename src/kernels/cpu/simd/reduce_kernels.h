// The reduction kernels that exist once per instruction set, one set of functions per (op, dtype).
#pragma once

#include <cstddef>
#include <cstdint>

#include <holdfast/dtype.h>

#include "kernels/plan/reduce.h"

namespace holdfast::kernels::cpu {

namespace simd {

// A reduction runs on states: what is known of one output after some of its elements. Strides count
// elements. Indices matter to argmin and argmax alone: the position of an element among those of
// its output.
struct ReduceKernel {
  size_t state_size;
  void (*initialise)(void* states, int64_t count);
  // Adds `length` contiguous elements at input + i * stride to states[i], for i < count. Its first
  // element has index `first_index`.
  void (*rows)(const void* input, int64_t count, int64_t stride, int64_t length,
               int64_t first_index, void* states);
  // The same, with all elements added to one state; row i begins at index first_index + i * length.
  void (*rows_to_one)(const void* input, int64_t count, int64_t stride, int64_t length,
                      int64_t first_index, void* state);
  // Adds input[r * stride + c] to states[c], for r < rows and c < columns; row r has index
  // first_index + r.
  void (*columns)(const void* input, int64_t rows, int64_t stride, int64_t columns,
                  int64_t first_index, void* states);
  // into[i] takes in from[i], whose elements come later.
  void (*combine)(const void* from, int64_t count, void* into);
  // The output elements of finished states.
  void (*finish)(const void* states, int64_t count, void* output);
};

struct ReduceSumKernels {
  // sum, prod. `widens`: the sum of a half type is written as float32.
  const ReduceKernel* (*find)(ReduceOp op, Dtype::Val input, bool widens);
};
struct ReduceOrderKernels {
  const ReduceKernel* (*find)(ReduceOp op, Dtype::Val input);  // min, max, all, any
};
struct ReduceArgKernels {
  const ReduceKernel* (*find)(ReduceOp op, Dtype::Val input);  // argmin, argmax
};

const ReduceSumKernels& reduce_sum_kernels();
const ReduceOrderKernels& reduce_order_kernels();
const ReduceArgKernels& reduce_arg_kernels();

}  // namespace simd
}  // namespace holdfast::kernels::cpu
