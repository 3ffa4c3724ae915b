// float16 and bfloat16 to and from float, rounding to nearest even: the same bits as types.h gives,
// but vectorised. One difference: loading quiets a signalling float16 NaN, as the processor's
// conversion does.
#pragma once

#include "kernels/cpu/simd/loops.h"
#include "kernels/cpu/simd/vector_math.h"

namespace holdfast::kernels::cpu::HOLDFAST_SIMD_TARGET {

struct Float16 {
  static float decode(uint16_t half) {
    uint32_t sign = static_cast<uint32_t>(half & 0x8000u) << 16;
    uint32_t magnitude = half & 0x7fffu;
    uint32_t normal = (magnitude << 13) + 0x38000000u;
    uint32_t special = (magnitude << 13) | 0x7f800000u | (magnitude > 0x7c00u ? 0x400000u : 0u);
    // Subnormal: an integer multiple of 2^-24.
    uint32_t subnormal = __builtin_bit_cast(
        uint32_t, static_cast<float>(static_cast<int32_t>(magnitude)) * 0x1p-24f);
    uint32_t result = magnitude < 0x400u ? subnormal : (magnitude >= 0x7c00u ? special : normal);
    return __builtin_bit_cast(float, sign | result);
  }
  static uint16_t encode(float value) {
    uint32_t all = __builtin_bit_cast(uint32_t, value);
    uint32_t sign = (all >> 16) & 0x8000u;
    uint32_t magnitude = all & 0x7fffffffu;
    uint32_t normal = (magnitude + 0xfffu + ((magnitude >> 13) & 1u) - 0x38000000u) >> 13;
    // Added to 0.5, a value below 2^-14 is rounded to a multiple of 2^-24 in the low bits.
    float shifted = __builtin_bit_cast(float, magnitude) + 0.5f;
    uint32_t subnormal = __builtin_bit_cast(uint32_t, shifted) - 0x3f000000u;
    uint32_t nan = 0x7e00u | ((magnitude >> 13) & 0x3ffu);
    uint32_t special = magnitude > 0x7f800000u ? nan : 0x7c00u;
    uint32_t result =
        magnitude < 0x38800000u ? subnormal : (magnitude >= 0x47800000u ? special : normal);
    return static_cast<uint16_t>(sign | result);
  }
};

struct BFloat16 {
  static float decode(uint16_t half) {
    return __builtin_bit_cast(float, static_cast<uint32_t>(half) << 16);
  }
  static uint16_t encode(float value) {
    uint32_t all = __builtin_bit_cast(uint32_t, value);
    uint32_t rounded = (all + 0x7fffu + ((all >> 16) & 1u)) >> 16;
    uint32_t nan = (all >> 16) | 0x40u;
    return static_cast<uint16_t>((all & 0x7fffffffu) > 0x7f800000u ? nan : rounded);
  }
};

// Half to float, float to half, and float rounded to half: ops for UnaryLoop.
template <typename Half>
struct LoadHalf {
  static float apply(uint16_t a) { return Half::decode(a); }
};
template <typename Half>
struct StoreHalf {
  static uint16_t apply(float a) { return Half::encode(a); }
};
template <typename Half>
struct RoundHalf {
  static float apply(float a) { return Half::decode(Half::encode(a)); }
};

#if defined(__F16C__)
// The processor converts float16 itself, eight or sixteen at once.
#if defined(__AVX512F__)
HOLDFAST_INLINE __m512 widen(const uint16_t* from) {
  return _mm512_maskz_cvtph_ps(0xffff, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
}
HOLDFAST_INLINE __m256i narrow(__m512 a) {
  return _mm512_maskz_cvtps_ph(0xffff, a, _MM_FROUND_TO_NEAREST_INT);
}
HOLDFAST_INLINE __m512 widen(__m256i a) { return _mm512_maskz_cvtph_ps(0xffff, a); }
HOLDFAST_INLINE __m512 load_register(const float* from) { return _mm512_loadu_ps(from); }
#else
HOLDFAST_INLINE __m256 widen(const uint16_t* from) {
  return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
}
HOLDFAST_INLINE __m128i narrow(__m256 a) { return _mm256_cvtps_ph(a, _MM_FROUND_TO_NEAREST_INT); }
HOLDFAST_INLINE __m256 widen(__m128i a) { return _mm256_cvtph_ps(a); }
HOLDFAST_INLINE __m256 load_register(const float* from) { return _mm256_loadu_ps(from); }
#endif

template <>
struct LoadHalf<Float16> {
  static float apply(uint16_t a);
  static void chunks(float* out, const uint16_t* a, int64_t n) {
    for (int64_t i = 0; i < n; i += float_count) store(out + i, widen(a + i));
  }
};
template <>
struct StoreHalf<Float16> {
  static uint16_t apply(float a);
  static void chunks(uint16_t* out, const float* a, int64_t n) {
    for (int64_t i = 0; i < n; i += float_count) store(out + i, narrow(load_register(a + i)));
  }
};
template <>
struct RoundHalf<Float16> {
  static float apply(float a);
  static void chunks(float* out, const float* a, int64_t n) {
    for (int64_t i = 0; i < n; i += float_count)
      store(out + i, widen(narrow(load_register(a + i))));
  }
};
#endif

}  // namespace holdfast::kernels::cpu::HOLDFAST_SIMD_TARGET
