// Vectors of the instruction set this file is compiled for (HOLDFAST_SIMD_TARGET), as the rivals
// use them.
#pragma once

#include <immintrin.h>

#include <cstdint>
#include <cstring>

namespace holdfast::bench::HOLDFAST_SIMD_TARGET {

#if defined(__AVX512F__)
inline constexpr int lanes = 16;
#else
inline constexpr int lanes = 8;
#endif

typedef float Floats __attribute__((vector_size(lanes * 4)));
typedef int32_t Ints __attribute__((vector_size(lanes * 4)));
typedef uint32_t Words __attribute__((vector_size(lanes * 4)));

template <class Vector, class T>
inline Vector load(const T* from) {
  Vector v;
  std::memcpy(&v, from, sizeof(v));
  return v;
}
template <class Vector, class T>
inline void store(T* to, Vector v) {
  std::memcpy(to, &v, sizeof(v));
}
inline Floats all(float value) { return Floats{} + value; }

#if defined(__AVX512F__)
inline Floats multiply_add(Floats a, Floats b, Floats c) {
  return reinterpret_cast<Floats>(_mm512_fmadd_ps(
      reinterpret_cast<__m512>(a), reinterpret_cast<__m512>(b), reinterpret_cast<__m512>(c)));
}
inline float sum(Floats v) { return _mm512_reduce_add_ps(reinterpret_cast<__m512>(v)); }
inline float maximum(Floats v) { return _mm512_reduce_max_ps(reinterpret_cast<__m512>(v)); }
inline Floats larger(Floats a, Floats b) {
  return reinterpret_cast<Floats>(
      _mm512_max_ps(reinterpret_cast<__m512>(a), reinterpret_cast<__m512>(b)));
}
inline Floats smaller(Floats a, Floats b) {
  return reinterpret_cast<Floats>(
      _mm512_min_ps(reinterpret_cast<__m512>(a), reinterpret_cast<__m512>(b)));
}
inline Floats round(Floats v) {
  return reinterpret_cast<Floats>(_mm512_roundscale_ps(reinterpret_cast<__m512>(v), 8));
}
#else
inline Floats multiply_add(Floats a, Floats b, Floats c) {
  return reinterpret_cast<Floats>(_mm256_fmadd_ps(
      reinterpret_cast<__m256>(a), reinterpret_cast<__m256>(b), reinterpret_cast<__m256>(c)));
}
inline __m128 halves(Floats v, __m128 (*combine)(__m128, __m128)) {
  __m256 whole = reinterpret_cast<__m256>(v);
  __m128 r = combine(_mm256_castps256_ps128(whole), _mm256_extractf128_ps(whole, 1));
  r = combine(r, _mm_movehl_ps(r, r));
  return combine(r, _mm_shuffle_ps(r, r, 1));
}
inline float sum(Floats v) {
  return _mm_cvtss_f32(halves(v, [](__m128 a, __m128 b) { return _mm_add_ps(a, b); }));
}
inline float maximum(Floats v) {
  return _mm_cvtss_f32(halves(v, [](__m128 a, __m128 b) { return _mm_max_ps(a, b); }));
}
inline Floats larger(Floats a, Floats b) {
  return reinterpret_cast<Floats>(
      _mm256_max_ps(reinterpret_cast<__m256>(a), reinterpret_cast<__m256>(b)));
}
inline Floats smaller(Floats a, Floats b) {
  return reinterpret_cast<Floats>(
      _mm256_min_ps(reinterpret_cast<__m256>(a), reinterpret_cast<__m256>(b)));
}
inline Floats round(Floats v) {
  return reinterpret_cast<Floats>(_mm256_round_ps(reinterpret_cast<__m256>(v), 8));
}
#endif

inline Floats to_floats(Words v) {
  return __builtin_convertvector(reinterpret_cast<Ints>(v), Floats);
}

// e to the power of x for x ≤ 88, to about 1 ulp: 2^n times a polynomial of the rest.
inline Floats exponential(Floats x) {
  x = larger(x, all(-87.3f));
  Floats n = round(x * 1.44269504f);
  Floats r = multiply_add(n, all(-0.693359375f), x);
  r = multiply_add(n, all(2.12194440e-4f), r);
  Floats p = all(1.9875691500e-4f);
  p = multiply_add(p, r, all(1.3981999507e-3f));
  p = multiply_add(p, r, all(8.3334519073e-3f));
  p = multiply_add(p, r, all(4.1665795894e-2f));
  p = multiply_add(p, r, all(1.6666665459e-1f));
  p = multiply_add(p, r, all(5.0000001201e-1f));
  p = multiply_add(p, r * r, r) + 1.0f;
  Ints power = (__builtin_convertvector(n, Ints) + 127) << 23;
  return p * reinterpret_cast<Floats>(power);
}

}  // namespace holdfast::bench::HOLDFAST_SIMD_TARGET
