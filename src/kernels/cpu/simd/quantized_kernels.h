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

  // A bfloat16 vector against rows of 4-bit affine codes with groups of 64, `depth` a multiple of
  // 128, or null where the processor cannot multiply pairs of bfloat16. `prepared`: of
  // prepare_pairs, pair_bytes(depth).
  void (*prepare_pairs)(const void* x, int64_t depth, void* prepared);
  void (*dot_pairs)(const void* prepared, int64_t depth, const QuantizedRow& rows, int64_t count,
                    float* out);
};
constexpr size_t pair_bytes(int64_t depth) {
  return static_cast<size_t>(depth) * 2 + static_cast<size_t>(depth / 64) * 4 + 64;
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
bool has_quantized_pairs();

}  // namespace holdfast::cpu::simd
