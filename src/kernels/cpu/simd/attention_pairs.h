// Attention of few rows on processors that multiply pairs of bfloat16: bound by reading keys and
// values once.
#pragma once

#include "kernels/cpu/simd/attention_kernels.h"
#include "kernels/cpu/simd/elements.h"
#include "kernels/cpu/simd/vector_math.h"

#if defined(__AVX512F__)

namespace holdfast::kernels::cpu::HOLDFAST_SIMD_TARGET {

#define HOLDFAST_BFLOAT16_DOT __attribute__((target("avx512bf16")))

// The sums of 16 vectors, as one vector. Lane l is the sum of vector sum_order[l].
inline constexpr int sum_order[16] = {0, 2, 1, 3, 8, 10, 9, 11, 4, 6, 5, 7, 12, 14, 13, 15};
inline __m512 add_sixteen(__m512 (&v)[16]) {
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) {
    v[i] = _mm512_maskz_shuffle_f32x4(0xffff, v[i], v[i + 8], 0x44) +
           _mm512_maskz_shuffle_f32x4(0xffff, v[i], v[i + 8], 0xee);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    v[i] = _mm512_maskz_shuffle_f32x4(0xffff, v[i], v[i + 4], 0x88) +
           _mm512_maskz_shuffle_f32x4(0xffff, v[i], v[i + 4], 0xdd);
  }
#pragma GCC unroll 2
  for (int i = 0; i < 2; ++i) {
    __m512d a = _mm512_castps_pd(v[i]), b = _mm512_castps_pd(v[i + 2]);
    v[i] = _mm512_castpd_ps(_mm512_maskz_unpacklo_pd(0xff, a, b)) +
           _mm512_castpd_ps(_mm512_maskz_unpackhi_pd(0xff, a, b));
  }
  return _mm512_maskz_shuffle_ps(0xffff, v[0], v[1], 0x88) +
         _mm512_maskz_shuffle_ps(0xffff, v[0], v[1], 0xdd);
}

// By default into the second level: the first can wait for too few lines at once. `offset` may lead
// behind the array.
inline constexpr int first_level = 3, second_level = 2;
template <int level = second_level>
inline void fetch_row(const void* array, int64_t offset, int64_t features) {
  auto address = reinterpret_cast<uintptr_t>(array) + static_cast<uintptr_t>(offset) * 2;
  for (int64_t d = 0; d < features; d += 32) {
    __builtin_prefetch(reinterpret_cast<const char*>(address + static_cast<uintptr_t>(d) * 2), 0,
                       level);
  }
}

// scores[r, j] = scale * (query r . key j) for 1 or 4 rows, 16 scores at a time. `features` is a
// multiple of 32. The values are fetched meanwhile: they come next.
template <int rows>
HOLDFAST_BFLOAT16_DOT void score_pairs(const simd::AttentionBlock& block, int64_t first_row,
                                       float scale, int64_t stride, float* scores) {
  constexpr int keys_at_once = 16 / rows;
  const auto* keys = static_cast<const BFloat16*>(block.keys);
  const auto* values = static_cast<const BFloat16*>(block.values);
  const BFloat16* query[rows];
  for (int r = 0; r < rows; ++r) {
    query[r] = static_cast<const BFloat16*>(block.queries[first_row + r]);
  }
  for (int64_t j = 0; j < block.key_count; j += keys_at_once) {
    const BFloat16* key[keys_at_once];
    for (int i = 0; i < keys_at_once; ++i) {
      // Keys behind the last one: that one again.
      int64_t index = j + i < block.key_count ? j + i : block.key_count - 1;
      key[i] = keys + index * block.key_stride;
      fetch_row(values, index * block.value_stride, block.value_features);
    }
    __m512 sums[16];  // of lane r * keys_at_once + i, where add_sixteen wants them
#pragma GCC unroll 16
    for (int l = 0; l < 16; ++l) sums[l] = _mm512_setzero_ps();
    for (int64_t d = 0; d < block.features; d += 32) {
      __m512bh with[rows];
#pragma GCC unroll 4
      for (int r = 0; r < rows; ++r) with[r] = (__m512bh)_mm512_loadu_si512(query[r] + d);
#pragma GCC unroll 16
      for (int i = 0; i < keys_at_once; ++i) {
        auto part = (__m512bh)_mm512_loadu_si512(key[i] + d);
#pragma GCC unroll 4
        for (int r = 0; r < rows; ++r) {
          __m512& sum = sums[sum_order[r * keys_at_once + i]];
          sum = _mm512_dpbf16_ps(sum, part, with[r]);
        }
      }
    }
    __m512 result = add_sixteen(sums) * _mm512_set1_ps(scale);
    float* to = scores + first_row * stride + j;
    if constexpr (rows == 1) {
      _mm512_storeu_ps(to, result);
    } else {
      _mm_storeu_ps(to, _mm512_castps512_ps128(result));
      _mm_storeu_ps(to + stride, _mm512_extractf32x4_ps(result, 1));
      _mm_storeu_ps(to + 2 * stride, _mm512_extractf32x4_ps(result, 2));
      _mm_storeu_ps(to + 3 * stride, _mm512_extractf32x4_ps(result, 3));
    }
  }
}

// `stride` is a multiple of 16, at least key_count.
inline void score_pair_rows(const simd::AttentionBlock& block, float scale, int64_t stride,
                            float* scores) {
  int64_t r = 0;
  for (; r + 4 <= block.rows; r += 4) score_pairs<4>(block, r, scale, stride, scores);
  for (; r < block.rows; ++r) score_pairs<1>(block, r, scale, stride, scores);
}

// Interleaving goes by groups of eight: 0-3 of each are in the first vector of two, 4-7 in the
// second.
inline void order_features(float* outputs, int64_t count) {
  const __m512i first = _mm512_setr_epi32(0, 1, 2, 3, 16, 17, 18, 19, 4, 5, 6, 7, 20, 21, 22, 23);
  const __m512i second = first + _mm512_set1_epi32(8);
  for (int64_t i = 0; i < count; i += 32) {
    __m512 low = _mm512_loadu_ps(outputs + i), high = _mm512_loadu_ps(outputs + i + 16);
    _mm512_storeu_ps(outputs + i, _mm512_maskz_permutex2var_ps(0xffff, low, first, high));
    _mm512_storeu_ps(outputs + i + 16, _mm512_maskz_permutex2var_ps(0xffff, low, second, high));
  }
}

// outputs[r, d] = sum over pairs of keys of weights * values, for up to 4 rows; weights are pairs
// of bfloat16. `value_features` is a multiple of 64. Goes by some keys at a time, so that all
// features of a value are used while it is in the first-level cache.
template <int rows>
HOLDFAST_BFLOAT16_DOT void weigh_pairs(const simd::AttentionBlock& block, int64_t pair_stride,
                                       const uint32_t* weights, float* outputs) {
  constexpr int64_t keys_at_once = 32;
  const auto* values = static_cast<const BFloat16*>(block.values);
  for (int64_t i = 0; i < rows * block.value_features; ++i) outputs[i] = 0;
  for (int64_t first = 0; first < block.key_count; first += keys_at_once) {
    int64_t last = first + keys_at_once < block.key_count ? first + keys_at_once : block.key_count;
    for (int64_t d = 0; d < block.value_features; d += 64) {
      __m512 sum[rows][4];
#pragma GCC unroll 4
      for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 4
        for (int v = 0; v < 4; ++v) {
          sum[r][v] = _mm512_loadu_ps(outputs + r * block.value_features + d + 16 * v);
        }
      }
      for (int64_t j = first; j < last; j += 2) {
        const BFloat16* even = values + j * block.value_stride + d;
        const BFloat16* odd = j + 1 < block.key_count ? even + block.value_stride : even;
        if (d == 0 && block.next_keys != nullptr) {
          fetch_row(block.next_keys, j * block.key_stride, block.features);
          fetch_row(block.next_keys, (j + 1) * block.key_stride, block.features);
        }
        __m512i part[4];
#pragma GCC unroll 2
        for (int h = 0; h < 2; ++h) {
          __m512i a = _mm512_loadu_si512(even + 32 * h), b = _mm512_loadu_si512(odd + 32 * h);
          part[2 * h] = _mm512_unpacklo_epi16(a, b);
          part[2 * h + 1] = _mm512_unpackhi_epi16(a, b);
        }
#pragma GCC unroll 4
        for (int r = 0; r < rows; ++r) {
          __m512bh weight =
              (__m512bh)_mm512_set1_epi32(static_cast<int>(weights[r * pair_stride + j / 2]));
#pragma GCC unroll 4
          for (int v = 0; v < 4; ++v) {
            sum[r][v] = _mm512_dpbf16_ps(sum[r][v], weight, (__m512bh)part[v]);
          }
        }
      }
#pragma GCC unroll 4
      for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 4
        for (int v = 0; v < 4; ++v) {
          _mm512_storeu_ps(outputs + r * block.value_features + d + 16 * v, sum[r][v]);
        }
      }
    }
  }
  order_features(outputs, rows * block.value_features);
}

// exp(scores - shift) as bfloat16, where the scores were; gives the sum of what they are rounded
// to.
inline float exponentiate_pairs(float* scores, int64_t count, float shift) {
  auto* rounded = reinterpret_cast<BFloat16*>(scores);
  Lanes<float> total{};
  for (int64_t j = 0; j < count; j += 16) {
    auto some = static_cast<__mmask16>(count - j < 16 ? (1u << (count - j)) - 1 : 0xffff);
    auto value = (__m512)half_exponential(load_lanes<float>(scores + j) - shift);
    store_lanes(rounded + j, (Lanes<float>)_mm512_maskz_mov_ps(some, value));
    total += load_lanes<float>(rounded + j);
  }
  return add_lanes<float>(total);
}

inline void weigh_pair_rows(const simd::AttentionBlock& block, int64_t stride,
                            const uint32_t* weights, float* outputs) {
  int64_t features = block.value_features, r = 0;
  for (; r + 4 <= block.rows; r += 4) {
    weigh_pairs<4>(block, stride, weights + r * stride, outputs + r * features);
  }
  for (; r < block.rows; ++r) {
    weigh_pairs<1>(block, stride, weights + r * stride, outputs + r * features);
  }
}

}  // namespace holdfast::kernels::cpu::HOLDFAST_SIMD_TARGET

#endif
