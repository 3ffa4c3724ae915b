// AVX-512: 32 neighbouring values of a half type, one line of memory, as two registers of floats.
#pragma once

#if defined(__AVX512F__)
#include <immintrin.h>

#include <cstdint>

// For functions that use the processor's own conversion to bfloat16: has_bfloat16_dot().
#define HOLDFAST_NATIVE_BFLOAT16 __attribute__((target("avx512bf16")))

namespace holdfast::kernels::cpu::HOLDFAST_SIMD_TARGET {

struct FloatPair {
  __m512 first, second;
};

struct WordIndices {
  alignas(64) uint16_t at[32];
};
// at[i] = start + i * step / 2
constexpr WordIndices word_indices(int start, int step) {
  WordIndices result{};
  for (int i = 0; i < 32; ++i) result.at[i] = static_cast<uint16_t>(start + i * step / 2);
  return result;
}
inline constexpr WordIndices first_words = word_indices(0, 1), last_words = word_indices(16, 1);
inline constexpr WordIndices even_words = word_indices(0, 4), odd_words = word_indices(1, 4);
// The upper words of two registers in turn: 1, 33, 3, 35, ...
constexpr WordIndices alternate_upper_words() {
  WordIndices result{};
  for (int i = 0; i < 32; ++i) result.at[i] = static_cast<uint16_t>(i % 2 == 0 ? i + 1 : i + 32);
  return result;
}
inline constexpr WordIndices upper_words_in_turn = alternate_upper_words();

inline __attribute__((always_inline)) FloatPair widen_bfloat16(__m512i words) {
  // Each word to the upper half of its lane.
  constexpr __mmask32 upper = 0xaaaaaaaau;
  auto spread = [words](const WordIndices& indices) {
    return (__m512)_mm512_maskz_permutexvar_epi16(upper, _mm512_load_si512(indices.at), words);
  };
  return {spread(first_words), spread(last_words)};
}

inline __attribute__((always_inline)) __m512i upper_halves(__m512i first, __m512i second) {
  return _mm512_permutex2var_epi16(first, _mm512_load_si512(odd_words.at), second);
}

// Each lane's upper half: the bfloat16 nearest to it, ties to even; a NaN is quieted.
inline __attribute__((always_inline)) __m512i round_upper_half(__m512 value) {
  __m512i bits = (__m512i)value;
  __mmask16 odd = _mm512_test_epi32_mask(bits, _mm512_set1_epi32(0x10000));
  __mmask16 nan = _mm512_cmp_ps_mask(value, value, _CMP_UNORD_Q);
  __m512i sum = _mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff));
  sum = _mm512_mask_add_epi32(sum, odd, sum, _mm512_set1_epi32(1));
  return _mm512_mask_or_epi32(sum, nan, bits, _mm512_set1_epi32(0x400000));
}

// `upper` rounded up where the words below it say so; ties to even.
inline __attribute__((always_inline)) __m512i round_words(__m512i upper, __m512i lower) {
  // A tie has an odd upper word to go up: lower | (upper & 1).
  lower = _mm512_ternarylogic_epi32(lower, upper, _mm512_set1_epi16(1), 0xf8);
  __mmask32 up = _mm512_cmpgt_epu16_mask(lower, _mm512_set1_epi16(INT16_MIN));
  return _mm512_mask_add_epi16(upper, up, upper, _mm512_set1_epi16(1));
}
// Rounds to nearest even. For results of arithmetic on values that have been bfloat16: of a NaN,
// only the upper half may be set.
inline __attribute__((always_inline)) __m512i narrow_bfloat16_results(FloatPair values) {
  __m512i first = (__m512i)values.first, second = (__m512i)values.second;
  __m512i lower = _mm512_permutex2var_epi16(first, _mm512_load_si512(even_words.at), second);
  return round_words(upper_halves(first, second), lower);
}
// Rounds to nearest even; a NaN is quieted.
inline __attribute__((always_inline)) __m512i narrow_bfloat16(FloatPair values) {
  if (__builtin_expect(_mm512_cmp_ps_mask(values.first, values.second, _CMP_UNORD_Q) != 0, false))
    return upper_halves(round_upper_half(values.first), round_upper_half(values.second));
  return narrow_bfloat16_results(values);
}

// The same of even elements in the first register and odd ones in the second (load_pair).
inline __attribute__((always_inline)) __m512i join_bfloat16(FloatPair values) {
  constexpr __mmask32 odd = 0xaaaaaaaau;
  __m512i first = (__m512i)values.first, second = (__m512i)values.second;
  // One permutation; for the lower words, which would need another, a shift costs less.
  __m512i upper =
      _mm512_permutex2var_epi16(first, _mm512_load_si512(upper_words_in_turn.at), second);
  __m512i lower = _mm512_mask_mov_epi16(first, odd, _mm512_maskz_slli_epi32(0xffff, second, 16));
  return round_words(upper, lower);
}

// narrow_bfloat16 by the processor, but for subnormal values: those it makes zero.
HOLDFAST_NATIVE_BFLOAT16 inline __attribute__((always_inline)) __m512i
narrow_bfloat16_natively(FloatPair values) {
  return (__m512i)_mm512_cvtne2ps_pbh(values.second, values.first);
}
// May a value have been subnormal?
inline __attribute__((always_inline)) __mmask32 zeros(__m512i narrowed) {
  return _mm512_testn_epi16_mask(narrowed, _mm512_set1_epi16(INT16_MAX));
}
inline __attribute__((always_inline)) bool has_subnormal(FloatPair values) {
  constexpr int subnormal = 0x20;
  return (_mm512_fpclass_ps_mask(values.first, subnormal) |
          _mm512_fpclass_ps_mask(values.second, subnormal)) != 0;
}

inline __attribute__((always_inline)) FloatPair widen_float16(const void* from) {
  const auto* halves = static_cast<const __m256i*>(from);
  return {_mm512_maskz_cvtph_ps(0xffff, _mm256_loadu_si256(halves)),
          _mm512_maskz_cvtph_ps(0xffff, _mm256_loadu_si256(halves + 1))};
}
inline __attribute__((always_inline)) __m512i narrow_float16(FloatPair values) {
  __m256i first = _mm512_maskz_cvtps_ph(0xffff, values.first, _MM_FROUND_TO_NEAREST_INT);
  __m256i second = _mm512_maskz_cvtps_ph(0xffff, values.second, _MM_FROUND_TO_NEAREST_INT);
  return _mm512_maskz_inserti64x4(0xff, _mm512_castsi256_si512(first), second, 1);
}

}  // namespace holdfast::kernels::cpu::HOLDFAST_SIMD_TARGET
#endif
