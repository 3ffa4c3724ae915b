// Element types of the kernels that are compiled per instruction set, and their conversion in
// blocks.
//
// Everything lives in the namespace of the instruction set and uses no inline function of other
// headers: the linker must never pick code compiled for a wider machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#if defined(__F16C__)
#include <immintrin.h>
#endif

#include "kernels/cpu/simd/vectorise.h"

namespace holdfast::cpu::HOLDFAST_SIMD_TARGET {

#if defined(__AVX512F__)
inline constexpr int vector_bytes = 64;
#elif defined(__AVX2__)
inline constexpr int vector_bytes = 32;
#else
inline constexpr int vector_bytes = 16;
#endif

struct Float16 {
  uint16_t bits;
};
struct BFloat16 {
  uint16_t bits;
};
struct Complex64 {
  float real, imag;
};

template <typename A, typename B>
inline constexpr bool is_same = false;
template <typename A>
inline constexpr bool is_same<A, A> = true;

template <typename To, typename From>
inline To bits_as(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  std::memcpy(&to, &from, sizeof(To));
  return to;
}

inline float to_float(float value) { return value; }
inline float to_float(BFloat16 value) {
  return bits_as<float>(static_cast<uint32_t>(value.bits) << 16);
}
inline float to_float(Float16 value) {
  // The exponent is re-biased by a multiplication, which is exact and covers subnormals; infinity
  // and NaN are set apart.
  uint32_t sign = static_cast<uint32_t>(value.bits & 0x8000u) << 16;
  uint32_t magnitude = value.bits & 0x7fffu;
  float scaled = bits_as<float>(magnitude << 13) * bits_as<float>(0x77800000u);
  uint32_t bits =
      magnitude >= 0x7c00u ? (magnitude << 13) | 0x7f800000u : bits_as<uint32_t>(scaled);
  return bits_as<float>(bits | sign);
}

inline BFloat16 to_bfloat16(float value) {
  uint32_t bits = bits_as<uint32_t>(value);
  uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  bool nan = (bits & 0x7fffffffu) > 0x7f800000u;
  return {static_cast<uint16_t>(nan ? (bits >> 16) | 0x40u : rounded)};
}
inline Float16 to_float16(float value) {
  uint32_t bits = bits_as<uint32_t>(value);
  uint32_t sign = (bits >> 16) & 0x8000u;
  uint32_t magnitude = bits & 0x7fffffffu;
  uint32_t rounded = (magnitude + 0xfffu + ((magnitude >> 13) & 1u) - 0x38000000u) >> 13;
  // Subnormal halves: adding 0.5 lets the float addition round at the right bit.
  uint32_t small = bits_as<uint32_t>(bits_as<float>(magnitude) + 0.5f) - 0x3f000000u;
  uint32_t result = magnitude < 0x38800000u ? small : rounded;
  result = magnitude >= 0x47800000u ? 0x7c00u : result;
  result = magnitude > 0x7f800000u ? 0x7e00u | ((magnitude >> 13) & 0x3ffu) : result;
  return {static_cast<uint16_t>(sign | result)};
}

inline void from_float(float value, float& to) { to = value; }
inline void from_float(float value, Float16& to) { to = to_float16(value); }
inline void from_float(float value, BFloat16& to) { to = to_bfloat16(value); }

// to[i] = float(from[i])
inline void widen(const BFloat16* from, int64_t count, float* to) {
  for (int64_t i = 0; i < count; ++i) to[i] = to_float(from[i]);
}
inline void widen(const Float16* from, int64_t count, float* to) {
  int64_t i = 0;
#if defined(__AVX512F__)
  for (; i + 16 <= count; i += 16) {
    __m256i half = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + i));
    _mm512_storeu_ps(to + i, _mm512_maskz_cvtph_ps(0xffff, half));
  }
#elif defined(__F16C__)
  for (; i + 8 <= count; i += 8) {
    __m128i half = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i));
    _mm256_storeu_ps(to + i, _mm256_cvtph_ps(half));
  }
#endif
  for (; i < count; ++i) to[i] = to_float(from[i]);
}
template <typename T>
inline void widen(const T* from, int64_t count, double* to) {
  for (int64_t i = 0; i < count; ++i) to[i] = static_cast<double>(to_float(from[i]));
}

// to[i] = T(from[i]), rounded to nearest even
inline void narrow(const float* from, int64_t count, BFloat16* to) {
  for (int64_t i = 0; i < count; ++i) to[i] = to_bfloat16(from[i]);
}
inline void narrow(const float* from, int64_t count, Float16* to) {
  int64_t i = 0;
#if defined(__AVX512F__)
  for (; i + 16 <= count; i += 16) {
    __m256i half =
        _mm512_maskz_cvtps_ph(0xffff, _mm512_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + i), half);
  }
#elif defined(__F16C__)
  for (; i + 8 <= count; i += 8) {
    __m128i half = _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i), half);
  }
#endif
  for (; i < count; ++i) to[i] = to_float16(from[i]);
}

// The elements in the type they are computed in: themselves, or converted into `buffer`.
template <typename Compute, typename T>
inline const Compute* as_compute(const T* from, int64_t count, Compute* buffer) {
  if constexpr (is_same<Compute, T>) {
    return from;
  } else {
    widen(from, count, buffer);
    return buffer;
  }
}

template <typename T>
struct NativeVector;
template <>
struct NativeVector<float> {
  typedef float type __attribute__((vector_size(vector_bytes)));
  typedef int32_t mask __attribute__((vector_size(vector_bytes)));
};
template <>
struct NativeVector<double> {
  typedef double type __attribute__((vector_size(vector_bytes)));
  typedef int64_t mask __attribute__((vector_size(vector_bytes)));
};

template <typename V, typename T>
inline V load_vector(const T* from) {
  V value;
  std::memcpy(&value, from, sizeof(V));
  return value;
}
template <typename V, typename T>
inline void store_vector(T* to, V value) {
  std::memcpy(to, &value, sizeof(V));
}

}  // namespace holdfast::cpu::HOLDFAST_SIMD_TARGET
