// The softmax kernels that exist once per instruction set, one set of functions per dtype.
#pragma once

#include <cstddef>
#include <cstdint>

#include <holdfast/dtype.h>

namespace holdfast::kernels::cpu::simd {

// The longest row that `rows` takes.
inline constexpr int64_t softmax_row_limit = 8192;
// The most columns that the column functions take.
inline constexpr int64_t softmax_columns = 64;

// Rows, whose strides count elements.
struct SoftmaxRows {
  const void* input;
  int64_t input_stride;
  void* output;
  int64_t output_stride;
  int64_t length, count;  // at least one row
  bool stream;            // past the cache; the caller fences with `finish`
};

// Elements are contiguous. "Maxima", "sums" and "factors" are float, double for float64: arrays of
// softmax_columns. A NaN need not show in a maximum: it shows in the sum.
struct SoftmaxKernel {
  // Whole rows in one pass over memory.
  void (*rows)(const SoftmaxRows& all);

  // A row in pieces: the maximum, then the sum of exp(x - maximum), then exp(x - maximum) *
  // factor.
  double (*maximum)(const void* input, int64_t count, double so_far);
  double (*sum)(const void* input, int64_t count, double maximum);
  void (*write)(const void* input, int64_t count, double maximum, double sum, void* output);

  // And for neighbouring columns, one row of them at a time.
  void (*column_start)(int64_t count, void* maxima, void* sums);
  void (*column_maximum)(const void* input, int64_t count, void* maxima);
  void (*column_sum)(const void* input, int64_t count, const void* maxima, void* sums);
  void (*column_write)(const void* input, int64_t count, const void* maxima, const void* sums,
                       void* output);
};

struct SoftmaxKernels {
  const SoftmaxKernel* (*find)(Dtype::Val dtype);
  // Makes streamed writes visible to other threads.
  void (*finish)();
};

// Of the instruction set in use.
const SoftmaxKernels& softmax_kernels();

}  // namespace holdfast::kernels::cpu::simd
