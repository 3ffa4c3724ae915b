#include "benchmarks/ops/arithmetic.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace holdfast::bench {

#if defined(__x86_64__)
namespace {

#define HOLDFAST_NATIVE __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")))
#define HOLDFAST_NATIVE_INLINE HOLDFAST_NATIVE inline __attribute__((always_inline))

struct Pair {
  __m512 first, second;
};

// 32 elements as floats, in an order that `narrow` undoes.
struct BFloat16 {
  HOLDFAST_NATIVE_INLINE static Pair widen(const uint16_t* from) {
    __m512i line = _mm512_load_si512(from);
    return {(__m512)_mm512_maskz_slli_epi32(0xffff, line, 16),
            (__m512)_mm512_and_si512(line, _mm512_set1_epi32(static_cast<int>(0xffff0000u)))};
  }
  HOLDFAST_NATIVE_INLINE static __m512i narrow(Pair values) {
    alignas(64) static constexpr uint16_t interleave[32] = {
        0, 16, 1, 17, 2,  18, 3,  19, 4,  20, 5,  21, 6,  22, 7,  23,
        8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
    auto words = (__m512i)_mm512_cvtne2ps_pbh(values.second, values.first);
    return _mm512_maskz_permutexvar_epi16(0xffffffffu, _mm512_load_si512(interleave), words);
  }
  static float maximum(int16_t bits) {
    uint32_t word = static_cast<uint32_t>(static_cast<uint16_t>(bits)) << 16;
    float value;
    __builtin_memcpy(&value, &word, sizeof(value));
    return value;
  }
};

struct Float16 {
  HOLDFAST_NATIVE_INLINE static Pair widen(const uint16_t* from) {
    const auto* halves = reinterpret_cast<const __m256i*>(from);
    return {_mm512_maskz_cvtph_ps(0xffff, _mm256_load_si256(halves)),
            _mm512_maskz_cvtph_ps(0xffff, _mm256_load_si256(halves + 1))};
  }
  HOLDFAST_NATIVE_INLINE static __m512i narrow(Pair values) {
    __m256i low = _mm512_maskz_cvtps_ph(0xffff, values.first, _MM_FROUND_TO_NEAREST_INT);
    __m256i high = _mm512_maskz_cvtps_ph(0xffff, values.second, _MM_FROUND_TO_NEAREST_INT);
    return _mm512_maskz_inserti64x4(0xff, _mm512_castsi256_si512(low), high, 1);
  }
  static float maximum(int16_t bits) {
    _Float16 value;
    __builtin_memcpy(&value, &bits, sizeof(value));
    return static_cast<float>(value);
  }
};

// e^x to 2^-18: 2^(y - floor(y)) 2^floor(y) with y = x / log(2).
HOLDFAST_NATIVE_INLINE __m512 exponential(__m512 x) {
  __m512 y = _mm512_mul_ps(x, _mm512_set1_ps(1.44269504089f));
  __m512 f = _mm512_maskz_reduce_ps(0xffff, y, 1);
  __m512 p = _mm512_set1_ps(0.0135341678f);
  p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(0.0520114601f));
  p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(0.241442755f));
  p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(0.693003833f));
  p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(1.00000262f));
  return _mm512_maskz_scalef_ps(0xffff, p, y);
}

template <class Half>
HOLDFAST_NATIVE void exp_row(const uint16_t* from, uint16_t* to, size_t count) {
  for (size_t i = 0; i < count; i += 64) {
    Pair a = Half::widen(from + i);
    Pair b = Half::widen(from + i + 32);
    a = {exponential(a.first), exponential(a.second)};
    b = {exponential(b.first), exponential(b.second)};
    _mm512_store_si512(to + i, Half::narrow(a));
    _mm512_store_si512(to + i + 32, Half::narrow(b));
  }
}

HOLDFAST_NATIVE_INLINE __m512i ordered(__m512i bits) {
  __m512i magnitude = _mm512_and_si512(_mm512_srai_epi16(bits, 15), _mm512_set1_epi16(INT16_MAX));
  return _mm512_xor_si512(bits, magnitude);
}

template <class Half>
HOLDFAST_NATIVE void softmax_row(const uint16_t* from, uint16_t* to, size_t count) {
  alignas(64) float kept[4096];
  __m512i best = _mm512_set1_epi16(INT16_MIN), other = best;
  for (size_t i = 0; i < count; i += 64) {
    best = _mm512_max_epi16(best, ordered(_mm512_load_si512(from + i)));
    other = _mm512_max_epi16(other, ordered(_mm512_load_si512(from + i + 32)));
  }
  alignas(64) int16_t words[32];
  _mm512_store_si512(words, ordered(_mm512_max_epi16(best, other)));
  float maximum = Half::maximum(words[0]);
  for (int16_t word : words) {
    float value = Half::maximum(word);
    maximum = value > maximum ? value : maximum;
  }
  __m512 shift = _mm512_set1_ps(maximum);
  __m512 sum = _mm512_setzero_ps(), sum2 = sum;
  for (size_t i = 0; i < count; i += 32) {
    Pair a = Half::widen(from + i);
    a = {exponential(_mm512_sub_ps(a.first, shift)), exponential(_mm512_sub_ps(a.second, shift))};
    _mm512_store_ps(kept + i, a.first);
    _mm512_store_ps(kept + i + 16, a.second);
    sum = _mm512_add_ps(sum, a.first);
    sum2 = _mm512_add_ps(sum2, a.second);
  }
  alignas(64) float lanes[16];
  _mm512_store_ps(lanes, _mm512_add_ps(sum, sum2));
  float total = 0;
  for (float lane : lanes) total += lane;
  __m512 factor = _mm512_set1_ps(1 / total);
  for (size_t i = 0; i < count; i += 32) {
    Pair a{_mm512_mul_ps(_mm512_load_ps(kept + i), factor),
           _mm512_mul_ps(_mm512_load_ps(kept + i + 16), factor)};
    _mm512_store_si512(to + i, Half::narrow(a));
  }
}

constexpr size_t longest = 4096;
// Zeros are as good as any: no instruction here depends on values.
alignas(64) uint16_t weights[longest], biases[longest];
alignas(64) float cosines[longest / 2], sines[longest / 2];

HOLDFAST_NATIVE_INLINE float sum_of_lanes(__m512 a, __m512 b) {
  alignas(64) float lanes[16];
  _mm512_store_ps(lanes, _mm512_add_ps(a, b));
  float total = 0;
  for (float lane : lanes) total += lane;
  return total;
}

template <class Half, bool centred>
HOLDFAST_NATIVE void norm_row(const uint16_t* from, uint16_t* to, size_t count) {
  __m512 sum = _mm512_setzero_ps(), sum2 = sum, squares = sum, squares2 = sum;
  for (size_t i = 0; i < count; i += 32) {
    Pair a = Half::widen(from + i);
    if constexpr (centred) {
      sum = _mm512_add_ps(sum, a.first);
      sum2 = _mm512_add_ps(sum2, a.second);
    }
    squares = _mm512_fmadd_ps(a.first, a.first, squares);
    squares2 = _mm512_fmadd_ps(a.second, a.second, squares2);
  }
  auto length = static_cast<float>(count);
  float mean = centred ? sum_of_lanes(sum, sum2) / length : 0;
  float variance = sum_of_lanes(squares, squares2) / length - mean * mean;
  float scale = 1 / __builtin_sqrtf(variance + 1e-5f);
  __m512 factor = _mm512_set1_ps(scale), term = _mm512_set1_ps(-mean * scale);
  for (size_t i = 0; i < count; i += 32) {
    Pair a = Half::widen(from + i), w = Half::widen(weights + i);
    if constexpr (centred) {
      Pair b = Half::widen(biases + i);
      a = {_mm512_fmadd_ps(a.first, factor, term), _mm512_fmadd_ps(a.second, factor, term)};
      a = {_mm512_fmadd_ps(a.first, w.first, b.first),
           _mm512_fmadd_ps(a.second, w.second, b.second)};
    } else {
      a = {_mm512_mul_ps(a.first, factor), _mm512_mul_ps(a.second, factor)};
      a = {_mm512_mul_ps(a.first, w.first), _mm512_mul_ps(a.second, w.second)};
    }
    _mm512_store_si512(to + i, Half::narrow(a));
  }
}

// The angles are in the order of `widen`.
template <class Half>
HOLDFAST_NATIVE void rope_rows(const uint16_t* from, uint16_t* to, size_t count) {
  constexpr size_t half = 64;
  for (size_t row = 0; row < count; row += 2 * half) {
    for (size_t i = 0; i < half; i += 32) {
      Pair a = Half::widen(from + row + i), b = Half::widen(from + row + half + i);
      const float *c = cosines + row / 2 + i, *s = sines + row / 2 + i;
      __m512 c1 = _mm512_load_ps(c), c2 = _mm512_load_ps(c + 16);
      __m512 s1 = _mm512_load_ps(s), s2 = _mm512_load_ps(s + 16);
      Pair low{_mm512_fmsub_ps(a.first, c1, _mm512_mul_ps(b.first, s1)),
               _mm512_fmsub_ps(a.second, c2, _mm512_mul_ps(b.second, s2))};
      Pair high{_mm512_fmadd_ps(a.first, s1, _mm512_mul_ps(b.first, c1)),
                _mm512_fmadd_ps(a.second, s2, _mm512_mul_ps(b.second, c2))};
      _mm512_store_si512(to + row + i, Half::narrow(low));
      _mm512_store_si512(to + row + half + i, Half::narrow(high));
    }
  }
}

bool is_supported() {
  return __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bf16");
}

}  // namespace

static RowLoop choose(Dtype dtype, RowLoop for_bfloat16, RowLoop for_float16) {
  if (!is_supported()) return nullptr;
  return dtype == bfloat16 ? for_bfloat16 : dtype == float16 ? for_float16 : nullptr;
}
RowLoop exp_loop(Dtype dtype) { return choose(dtype, exp_row<BFloat16>, exp_row<Float16>); }
RowLoop softmax_loop(Dtype dtype) {
  return choose(dtype, softmax_row<BFloat16>, softmax_row<Float16>);
}
RowLoop rms_norm_loop(Dtype dtype) {
  return choose(dtype, norm_row<BFloat16, false>, norm_row<Float16, false>);
}
RowLoop layer_norm_loop(Dtype dtype) {
  return choose(dtype, norm_row<BFloat16, true>, norm_row<Float16, true>);
}
RowLoop rope_loop(Dtype dtype) { return choose(dtype, rope_rows<BFloat16>, rope_rows<Float16>); }

#else

RowLoop exp_loop(Dtype) { return nullptr; }
RowLoop softmax_loop(Dtype) { return nullptr; }
RowLoop rms_norm_loop(Dtype) { return nullptr; }
RowLoop layer_norm_loop(Dtype) { return nullptr; }
RowLoop rope_loop(Dtype) { return nullptr; }

#endif

}  // namespace holdfast::bench
