// The row normalisations that exist once per instruction set.
#pragma once

#include <cstdint>

#include <holdfast/dtype.h>

namespace holdfast::cpu::simd {

// One contiguous row. `weight` and `bias` have the row's dtype and length, or are null. Half types
// compute in float32 and round once. The order of the sums depends on the length alone.
struct NormRow {
  const void* input;
  const void* weight;
  const void* bias;
  void* output;  // may be the input
  int64_t length;
  double epsilon;
  // Write past the cache: the output is aligned to 64 bytes, and the caller fences.
  bool stream = false;
};

struct NormKernels {
  // x / sqrt(mean(x^2) + epsilon) * weight
  void (*rms)(Dtype::Val dtype, const NormRow& row);
  // (x - mean(x)) / sqrt(var(x) + epsilon) * weight + bias
  void (*layer)(Dtype::Val dtype, const NormRow& row);
};

// Of the instruction set in use.
const NormKernels& norm_kernels();

}  // namespace holdfast::cpu::simd
