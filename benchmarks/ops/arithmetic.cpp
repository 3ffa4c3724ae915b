#include "benchmarks/ops/arithmetic.h"

#include <cstdint>

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
struct Float32 {
  using Bits = uint32_t;
  HOLDFAST_NATIVE_INLINE static Pair widen(const Bits* from) {
    return {_mm512_load_ps(from), _mm512_load_ps(from + 16)};
  }
  HOLDFAST_NATIVE_INLINE static void narrow(Bits* to, Pair values) {
    _mm512_store_ps(to, values.first);
    _mm512_store_ps(to + 16, values.second);
  }
};

struct BFloat16 {
  using Bits = uint16_t;
  HOLDFAST_NATIVE_INLINE static Pair widen(const Bits* from) {
    __m512i line = _mm512_load_si512(from);
    return {(__m512)_mm512_maskz_slli_epi32(0xffff, line, 16),
            (__m512)_mm512_and_si512(line, _mm512_set1_epi32(static_cast<int>(0xffff0000u)))};
  }
  HOLDFAST_NATIVE_INLINE static void narrow(Bits* to, Pair values) {
    alignas(64) static constexpr uint16_t interleave[32] = {
        0, 16, 1, 17, 2,  18, 3,  19, 4,  20, 5,  21, 6,  22, 7,  23,
        8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
    auto words = (__m512i)_mm512_cvtne2ps_pbh(values.second, values.first);
    words = _mm512_maskz_permutexvar_epi16(0xffffffffu, _mm512_load_si512(interleave), words);
    _mm512_store_si512(to, words);
  }
  static float value_of(int16_t bits) {
    uint32_t word = static_cast<uint32_t>(static_cast<uint16_t>(bits)) << 16;
    float value;
    __builtin_memcpy(&value, &word, sizeof(value));
    return value;
  }
};

struct Float16 {
  using Bits = uint16_t;
  HOLDFAST_NATIVE_INLINE static Pair widen(const Bits* from) {
    const auto* halves = reinterpret_cast<const __m256i*>(from);
    return {_mm512_maskz_cvtph_ps(0xffff, _mm256_load_si256(halves)),
            _mm512_maskz_cvtph_ps(0xffff, _mm256_load_si256(halves + 1))};
  }
  HOLDFAST_NATIVE_INLINE static void narrow(Bits* to, Pair values) {
    __m256i low = _mm512_maskz_cvtps_ph(0xffff, values.first, _MM_FROUND_TO_NEAREST_INT);
    __m256i high = _mm512_maskz_cvtps_ph(0xffff, values.second, _MM_FROUND_TO_NEAREST_INT);
    _mm512_store_si512(to, _mm512_maskz_inserti64x4(0xff, _mm512_castsi256_si512(low), high, 1));
  }
  static float value_of(int16_t bits) {
    _Float16 value;
    __builtin_memcpy(&value, &bits, sizeof(value));
    return static_cast<float>(value);
  }
};

// e^x for a half type, to 2^-18: 2^(y - floor(y)) 2^floor(y) with y = x / log(2).
template <class Element>
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
// To the last bit: e^r 2^n with x = n log(2) + r, and log(2) in two parts. r is cut off, since it
// would mean nothing where n is too large.
template <>
HOLDFAST_NATIVE_INLINE __m512 exponential<Float32>(__m512 x) {
  __m512 y = _mm512_mul_ps(x, _mm512_set1_ps(1.44269504089f));
  __m512 n = _mm512_maskz_roundscale_ps(0xffff, y, _MM_FROUND_TO_NEAREST_INT);
  __m512 r = _mm512_fmadd_ps(n, _mm512_set1_ps(-0.693359375f), x);
  r = _mm512_fmadd_ps(n, _mm512_set1_ps(2.12194440e-4f), r);
  r = _mm512_maskz_range_ps(0xffff, r, _mm512_set1_ps(0.35f), 2);
  __m512 p = _mm512_set1_ps(0.001381388092f);
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(0.008369063458f));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(0.04166842181f));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(0.1666651776f));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(0.4999999325f));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0f));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0f));
  return _mm512_maskz_scalef_ps(0xffff, p, n);
}

template <class Element>
HOLDFAST_NATIVE void exp_row(const void* input, void* output, size_t count) {
  const auto* from = static_cast<const typename Element::Bits*>(input);
  auto* to = static_cast<typename Element::Bits*>(output);
  for (size_t i = 0; i < count; i += 64) {
    Pair a = Element::widen(from + i), b = Element::widen(from + i + 32);
    a = {exponential<Element>(a.first), exponential<Element>(a.second)};
    b = {exponential<Element>(b.first), exponential<Element>(b.second)};
    Element::narrow(to + i, a);
    Element::narrow(to + i + 32, b);
  }
}

HOLDFAST_NATIVE_INLINE __m512i ordered(__m512i bits) {
  __m512i magnitude = _mm512_and_si512(_mm512_srai_epi16(bits, 15), _mm512_set1_epi16(INT16_MAX));
  return _mm512_xor_si512(bits, magnitude);
}

// Half types compare as integers.
template <class Element>
HOLDFAST_NATIVE float maximum_of(const typename Element::Bits* from, size_t count) {
  __m512i best = _mm512_set1_epi16(INT16_MIN), other = best;
  for (size_t i = 0; i < count; i += 64) {
    best = _mm512_max_epi16(best, ordered(_mm512_load_si512(from + i)));
    other = _mm512_max_epi16(other, ordered(_mm512_load_si512(from + i + 32)));
  }
  alignas(64) int16_t words[32];
  _mm512_store_si512(words, ordered(_mm512_max_epi16(best, other)));
  float maximum = Element::value_of(words[0]);
  for (int16_t word : words) {
    float value = Element::value_of(word);
    maximum = value > maximum ? value : maximum;
  }
  return maximum;
}
HOLDFAST_NATIVE_INLINE float largest_lane(__m512 values) {
  alignas(64) float lanes[16];
  _mm512_store_ps(lanes, values);
  float largest = lanes[0];
  for (float lane : lanes) largest = lane > largest ? lane : largest;
  return largest;
}
template <>
HOLDFAST_NATIVE float maximum_of<Float32>(const uint32_t* from, size_t count) {
  Pair best = Float32::widen(from);
  for (size_t i = 32; i < count; i += 32) {
    Pair next = Float32::widen(from + i);
    best = {_mm512_maskz_max_ps(0xffff, best.first, next.first),
            _mm512_maskz_max_ps(0xffff, best.second, next.second)};
  }
  return largest_lane(_mm512_maskz_max_ps(0xffff, best.first, best.second));
}

template <class Element>
HOLDFAST_NATIVE void softmax_row(const void* input, void* output, size_t count) {
  const auto* from = static_cast<const typename Element::Bits*>(input);
  auto* to = static_cast<typename Element::Bits*>(output);
  alignas(64) float kept[4096];
  float maximum = maximum_of<Element>(from, count);
  __m512 shift = _mm512_set1_ps(maximum);
  __m512 sum = _mm512_setzero_ps(), sum2 = sum;
  for (size_t i = 0; i < count; i += 32) {
    Pair a = Element::widen(from + i);
    a = {exponential<Element>(_mm512_sub_ps(a.first, shift)),
         exponential<Element>(_mm512_sub_ps(a.second, shift))};
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
    Element::narrow(to + i, a);
  }
}

constexpr size_t longest = 4096;
// Zeros are as good as any: no instruction here depends on values.
template <class Element>
alignas(64) typename Element::Bits weights[longest];
template <class Element>
alignas(64) typename Element::Bits biases[longest];
alignas(64) float cosines[longest / 2], sines[longest / 2];

HOLDFAST_NATIVE_INLINE float sum_of_lanes(__m512 a, __m512 b) {
  alignas(64) float lanes[16];
  _mm512_store_ps(lanes, _mm512_add_ps(a, b));
  float total = 0;
  for (float lane : lanes) total += lane;
  return total;
}

template <class Element, bool centred>
HOLDFAST_NATIVE void norm_row(const void* input, void* output, size_t count) {
  const auto* from = static_cast<const typename Element::Bits*>(input);
  auto* to = static_cast<typename Element::Bits*>(output);
  __m512 sum = _mm512_setzero_ps(), sum2 = sum, squares = sum, squares2 = sum;
  for (size_t i = 0; i < count; i += 32) {
    Pair a = Element::widen(from + i);
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
    Pair a = Element::widen(from + i), w = Element::widen(weights<Element> + i);
    if constexpr (centred) {
      Pair b = Element::widen(biases<Element> + i);
      a = {_mm512_fmadd_ps(a.first, factor, term), _mm512_fmadd_ps(a.second, factor, term)};
      a = {_mm512_fmadd_ps(a.first, w.first, b.first),
           _mm512_fmadd_ps(a.second, w.second, b.second)};
    } else {
      a = {_mm512_mul_ps(a.first, factor), _mm512_mul_ps(a.second, factor)};
      a = {_mm512_mul_ps(a.first, w.first), _mm512_mul_ps(a.second, w.second)};
    }
    Element::narrow(to + i, a);
  }
}

// The angles are in the order of `widen`.
template <class Element>
HOLDFAST_NATIVE void rope_rows(const void* input, void* output, size_t count) {
  const auto* from = static_cast<const typename Element::Bits*>(input);
  auto* to = static_cast<typename Element::Bits*>(output);
  constexpr size_t half = 64;
  for (size_t row = 0; row < count; row += 2 * half) {
    for (size_t i = 0; i < half; i += 32) {
      Pair a = Element::widen(from + row + i), b = Element::widen(from + row + half + i);
      const float *c = cosines + row / 2 + i, *s = sines + row / 2 + i;
      __m512 c1 = _mm512_load_ps(c), c2 = _mm512_load_ps(c + 16);
      __m512 s1 = _mm512_load_ps(s), s2 = _mm512_load_ps(s + 16);
      Pair low{_mm512_fmsub_ps(a.first, c1, _mm512_mul_ps(b.first, s1)),
               _mm512_fmsub_ps(a.second, c2, _mm512_mul_ps(b.second, s2))};
      Pair high{_mm512_fmadd_ps(a.first, s1, _mm512_mul_ps(b.first, c1)),
                _mm512_fmadd_ps(a.second, s2, _mm512_mul_ps(b.second, c2))};
      Element::narrow(to + row + i, low);
      Element::narrow(to + row + half + i, high);
    }
  }
}

bool is_supported() {
  return __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bf16");
}

}  // namespace

static RowLoop choose(Dtype dtype, RowLoop for_float32, RowLoop for_bfloat16, RowLoop for_float16) {
  if (!is_supported()) return nullptr;
  return dtype == float32    ? for_float32
         : dtype == bfloat16 ? for_bfloat16
         : dtype == float16  ? for_float16
                             : nullptr;
}
RowLoop exp_loop(Dtype dtype) {
  return choose(dtype, exp_row<Float32>, exp_row<BFloat16>, exp_row<Float16>);
}
RowLoop softmax_loop(Dtype dtype) {
  return choose(dtype, softmax_row<Float32>, softmax_row<BFloat16>, softmax_row<Float16>);
}
RowLoop rms_norm_loop(Dtype dtype) {
  return choose(dtype, norm_row<Float32, false>, norm_row<BFloat16, false>,
                norm_row<Float16, false>);
}
RowLoop layer_norm_loop(Dtype dtype) {
  return choose(dtype, norm_row<Float32, true>, norm_row<BFloat16, true>, norm_row<Float16, true>);
}
RowLoop rope_loop(Dtype dtype) {
  return choose(dtype, rope_rows<Float32>, rope_rows<BFloat16>, rope_rows<Float16>);
}

#else

RowLoop exp_loop(Dtype) { return nullptr; }
RowLoop softmax_loop(Dtype) { return nullptr; }
RowLoop rms_norm_loop(Dtype) { return nullptr; }
RowLoop layer_norm_loop(Dtype) { return nullptr; }
RowLoop rope_loop(Dtype) { return nullptr; }

#endif

}  // namespace holdfast::bench
