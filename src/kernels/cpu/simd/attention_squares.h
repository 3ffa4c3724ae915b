// Attention of few rows on processors that multiply tiles of bfloat16 (matmul_squares.h): what
// attention_pairs.h computes, with fewer instructions for each key and value.
#pragma once

#include "kernels/cpu/simd/attention_pairs.h"
#include "kernels/cpu/simd/matmul_squares.h"

#if defined(__AVX512F__)

namespace holdfast::kernels::cpu::HOLDFAST_SIMD_TARGET {

inline constexpr int64_t most_square_features = 512;
inline constexpr int64_t square_keys = 4 * square;  // scored at once

// scores[r, j] = scale * (query r . key j) for up to 16 rows and the keys of whole steps, whose
// number is the result. Keys are squares where they are.
HOLDFAST_TILES __attribute__((noinline)) inline int64_t score_squares(
    const simd::AttentionBlock& block, float scale, int64_t stride, float* scores) {
  using V = UnitVector<Pair>::type;
  const int64_t whole = block.key_count / square_keys * square_keys;
  if (whole == 0) return 0;
  alignas(64) SquarePair queries[most_square_features / 2 * square];
  for (int64_t d = 0; d < block.features; d += 2 * square) {
    V line[square] = {};
    for (int64_t r = 0; r < block.rows; ++r) {
      line[r] = load_vector<V>(static_cast<const BFloat16*>(block.queries[r]) + d);
    }
    transpose_units<square>(line);
    for (int64_t i = 0; i < square; ++i) store_vector(queries + (d / 2 + i) * square, line[i]);
  }
  const auto* keys = static_cast<const BFloat16*>(block.keys);
  const auto* values = static_cast<const BFloat16*>(block.values);
  const int64_t key_bytes = block.key_stride * static_cast<int64_t>(sizeof(BFloat16));
  const __m512i columns =
      _mm512_mullo_epi32(_mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15),
                         _mm512_set1_epi32(static_cast<int>(square)));
  static constexpr TileShapes shapes;
  _tile_loadconfig(&shapes);
  for (int64_t j = 0; j < whole; j += square_keys) {
    int64_t fetched = j;
    alignas(64) float found[square_keys * square];
    __asm__ volatile("" ::: "memory");
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    for (int64_t d = 0; d < block.features; d += 2 * square) {
      const BFloat16* at = keys + j * block.key_stride + d;
      _tile_loadd(6, queries + d / 2 * square, 64);
      _tile_loadd(4, at, key_bytes);
      _tile_dpbf16ps(0, 4, 6);
      _tile_loadd(5, at + square * block.key_stride, key_bytes);
      _tile_dpbf16ps(1, 5, 6);
      _tile_loadd(4, at + 2 * square * block.key_stride, key_bytes);
      _tile_dpbf16ps(2, 4, 6);
      _tile_loadd(5, at + 3 * square * block.key_stride, key_bytes);
      _tile_dpbf16ps(3, 5, 6);
      // A few values at a time: keys must not wait behind all of them.
      for (; fetched < j + (d + 2 * square) * square_keys / block.features; ++fetched) {
        // The first block of keys was not asked for before.
        if (fetched + square_keys < whole)
          fetch_row<first_level>(keys, (fetched + square_keys) * block.key_stride, block.features);
        fetch_row(values, fetched * block.value_stride, block.value_features);
      }
    }
    _tile_stored(0, found, 64);
    _tile_stored(1, found + square_units, 64);
    _tile_stored(2, found + 2 * square_units, 64);
    _tile_stored(3, found + 3 * square_units, 64);
    for (int64_t r = 0; r < block.rows; ++r) {
      for (int64_t i = 0; i < square_keys; i += square) {
        __m512 row = _mm512_mask_i32gather_ps(_mm512_setzero_ps(), 0xffff, columns,
                                              found + i * square + r, sizeof(float));
        _mm512_storeu_ps(scores + r * stride + j + i, row * _mm512_set1_ps(scale));
      }
    }
  }
  _tile_release();
  return whole;
}

// As weigh_pairs, for up to 16 rows: outputs[r, d] = sum over pairs of keys of weights * values.
HOLDFAST_TILES __attribute__((noinline)) inline void weigh_squares(
    const simd::AttentionBlock& block, int64_t pair_stride, const uint32_t* weights,
    float* outputs) {
  constexpr int64_t keys_at_once = 2 * square;
  const auto* values = static_cast<const BFloat16*>(block.values);
  // The keys of the next block come after these values: fetched in as many parts as the values
  // have.
  const int64_t part_features =
      round_up((block.features * 64 + block.value_features - 1) / block.value_features, 2 * square);
  // Twice: one is filled while the other is multiplied. What was stored last would have to be
  // waited for.
  alignas(64) uint32_t parts[2][4][square_units], rows[2][square_units] = {};
  static constexpr TileShapes shapes;
  _tile_loadconfig(&shapes);
  for (int64_t d = 0; d < block.value_features; d += 64) {
    const int64_t key_part = d / 64 * part_features;
    const int64_t some =
        block.next_keys != nullptr ? smaller_of(part_features, block.features - key_part) : 0;
    auto put = [](uint32_t(&part)[4][square_units], int64_t p, int h, __m512i even, __m512i odd) {
      _mm512_store_si512(part[2 * h] + p * square, _mm512_unpacklo_epi16(even, odd));
      _mm512_store_si512(part[2 * h + 1] + p * square, _mm512_unpackhi_epi16(even, odd));
    };
    auto fill = [&](int64_t first) {
      auto& part = parts[first / keys_at_once % 2];
      uint32_t* row = rows[first / keys_at_once % 2];
      const int64_t count = smaller_of(keys_at_once, block.key_count - first);
      auto pairs = static_cast<__mmask16>((1u << (count + 1) / 2) - 1);
      for (int64_t r = 0; r < block.rows; ++r) {
        const uint32_t* from = weights + r * pair_stride + first / 2;
        _mm512_store_si512(row + r * square, _mm512_maskz_loadu_epi32(pairs, from));
      }
      const BFloat16* value = values + first * block.value_stride + d;
      for (int64_t p = 0; p < count / 2; ++p) {
        for (int64_t odd = 0; odd < 2; ++odd) {
          fetch_row(block.next_keys, (first + 2 * p + odd) * block.key_stride + key_part, some);
        }
#pragma GCC unroll 2
        for (int h = 0; h < 2; ++h) {
          put(part, p, h, _mm512_loadu_si512(value + 32 * h),
              _mm512_loadu_si512(value + block.value_stride + 32 * h));
        }
        value += 2 * block.value_stride;
      }
      if (count < keys_at_once) {
        const __m512i none = _mm512_setzero_si512();
        for (int64_t p = count / 2; p < square; ++p) {
          const bool is_odd_one = 2 * p < count;
          for (int h = 0; h < 2; ++h) {
            put(part, p, h, is_odd_one ? _mm512_loadu_si512(value + 32 * h) : none, none);
          }
        }
      }
      __asm__ volatile("" ::: "memory");
    };
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    fill(0);
    for (int64_t first = 0; first < block.key_count; first += keys_at_once) {
      if (first + keys_at_once < block.key_count) fill(first + keys_at_once);
      const auto& part = parts[first / keys_at_once % 2];
      _tile_loadd(6, rows[first / keys_at_once % 2], 64);
      _tile_loadd(4, part[0], 64);
      _tile_dpbf16ps(0, 6, 4);
      _tile_loadd(5, part[1], 64);
      _tile_dpbf16ps(1, 6, 5);
      _tile_loadd(4, part[2], 64);
      _tile_dpbf16ps(2, 6, 4);
      _tile_loadd(5, part[3], 64);
      _tile_dpbf16ps(3, 6, 5);
    }
    alignas(64) float found[4][square_units];
    _tile_stored(0, found[0], 64);
    _tile_stored(1, found[1], 64);
    _tile_stored(2, found[2], 64);
    _tile_stored(3, found[3], 64);
    for (int64_t r = 0; r < block.rows; ++r) {
      float* to = outputs + r * block.value_features + d;
      for (int v = 0; v < 4; ++v) {
        _mm512_storeu_ps(to + 16 * v, _mm512_load_ps(found[v] + r * square));
      }
    }
  }
  _tile_release();
  order_features(outputs, block.rows * block.value_features);
}

}  // namespace holdfast::kernels::cpu::HOLDFAST_SIMD_TARGET

#endif
