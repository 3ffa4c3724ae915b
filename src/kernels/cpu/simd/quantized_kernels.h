// The kernels of low-bit weights that exist once per instruction set.
#pragma once

#include <cstddef>
#include <cstdint>

#include <holdfast/dtype.h>

#include "kernels/cpu/quantization.h"

namespace holdfast::kernels::cpu::simd {

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
  // prepare_vector, prepared_floats(depth, group) and in whole lines. Where has_digits says no,
  // there are only the elements, prepared_elements, and dot_vector must not be called.
  void (*prepare_vector)(Dtype::Val dtype, const void* x, int64_t depth, int64_t group,
                         void* prepared);
  void (*dot_vector)(Dtype::Val dtype, const void* prepared, int64_t depth, int64_t group,
                     const QuantizedRow& rows, int64_t count, float* out);
};
constexpr int64_t round_up_to_line(int64_t floats) { return (floats + 15) / 16 * 16; }
constexpr int64_t prepared_header = 16;
constexpr int64_t prepared_floats(int64_t depth, int64_t group) {
  return prepared_header + 2 * round_up_to_line(depth / group) + depth;
}
constexpr float prepared_as_digits = 1, prepared_as_elements = 0;
inline bool has_digits(const float* prepared) { return prepared[0] == prepared_as_digits; }
inline const float* prepared_elements(const float* prepared, int64_t depth, int64_t group) {
  return prepared + prepared_floats(depth, group) - depth;
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

}  // namespace holdfast::kernels::cpu::simd
