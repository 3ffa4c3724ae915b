// Stored keys and values as numbers: a unit of 16 keys as columns of a tile, and a value as a row.
#pragma once

#include "kernels/cpu/simd/elements.h"
#include "kernels/cpu/simd/kv_kernels.h"
#include "kernels/cpu/simd/vector_math.h"

namespace holdfast::kernels::cpu::HOLDFAST_SIMD_TARGET {

inline constexpr int64_t kv_unit = 16;  // keys
inline constexpr int64_t kv_tile = 32;  // keys

using Floats = Lanes<float>;
inline constexpr int kv_lanes = lane_count<float>;

// --- registers ---

inline Floats floats_of(Words words) {
#if defined(__AVX512F__)
  return (Floats)_mm512_maskz_cvtepi32_ps(0xffff, (__m512i)words);
#elif defined(__AVX2__)
  return (Floats)_mm256_cvtepi32_ps((__m256i)words);
#else
  return __builtin_convertvector((NativeVector<float>::mask)words, Floats);
#endif
}

inline Words load_bytes(const uint8_t* from) {
#if defined(__AVX512F__)
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
  return (Words)_mm512_maskz_cvtepu8_epi32(0xffff, bytes);
#elif defined(__AVX2__)
  return (Words)_mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from)));
#else
  Words words{};
  for (int l = 0; l < kv_lanes; ++l) words[l] = from[l];
  return words;
#endif
}

// A codebook in registers, each value times `factor`. The lowest four bits of an index count.
class CodebookLanes {
 public:
  CodebookLanes(const float* values, float factor) {
#if defined(__AVX512F__)
    table_ = load_lanes<float>(values) * factor;
#elif defined(__AVX2__)
    low_ = load_lanes<float>(values) * factor;
    high_ = load_lanes<float>(values + 8) * factor;
#else
    for (int i = 0; i < 16; ++i) table_[i] = values[i] * factor;
#endif
  }
  template <int bits>
  Floats at(Words index) const {
#if defined(__AVX512F__)
    return (Floats)_mm512_maskz_permutexvar_ps(0xffff, (__m512i)index, (__m512)table_);
#elif defined(__AVX2__)
    // Values of three bits and fewer are there twice.
    const __m256 low = _mm256_permutevar8x32_ps((__m256)low_, (__m256i)index);
    if constexpr (bits < 4) return (Floats)low;
    const __m256 high = _mm256_permutevar8x32_ps((__m256)high_, (__m256i)index);
    return (Floats)_mm256_blendv_ps(low, high, (__m256)(index << 28));
#else
    Floats found{};
    for (int l = 0; l < kv_lanes; ++l) found[l] = table_[index[l] & 15];
    return found;
#endif
  }

 private:
#if defined(__AVX512F__)
  Floats table_;
#elif defined(__AVX2__)
  Floats low_, high_;
#else
  float table_[16];
#endif
};

// --- keys: feature j of the unit's keys at tile + j * kv_tile ---

template <typename T>
inline void unpack_dense_keys(const simd::KvSide& side, const T* column, int64_t block_size,
                              float* tile) {
  for (int64_t j = 0; j < side.dims; ++j) {
#pragma GCC unroll 4
    for (int64_t l = 0; l < kv_unit; l += kv_lanes) {
      store_lanes(tile + j * kv_tile + l, load_lanes<float>(column + j * block_size + l));
    }
  }
}

// `count` features, at most 32, whose words begin at `column`.
template <int bits>
__attribute__((always_inline)) inline void unpack_key_indices(const CodebookLanes& codebook,
                                                              const uint32_t* column,
                                                              int64_t block_size, int count,
                                                              float* tile) {
  Words words[bits] = {};
  const int used = (count * bits + 31) / 32;
#pragma GCC unroll 4
  for (int w = 0; w < bits; ++w) {
    if (w < used) words[w] = load_vector<Words>(column + w * block_size);
  }
#pragma GCC unroll 32
  for (int i = 0; i < 32; ++i) {
    if (i >= count) break;
    const int word = i * bits / 32, shift = i * bits % 32;
    Words index = words[word] >> shift;
    if (shift + bits > 32) index |= words[word + 1 < bits ? word + 1 : word] << (32 - shift);
    store_lanes(tile + i * kv_tile, codebook.at<bits>(index));
  }
}

template <int bits>
inline void unpack_turbo_keys(const simd::KvSide& side, const uint32_t* column, int64_t block_size,
                              float* tile, float* factors) {
  const CodebookLanes codebook(side.codebook, 1);
  for (int64_t l = 0; l < kv_unit; l += kv_lanes) {
    int64_t j = 0;
    for (; j + 32 <= side.dims; j += 32) {
      unpack_key_indices<bits>(codebook, column + j * bits / 32 * block_size + l, block_size, 32,
                               tile + j * kv_tile + l);
    }
    if (j < side.dims) {
      unpack_key_indices<bits>(codebook, column + j * bits / 32 * block_size + l, block_size, 16,
                               tile + j * kv_tile + l);
    }
    store_lanes(factors + l, load_lanes<float>(reinterpret_cast<const float*>(
                                 column + side.packed_words * block_size + l)));
  }
}

inline void unpack_affine_keys(const simd::KvSide& side, const uint32_t* column, int64_t block_size,
                               float* tile) {
  for (int64_t j = 0; j < side.dims; j += side.group) {
    Float16 halves[2][kv_unit];
    float scales[kv_unit], biases[kv_unit];
    const uint32_t* pair = column + (side.packed_words + j / side.group) * block_size;
    for (int64_t t = 0; t < kv_unit; ++t) {
      halves[0][t].bits = static_cast<uint16_t>(pair[t]);
      halves[1][t].bits = static_cast<uint16_t>(pair[t] >> 16);
    }
    widen(halves[0], kv_unit, scales);
    widen(halves[1], kv_unit, biases);
    for (int64_t l = 0; l < kv_unit; l += kv_lanes) {
      const Floats scale = load_lanes<float>(scales + l), bias = load_lanes<float>(biases + l);
      for (int64_t i = 0; i < side.group; i += 4) {
        const Words words = load_vector<Words>(column + (j + i) / 4 * block_size + l);
        float* to = tile + (j + i) * kv_tile + l;
        for (int n = 0; n < 4; ++n) {
          const Floats code = floats_of(words >> (8 * n) & 255);
          store_lanes(to + n * kv_tile, multiply_add(code, scale, bias));
        }
      }
    }
  }
}

// 16 keys of a block, from the one at `place` on. `factors`: what their scores are multiplied with.
inline void unpack_keys(const simd::KvSide& side, const char* block, int64_t place,
                        int64_t block_size, float* tile, float* factors) {
  const auto* words = reinterpret_cast<const uint32_t*>(block) + place;
  for (int64_t t = 0; t < kv_unit; ++t) factors[t] = 1;
  switch (side.bits) {
    case 2:
      return unpack_turbo_keys<2>(side, words, block_size, tile, factors);
    case 3:
      return unpack_turbo_keys<3>(side, words, block_size, tile, factors);
    case 4:
      return unpack_turbo_keys<4>(side, words, block_size, tile, factors);
    case 8:
      return unpack_affine_keys(side, words, block_size, tile);
    default:
      break;
  }
  if (side.dtype == Dtype::Val::bfloat16) {
    unpack_dense_keys(side, reinterpret_cast<const BFloat16*>(block) + place, block_size, tile);
  } else if (side.dtype == Dtype::Val::float16) {
    unpack_dense_keys(side, reinterpret_cast<const Float16*>(block) + place, block_size, tile);
  } else {
    unpack_dense_keys(side, reinterpret_cast<const float*>(block) + place, block_size, tile);
  }
}

// --- values: rows ---

// The numbers of a row of indices. Eight of them are whole bytes.
template <int bits>
inline void unpack_turbo_row(const simd::KvSide& side, const uint8_t* row, float factor,
                             float* out) {
  const CodebookLanes codebook(side.codebook, factor);
#if defined(__AVX512F__)
  const __m512i lane = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  const __m512i shifts = _mm512_mullo_epi32(
      bits == 2 ? lane : _mm512_and_si512(lane, _mm512_set1_epi32(7)), _mm512_set1_epi32(bits));
  for (int64_t j = 0; j < side.dims; j += 16, row += 2 * bits) {
    int32_t first;
    std::memcpy(&first, row, sizeof(first));
    __m512i words = _mm512_set1_epi32(first);
    if constexpr (bits != 2) {
      int32_t second;
      std::memcpy(&second, row + bits, sizeof(second));
      words = _mm512_mask_set1_epi32(words, 0xff00, second);
    }
    const __m512i index = _mm512_maskz_srlv_epi32(0xffff, words, shifts);
    store_lanes(out + j, codebook.at<bits>((Words)index));
  }
#elif defined(__AVX2__)
  const __m256i shifts =
      _mm256_mullo_epi32(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), _mm256_set1_epi32(bits));
  for (int64_t j = 0; j < side.dims; j += 8, row += bits) {
    int32_t word;
    std::memcpy(&word, row, sizeof(word));
    const __m256i index = _mm256_srlv_epi32(_mm256_set1_epi32(word), shifts);
    store_lanes(out + j, codebook.at<bits>((Words)index));
  }
#else
  for (int64_t j = 0; j < side.dims; j += 8, row += bits) {
    uint32_t word;
    std::memcpy(&word, row, sizeof(word));
    for (int64_t l = 0; l < 8; l += kv_lanes) {
      Words index{};
      for (int i = 0; i < kv_lanes; ++i) index[i] = word >> ((l + i) * bits);
      store_lanes(out + j + l, codebook.at<bits>(index));
    }
  }
#endif
}

inline void unpack_affine_row(const simd::KvSide& side, const uint32_t* row, float* out) {
  const auto* codes = reinterpret_cast<const uint8_t*>(row);
  for (int64_t j = 0; j < side.dims; j += side.group) {
    const uint32_t pair = row[side.packed_words + j / side.group];
    const Floats scale = broadcast(to_float(Float16{static_cast<uint16_t>(pair)}));
    const Floats bias = broadcast(to_float(Float16{static_cast<uint16_t>(pair >> 16)}));
    for (int64_t i = 0; i < side.group; i += kv_lanes) {
      const Floats code = floats_of(load_bytes(codes + j + i));
      store_lanes(out + j + i, multiply_add(code, scale, bias));
    }
  }
}

template <typename T>
inline void unpack_dense_row(const T* row, int64_t dims, float* out) {
  for (int64_t j = 0; j < dims; j += kv_lanes) store_lanes(out + j, load_lanes<float>(row + j));
}

inline void unpack_row(const simd::KvSide& side, const void* row, float* out) {
  const auto* words = static_cast<const uint32_t*>(row);
  if (side.bits == 8) return unpack_affine_row(side, words, out);
  if (side.bits > 0) {
    const auto* bytes = static_cast<const uint8_t*>(row);
    const float norm = bits_as<float>(words[side.packed_words]);
    return side.bits == 2   ? unpack_turbo_row<2>(side, bytes, norm, out)
           : side.bits == 3 ? unpack_turbo_row<3>(side, bytes, norm, out)
                            : unpack_turbo_row<4>(side, bytes, norm, out);
  }
  if (side.dtype == Dtype::Val::bfloat16) {
    unpack_dense_row(static_cast<const BFloat16*>(row), side.dims, out);
  } else if (side.dtype == Dtype::Val::float16) {
    unpack_dense_row(static_cast<const Float16*>(row), side.dims, out);
  } else {
    unpack_dense_row(static_cast<const float*>(row), side.dims, out);
  }
}

}  // namespace holdfast::kernels::cpu::HOLDFAST_SIMD_TARGET
