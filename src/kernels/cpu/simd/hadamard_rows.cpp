// Hadamard transforms of rows, compiled once per instruction set.
#include "kernels/cpu/simd/hadamard_kernels.h"
#include "kernels/cpu/simd/vectorise.h"

namespace holdfast::kernels::cpu::HOLDFAST_SIMD_TARGET {
namespace {

constexpr int64_t cached = 4096;  // elements that stay in the first-level cache

// Sums and differences of elements `half` apart.
void combine(float* row, int64_t half) {
  HOLDFAST_VECTORISE
  for (int64_t i = 0; i < half; ++i) {
    float a = row[i], b = row[i + half];
    row[i] = a + b;
    row[i + half] = a - b;
  }
}

// Of a power of two of elements. Halves first, so that large rows are walked in cached pieces.
void transform_power(float* row, int64_t length) {
  if (length > cached) {
    transform_power(row, length / 2);
    transform_power(row + length / 2, length / 2);
    return combine(row, length / 2);
  }
  for (int64_t half = 1; half < length; half *= 2) {
    for (int64_t first = 0; first < length; first += 2 * half) combine(row + first, half);
  }
}

// H_factor across the pieces of the row, a few columns at a time.
void combine_pieces(float* row, int64_t factor, int64_t power, const uint32_t* signs) {
  constexpr int64_t width = 16;
  float columns[28][width];
  for (int64_t first = 0; first < power; first += width) {
    int64_t count = power - first < width ? power - first : width;
    for (int64_t k = 0; k < factor; ++k) {
      for (int64_t i = 0; i < width; ++i) {
        columns[k][i] = i < count ? row[k * power + first + i] : 0.0f;
      }
    }
    for (int64_t j = 0; j < factor; ++j) {
      float sums[width] = {};
      for (int64_t k = 0; k < factor; ++k) {
        float sign = (signs[j] >> k & 1u) != 0 ? -1.0f : 1.0f;
        for (int64_t i = 0; i < width; ++i) sums[i] += sign * columns[k][i];
      }
      for (int64_t i = 0; i < count; ++i) row[j * power + first + i] = sums[i];
    }
  }
}

void transform(float* row, int64_t factor, int64_t power, const uint32_t* signs, float scale) {
  for (int64_t piece = 0; piece < factor; ++piece) transform_power(row + piece * power, power);
  if (factor > 1) combine_pieces(row, factor, power, signs);
  HOLDFAST_VECTORISE
  for (int64_t i = 0; i < factor * power; ++i) row[i] *= scale;
}

}  // namespace

extern const simd::HadamardKernels hadamard_kernels;
const simd::HadamardKernels hadamard_kernels{transform};

}  // namespace holdfast::kernels::cpu::HOLDFAST_SIMD_TARGET
