// The row normalisations that exist once per instruction set.
#pragma once

#include <cstdint>

#include <holdfast/dtype.h>

namespace holdfast::kernels::cpu::simd {

// Rows of `length` contiguous elements. `weight` and `bias` have the rows' dtype and length, or are
// null. Half types compute in float32 and round once. The order of a row's sums depends on the
// length alone.
struct NormRows {
  const void* input;
  int64_t input_stride;  // from row to row, in elements; the output is dense
  const void* weight;
  const void* bias;
  void* output;  // may be the input, if that is dense
  int64_t count;
  int64_t length;
  double epsilon;
  // Write past the cache: all rows of the output are aligned to 64 bytes, and the caller fences.
  bool stream = false;
};

struct NormKernels {
  // x / sqrt(mean(x^2) + epsilon) * weight
  void (*rms)(Dtype::Val dtype, const NormRows& rows);
  // (x - mean(x)) / sqrt(var(x) + epsilon) * weight + bias
  void (*layer)(Dtype::Val dtype, const NormRows& rows);
};

// Of the instruction set in use.
const NormKernels& norm_kernels();

}  // namespace holdfast::kernels::cpu::simd
