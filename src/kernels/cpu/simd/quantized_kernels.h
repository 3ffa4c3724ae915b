// The kernels of low-bit weights that exist once per instruction set.
#pragma once

#include <cstddef>
#include <cstdint>

#include <holdfast/dtype.h>

#include "kernels/cpu/quantization.h"

namespace holdfast::cpu::simd {

struct QuantizedRow {
  const void* codes;
  const void* scales;
  const void* biases;
};

struct QuantizedKernels {
  // Elements [first, first + count) of a row, in whole groups, as `to` (float32, float16,
  // bfloat16). `dtype` is that of affine scales and biases.
  void (*dequantize)(const QuantizedFormat& format, Dtype::Val dtype, const QuantizedRow& row,
                     int64_t first, int64_t count, Dtype::Val to, void* out);
  // The sum of x[k] * y[k].
  float (*dot)(const float* x, const float* y, int64_t count);
  // out[i] += factor * x[i]
  void (*add_scaled)(float factor, const float* x, int64_t count, float* out);
  void (*widen)(Dtype::Val dtype, const void* from, int64_t count, float* to);
  void (*narrow)(Dtype::Val dtype, const float* from, int64_t count, void* to);

  // A vector of float16 or bfloat16 against rows of 4-bit affine codes, scales and biases of the
  // same dtype, `depth` a multiple of 128; null where only AVX-512 would do. `prepared`: of
  // prepare_vector, prepared_floats(depth, group).
  void (*prepare_vector)(Dtype::Val dtype, const void* x, int64_t depth, int64_t group,
                         void* prepared);
  void (*dot_vector)(Dtype::Val dtype, const void* prepared, int64_t depth, int64_t group,
                     const QuantizedRow& rows, int64_t count, float* out);
};
constexpr int64_t prepared_floats(int64_t depth, int64_t group) {
  return (depth + depth / 8 + depth / group + 1 + 15) / 16 * 16;  // whole lines
}

struct QuantizeKernels {
  // A group of `count` weights (a multiple of 32, at most 128) as packed codes, with its scale and
  // bias.
  void (*affine)(const float* from, int64_t count, int bits, uint8_t* codes, float& scale,
                 float& bias);
  // Codes of a byte each, packed; `count` is a multiple of 8.
  void (*pack)(const uint8_t* from, int64_t count, int bits, uint8_t* to);
};

// Of the instruction set in use.
const QuantizedKernels& quantized_kernels();
const QuantizeKernels& quantize_kernels();

}  // namespace holdfast::cpu::simd
