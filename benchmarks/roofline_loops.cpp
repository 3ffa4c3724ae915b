#include "benchmarks/roofline_loops.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace holdfast::bench {
namespace {

constexpr long multiply_add_rounds = 2'000'000;

// Keeps a value alive without storing it anywhere.
template <class T>
void keep(T& value) {
  asm volatile("" : : "g"(&value) : "memory");
}

// --- plain: what the compiler makes of a simple loop ------------------------------------

void copy_plain(const float* from, float* to, size_t count) {
  for (size_t i = 0; i < count; ++i) to[i] = from[i];
}
void add_plain(const float* a, const float* b, float* to, size_t count) {
  for (size_t i = 0; i < count; ++i) to[i] = a[i] + b[i];
}
float read_plain(const float* from, size_t count) {
  float sums[16] = {};
  for (size_t i = 0; i < count; i += 16) {
    for (size_t k = 0; k < 16; ++k) sums[k] += from[i + k];
  }
  float sum = 0;
  for (float s : sums) sum += s;
  return sum;
}
double multiply_add_plain() {
  constexpr int lanes = 32;
  float values[lanes];
  for (int k = 0; k < lanes; ++k) values[k] = 1.0f + static_cast<float>(k);
  float factor = 0.999f, term = 0.001f;
  keep(factor);
  keep(term);
  for (long i = 0; i < multiply_add_rounds / 4; ++i) {
    for (int k = 0; k < lanes; ++k) values[k] = values[k] * factor + term;
  }
  keep(values);
  return 2.0 * lanes * static_cast<double>(multiply_add_rounds / 4);
}

#if defined(__x86_64__)

#define HOLDFAST_AVX2 __attribute__((target("avx2,fma")))
#define HOLDFAST_AVX512 __attribute__((target("avx512f")))

// --- AVX2 -------------------------------------------------------------------------------

template <bool past_cache>
HOLDFAST_AVX2 inline void store_8(float* to, __m256 v) {
  if constexpr (past_cache) {
    _mm256_stream_ps(to, v);
  } else {
    _mm256_store_ps(to, v);
  }
}

template <bool past_cache>
HOLDFAST_AVX2 void copy_avx2(const float* from, float* to, size_t count) {
  for (size_t i = 0; i < count; i += 32) {
    __m256 v0 = _mm256_load_ps(from + i), v1 = _mm256_load_ps(from + i + 8);
    __m256 v2 = _mm256_load_ps(from + i + 16), v3 = _mm256_load_ps(from + i + 24);
    store_8<past_cache>(to + i, v0);
    store_8<past_cache>(to + i + 8, v1);
    store_8<past_cache>(to + i + 16, v2);
    store_8<past_cache>(to + i + 24, v3);
  }
  _mm_sfence();
}

template <bool past_cache>
HOLDFAST_AVX2 void add_avx2(const float* a, const float* b, float* to, size_t count) {
  for (size_t i = 0; i < count; i += 16) {
    __m256 v0 = _mm256_add_ps(_mm256_load_ps(a + i), _mm256_load_ps(b + i));
    __m256 v1 = _mm256_add_ps(_mm256_load_ps(a + i + 8), _mm256_load_ps(b + i + 8));
    store_8<past_cache>(to + i, v0);
    store_8<past_cache>(to + i + 8, v1);
  }
  _mm_sfence();
}

HOLDFAST_AVX2 float read_avx2(const float* from, size_t count) {
  __m256 s0 = _mm256_setzero_ps(), s1 = s0, s2 = s0, s3 = s0;
  for (size_t i = 0; i < count; i += 32) {
    s0 = _mm256_add_ps(s0, _mm256_load_ps(from + i));
    s1 = _mm256_add_ps(s1, _mm256_load_ps(from + i + 8));
    s2 = _mm256_add_ps(s2, _mm256_load_ps(from + i + 16));
    s3 = _mm256_add_ps(s3, _mm256_load_ps(from + i + 24));
  }
  alignas(32) float lanes[8];
  _mm256_store_ps(lanes, _mm256_add_ps(_mm256_add_ps(s0, s1), _mm256_add_ps(s2, s3)));
  float sum = 0;
  for (float lane : lanes) sum += lane;
  return sum;
}

HOLDFAST_AVX2 double multiply_add_avx2() {
  constexpr int vectors = 12;
  __m256 factor = _mm256_set1_ps(0.999f), term = _mm256_set1_ps(0.001f);
  __m256 v[vectors];
  for (int k = 0; k < vectors; ++k) v[k] = _mm256_set1_ps(static_cast<float>(k));
  for (long i = 0; i < multiply_add_rounds; ++i) {
#pragma GCC unroll 12
    for (int k = 0; k < vectors; ++k) v[k] = _mm256_fmadd_ps(v[k], factor, term);
  }
  keep(v);
  return 2.0 * 8 * vectors * static_cast<double>(multiply_add_rounds);
}

// --- AVX-512 ----------------------------------------------------------------------------

template <bool past_cache>
HOLDFAST_AVX512 inline void store_16(float* to, __m512 v) {
  if constexpr (past_cache) {
    _mm512_stream_ps(to, v);
  } else {
    _mm512_store_ps(to, v);
  }
}

template <bool past_cache>
HOLDFAST_AVX512 void copy_avx512(const float* from, float* to, size_t count) {
  for (size_t i = 0; i < count; i += 64) {
    __m512 v0 = _mm512_load_ps(from + i), v1 = _mm512_load_ps(from + i + 16);
    __m512 v2 = _mm512_load_ps(from + i + 32), v3 = _mm512_load_ps(from + i + 48);
    store_16<past_cache>(to + i, v0);
    store_16<past_cache>(to + i + 16, v1);
    store_16<past_cache>(to + i + 32, v2);
    store_16<past_cache>(to + i + 48, v3);
  }
  _mm_sfence();
}

template <bool past_cache>
HOLDFAST_AVX512 void add_avx512(const float* a, const float* b, float* to, size_t count) {
  for (size_t i = 0; i < count; i += 32) {
    __m512 v0 = _mm512_add_ps(_mm512_load_ps(a + i), _mm512_load_ps(b + i));
    __m512 v1 = _mm512_add_ps(_mm512_load_ps(a + i + 16), _mm512_load_ps(b + i + 16));
    store_16<past_cache>(to + i, v0);
    store_16<past_cache>(to + i + 16, v1);
  }
  _mm_sfence();
}

HOLDFAST_AVX512 float read_avx512(const float* from, size_t count) {
  __m512 s0 = _mm512_setzero_ps(), s1 = s0, s2 = s0, s3 = s0;
  for (size_t i = 0; i < count; i += 64) {
    s0 = _mm512_add_ps(s0, _mm512_load_ps(from + i));
    s1 = _mm512_add_ps(s1, _mm512_load_ps(from + i + 16));
    s2 = _mm512_add_ps(s2, _mm512_load_ps(from + i + 32));
    s3 = _mm512_add_ps(s3, _mm512_load_ps(from + i + 48));
  }
  alignas(64) float lanes[16];
  _mm512_store_ps(lanes, _mm512_add_ps(_mm512_add_ps(s0, s1), _mm512_add_ps(s2, s3)));
  float sum = 0;
  for (float lane : lanes) sum += lane;
  return sum;
}

HOLDFAST_AVX512 double multiply_add_avx512() {
  constexpr int vectors = 16;
  __m512 factor = _mm512_set1_ps(0.999f), term = _mm512_set1_ps(0.001f);
  __m512 v[vectors];
  for (int k = 0; k < vectors; ++k) v[k] = _mm512_set1_ps(static_cast<float>(k));
  for (long i = 0; i < multiply_add_rounds; ++i) {
#pragma GCC unroll 16
    for (int k = 0; k < vectors; ++k) v[k] = _mm512_fmadd_ps(v[k], factor, term);
  }
  keep(v);
  return 2.0 * 16 * vectors * static_cast<double>(multiply_add_rounds);
}

#endif

}  // namespace

std::span<const Loops> all_loops() {
#if defined(__x86_64__)
  static const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  static const bool avx512 = __builtin_cpu_supports("avx512f") != 0;
  static const Loops loops[] = {
      {"plain", true, copy_plain, add_plain, read_plain, multiply_add_plain},
      {"AVX2", avx2, copy_avx2<false>, add_avx2<false>, read_avx2, multiply_add_avx2},
      {"AVX2, streaming stores", avx2, copy_avx2<true>, add_avx2<true>, nullptr, nullptr},
      {"AVX-512", avx512, copy_avx512<false>, add_avx512<false>, read_avx512, multiply_add_avx512},
      {"AVX-512, streaming stores", avx512, copy_avx512<true>, add_avx512<true>, nullptr, nullptr},
  };
#else
  static const Loops loops[] = {
      {"plain", true, copy_plain, add_plain, read_plain, multiply_add_plain},
  };
#endif
  return loops;
}

}  // namespace holdfast::bench
