// Element types of the kernels that are compiled per instruction set, and their conversion in
// blocks.
//
// Everything lives in the namespace of the instruction set and uses no inline function of other
// headers: the linker must never pick code compiled for a wider machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>
#if defined(__F16C__)
#include <immintrin.h>
#endif

#include "kernels/cpu/simd/half_pairs.h"
#include "kernels/cpu/simd/vectorise.h"

namespace holdfast::kernels::cpu::HOLDFAST_SIMD_TARGET {

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
  int64_t i = 0;
#if defined(__AVX512F__)
  for (; i + 16 <= count; i += 16) {
    __m256i half = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + i));
    __m512i wide = _mm512_maskz_slli_epi32(0xffff, _mm512_maskz_cvtepu16_epi32(0xffff, half), 16);
    _mm512_storeu_si512(to + i, wide);
  }
#elif defined(__AVX2__)
  for (; i + 8 <= count; i += 8) {
    __m128i half = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i));
    __m256i wide = _mm256_slli_epi32(_mm256_cvtepu16_epi32(half), 16);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + i), wide);
  }
#endif
  for (; i < count; ++i) to[i] = to_float(from[i]);
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
  int64_t i = 0;
#if defined(__AVX512F__)
  for (; i + 16 <= count; i += 16) {
    __m512 value = _mm512_loadu_ps(from + i);
    __m512i bits = _mm512_castps_si512(value);
    __m512i high = _mm512_maskz_srli_epi32(0xffff, bits, 16);
    __m512i odd = _mm512_and_si512(high, _mm512_set1_epi32(1));
    __m512i sum = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
    __m512i rounded = _mm512_maskz_srli_epi32(0xffff, sum, 16);
    __mmask16 nan = _mm512_cmp_ps_mask(value, value, _CMP_UNORD_Q);
    rounded = _mm512_mask_or_epi32(rounded, nan, high, _mm512_set1_epi32(0x40));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + i),
                        _mm512_maskz_cvtepi32_epi16(0xffff, rounded));
  }
#endif
  for (; i < count; ++i) to[i] = to_bfloat16(from[i]);
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

// The lanes of a vector of `width` combined to `keep`: each with the one width / 2 further on, then
// with the one width / 4 further on, and so on.
template <int half, int keep, typename V, typename Combine, int... lane>
inline V fold_halves(V lanes, Combine combine, std::integer_sequence<int, lane...> all) {
  if constexpr (half < keep) {
    return lanes;
  } else {
    constexpr int width = sizeof...(lane);
    V others = __builtin_shufflevector(lanes, lanes, (lane + half) % width...);
    return fold_halves<half / 2, keep>(combine(lanes, others), combine, all);
  }
}
template <int width, int keep, typename V, typename Combine>
inline V fold_lanes(V lanes, Combine combine) {
  return fold_halves<width / 2, keep>(lanes, combine, std::make_integer_sequence<int, width>());
}

// One vector of elements in the type they are computed in, and back with rounding to nearest even.
template <typename F>
using Lanes = typename NativeVector<F>::type;
template <typename F>
inline constexpr int lane_count = vector_bytes / static_cast<int>(sizeof(F));

template <typename F>
inline Lanes<F> load_lanes(const F* from) {
  return load_vector<Lanes<F>>(from);
}
// 16-bit values as 32-bit ones. g++ takes __builtin_convertvector apart into single lanes.
typedef uint32_t Words __attribute__((vector_size(vector_bytes)));
inline Words load_half_words(const void* from) {
#if defined(__AVX512F__)
  __m256i half = _mm256_loadu_si256(static_cast<const __m256i*>(from));
  return (Words)_mm512_maskz_cvtepu16_epi32(0xffff, half);
#elif defined(__AVX2__)
  return (Words)_mm256_cvtepu16_epi32(_mm_loadu_si128(static_cast<const __m128i*>(from)));
#else
  typedef uint16_t Halves __attribute__((vector_size(vector_bytes / 2)));
  return __builtin_convertvector(load_vector<Halves>(static_cast<const char*>(from)), Words);
#endif
}

template <typename F>
inline Lanes<F> load_lanes(const BFloat16* from) {
  return (Lanes<F>)(load_half_words(from) << 16);
}
template <typename F>
inline Lanes<F> load_lanes(const Float16* from) {
#if defined(__AVX512F__)
  __m256i half = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
  return (Lanes<F>)_mm512_maskz_cvtph_ps(0xffff, half);
#elif defined(__F16C__)
  return (Lanes<F>)_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
#else
  F lanes[lane_count<F>];
  widen(from, lane_count<F>, lanes);
  return load_vector<Lanes<F>>(lanes);
#endif
}
// The first `count` lanes; the others are zero.
template <typename F, typename T>
inline Lanes<F> load_some_lanes(const T* from, int64_t count) {
#if defined(__AVX512F__)
  [[maybe_unused]] const auto some = static_cast<__mmask16>((uint32_t{1} << count) - 1);
  if constexpr (is_same<F, float> && is_same<T, float>) {
    return (Lanes<F>)_mm512_maskz_loadu_ps(some, from);
  } else if constexpr (is_same<F, float> && is_same<T, BFloat16>) {
    __m256i half = _mm256_maskz_loadu_epi16(some, from);
    return (Lanes<F>)((Words)_mm512_maskz_cvtepu16_epi32(0xffff, half) << 16);
  } else if constexpr (is_same<F, float> && is_same<T, Float16>) {
    return (Lanes<F>)_mm512_maskz_cvtph_ps(0xffff, _mm256_maskz_loadu_epi16(some, from));
  }
#endif
  T padded[lane_count<F>] = {};
  std::memcpy(padded, from, static_cast<size_t>(count) * sizeof(T));
  return load_lanes<F>(padded);
}

template <typename F>
inline void store_lanes(F* to, Lanes<F> value) {
  store_vector(to, value);
}
#if defined(__AVX512F__)
inline void store_lanes(BFloat16* to, Lanes<float> value) {
  __m512i upper = _mm512_maskz_srli_epi32(0xffff, round_upper_half((__m512)value), 16);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm512_maskz_cvtepi32_epi16(0xffff, upper));
}
inline void store_lanes(Float16* to, Lanes<float> value) {
  __m256i half = _mm512_maskz_cvtps_ph(0xffff, (__m512)value, _MM_FROUND_TO_NEAREST_INT);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), half);
}
// Two neighbouring vectors of results (narrow_bfloat16_results) of half types as one register.
inline __m512i narrow_two(BFloat16, Lanes<float> a, Lanes<float> b) {
  return narrow_bfloat16_results({(__m512)a, (__m512)b});
}
inline __m512i narrow_two(Float16, Lanes<float> a, Lanes<float> b) {
  return narrow_float16({(__m512)a, (__m512)b});
}
template <bool stream>
inline void put_line(void* to, __m512i line) {
  if constexpr (stream) {
    _mm512_stream_si512(static_cast<__m512i*>(to), line);
  } else {
    _mm512_storeu_si512(to, line);
  }
}
#else
inline void store_lanes(BFloat16* to, Lanes<float> value) {
  float lanes[lane_count<float>];
  store_vector(lanes, value);
  for (int l = 0; l < lane_count<float>; ++l) to[l] = to_bfloat16(lanes[l]);
}
inline void store_lanes(Float16* to, Lanes<float> value) {
  float lanes[lane_count<float>];
  store_vector(lanes, value);
  narrow(lanes, lane_count<float>, to);
}
#endif
// The same past the cache, where the instruction set can; `to` is aligned to the bytes written. A
// fence must follow the last one.
template <typename T, typename V>
inline void stream_lanes(T* to, V value) {
#if defined(__AVX512F__)
  if constexpr (sizeof(T) >= 4) {
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to), (__m512i)value);
  } else {
    alignas(32) T lanes[sizeof(V) / sizeof(value[0])];
    store_lanes(lanes, value);
    _mm256_stream_si256(reinterpret_cast<__m256i*>(to),
                        _mm256_load_si256(reinterpret_cast<const __m256i*>(lanes)));
  }
#else
  store_lanes(to, value);
#endif
}

// Two neighbouring vectors at once, results of arithmetic on the type they are stored in; past the
// cache if `stream`: then `to` is aligned to 64 bytes.
template <bool stream, typename T, typename V>
inline void put_two_lanes(T* to, V a, V b) {
  constexpr int width = sizeof(V) / sizeof(a[0]);
#if defined(__AVX512F__)
  if constexpr (sizeof(T) == 2) return put_line<stream>(to, narrow_two(T{}, a, b));
#endif
  if constexpr (stream) {
    stream_lanes(to, a);
    stream_lanes(to + width, b);
  } else {
    store_lanes(to, a);
    store_lanes(to + width, b);
  }
}

template <typename F>
struct LanePair {
  Lanes<F> first, second;
};

// Two neighbouring vectors of elements, as cheaply as they come: bfloat16 by even and odd places (a
// shift and a mask, where widening in order costs a permutation each), others in order. put_pair
// brings results back in order.
template <typename T, typename F>
inline constexpr bool comes_split = is_same<T, BFloat16> && is_same<F, float>;

template <typename F, typename T>
inline LanePair<F> load_pair(const T* from) {
  if constexpr (comes_split<T, F>) {
    Words both = load_vector<Words>(from);
    return {(Lanes<F>)(both << 16), (Lanes<F>)(both & 0xffff0000u)};
  } else {
    return {load_lanes<F>(from), load_lanes<F>(from + lane_count<F>)};
  }
}
// Past the cache if `stream`, as put_two_lanes.
template <bool stream, typename T, typename F>
inline void put_pair(T* to, LanePair<F> values) {
  if constexpr (comes_split<T, F>) {
#if defined(__AVX512F__)
    put_line<stream>(to, join_bfloat16({(__m512)values.first, (__m512)values.second}));
#else
    // Rounded to nearest even, as narrow_bfloat16_results.
    auto rounded = [](Words bits) { return bits + ((bits >> 16 & 1) + 0x7fff); };
    Words first = rounded((Words)values.first), second = rounded((Words)values.second);
    store_vector(to, first >> 16 | (second & 0xffff0000u));
#endif
  } else {
    put_two_lanes<stream>(to, values.first, values.second);
  }
}

// Values, one for each of `count` elements, from the order of load_pair<F, T> into that of memory,
// and the other way. The last ones, which fill no pair, stay where they are.
template <typename T, typename F, typename Value>
inline void join_lanes(Value* values, int64_t count) {
  constexpr int width = lane_count<F>;
  if constexpr (!comes_split<T, F>) return;
  for (; count >= 2 * width; count -= 2 * width, values += 2 * width) {
    Value lanes[2 * width];
    std::memcpy(lanes, values, sizeof(lanes));
    for (int l = 0; l < width; ++l) {
      values[2 * l] = lanes[l];
      values[2 * l + 1] = lanes[width + l];
    }
  }
}
template <typename T, typename F, typename Value>
inline void split_lanes(Value* values, int64_t count) {
  constexpr int width = lane_count<F>;
  if constexpr (!comes_split<T, F>) return;
  for (; count >= 2 * width; count -= 2 * width, values += 2 * width) {
    Value lanes[2 * width];
    std::memcpy(lanes, values, sizeof(lanes));
    for (int l = 0; l < width; ++l) {
      values[l] = lanes[2 * l];
      values[width + l] = lanes[2 * l + 1];
    }
  }
}

template <typename T, typename V>
inline void store_some_lanes(T* to, V value, int64_t count) {
  T padded[sizeof(V) / sizeof(value[0])];
  store_lanes(padded, value);
  std::memcpy(to, padded, static_cast<size_t>(count) * sizeof(T));
}

// The sum of all lanes, halves first.
template <typename F>
inline F add_lanes(Lanes<F> total) {
  F lanes[lane_count<F>];
  store_vector(lanes, total);
  for (int half = lane_count<F> / 2; half >= 1; half /= 2) {
    for (int l = 0; l < half; ++l) lanes[l] += lanes[l + half];
  }
  return lanes[0];
}

}  // namespace holdfast::kernels::cpu::HOLDFAST_SIMD_TARGET
