// Numbers as stored rows with bits.
#pragma once

#include "kernels/cpu/simd/elements.h"
#include "kernels/cpu/simd/kv_kernels.h"
#include "kernels/cpu/simd/vector_math.h"

namespace holdfast::kernels::cpu::HOLDFAST_SIMD_TARGET {

// The sum of squares: 32 sums, of every 32nd number each, one after the other.
inline float sum_of_squares(const float* row, int64_t dims) {
  constexpr int sums = 32, vectors = sums / lane_count<float>;
  Lanes<float> parts[vectors] = {};
  for (int64_t j = 0; j < dims; j += lane_count<float>) {
    const Lanes<float> values = load_lanes<float>(row + j);
    Lanes<float>& part = parts[j / lane_count<float> % vectors];
    part = multiply_add(values, values, part);
  }
  float total = 0;
  for (int v = 0; v < vectors; ++v) {
    for (int l = 0; l < lane_count<float>; ++l) total += parts[v][l];
  }
  return total;
}

inline float pack_turbo(const float* row, int64_t dims, int bits, const float* codebook,
                        const float* boundaries, uint32_t* words) {
  const int count = (1 << bits) - 1;
  uint64_t pending = 0;
  int filled = 0;
  float squares = 0;
  for (int64_t j = 0; j < dims; j += lane_count<float>) {
    const Lanes<float> values = load_lanes<float>(row + j);
    NativeVector<float>::mask indices{};
    // A comparison that holds is -1.
    for (int b = 0; b < count; ++b) indices -= values > boundaries[b];
    for (int l = 0; l < lane_count<float>; ++l) {
      const auto index = static_cast<uint32_t>(indices[l]);
      squares += codebook[index] * codebook[index];
      pending |= uint64_t{index} << filled;
      filled += bits;
      if (filled < 32) continue;
      *words++ = static_cast<uint32_t>(pending);
      pending >>= 32;
      filled -= 32;
    }
  }
  if (filled > 0) *words = static_cast<uint32_t>(pending);
  return squares;
}

// The nearest float16, of at most the largest one.
inline Float16 finite_float16(float value) {
  constexpr float largest = 65504;
  value = value > largest ? largest : value < -largest ? -largest : value;
  return to_float16(value);
}

inline void pack_affine(const float* row, int64_t dims, int64_t group, uint32_t* words) {
  auto* codes = reinterpret_cast<uint8_t*>(words);
  uint32_t* pairs = words + dims / 4;
  for (int64_t j = 0; j < dims; j += group) {
    float low = row[j], high = row[j];
    for (int64_t i = j; i < j + group; ++i) {
      low = row[i] < low ? row[i] : low;
      high = row[i] > high ? row[i] : high;
    }
    const Float16 bias = finite_float16(low), scale = finite_float16(high / 255 - low / 255);
    *pairs++ = static_cast<uint32_t>(bias.bits) << 16 | scale.bits;
    // What is read back counts, not what was rounded.
    const float first = to_float(bias), step = to_float(scale);
    const float inverse = step > 0 ? 1 / step : 0;
    for (int64_t i = j; i < j + group; ++i) {
      const float code = (row[i] - first) * inverse + 0.5f;
      codes[i] = static_cast<uint8_t>(code > 0 ? (code < 255 ? code : 255.0f) : 0.0f);
    }
  }
}

}  // namespace holdfast::kernels::cpu::HOLDFAST_SIMD_TARGET
