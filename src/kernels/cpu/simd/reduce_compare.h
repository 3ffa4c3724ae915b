// The order that min, max, argmin and argmax share: NaN comes before everything, complex numbers
// compare lexicographically.
#pragma once

#include "kernels/cpu/simd/elements.h"

namespace holdfast::kernels::cpu::HOLDFAST_SIMD_TARGET {

template <typename T>
inline bool is_nan(T value) {
  return value != value;
}
inline bool is_nan(Complex64 value) { return value.real != value.real || value.imag != value.imag; }

struct Less {
  template <typename T>
  static inline bool before(T a, T b) {
    return a < b;
  }
  static inline bool before(Complex64 a, Complex64 b) {
    return a.real < b.real || (a.real == b.real && a.imag < b.imag);
  }
};
struct Greater {
  template <typename T>
  static inline bool before(T a, T b) {
    return a > b;
  }
  static inline bool before(Complex64 a, Complex64 b) { return Less::before(b, a); }
};

// Whether `a` replaces `b`, which came earlier.
template <typename Order, typename T>
inline bool replaces(T a, T b) {
  if constexpr (is_same<T, Complex64>) {
    // The real parts may be in order where an imaginary one is NaN.
    return !is_nan(b) && (Order::before(a, b) || is_nan(a));
  }
  return Order::before(a, b) || (is_nan(a) && !is_nan(b));
}

template <typename T>
inline constexpr bool is_real_float = is_same<T, float> || is_same<T, double>;

// Whether a comparison of vectors holds in some lane.
template <typename Mask>
inline bool any_lane(Mask mask) {
#if defined(__AVX512F__)
  return _mm512_test_epi32_mask((__m512i)mask, (__m512i)mask) != 0;
#elif defined(__AVX2__)
  return _mm256_testz_si256((__m256i)mask, (__m256i)mask) == 0;
#else
  uint64_t parts[sizeof(Mask) / 8], any = 0;
  std::memcpy(parts, &mask, sizeof(Mask));
  for (uint64_t part : parts) any |= part;
  return any != 0;
#endif
}

// The first of `count` >= 1 elements in the order (by value): NaN if there is one.
template <typename Order, typename T>
inline T best_of(const T* x, int64_t count) {
  if constexpr (is_real_float<T>) {
    using V = typename NativeVector<T>::type;
    using Mask = typename NativeVector<T>::mask;
    constexpr int width = vector_bytes / sizeof(T);
    constexpr int vectors = 4;
    constexpr int step = width * vectors;
    T result = x[0];
    int64_t i = 0;
    if (count >= step) {
      V best[vectors];
      Mask nan[vectors];
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) {
        best[v] = load_vector<V>(x + v * width);
        nan[v] = best[v] != best[v];
      }
      for (i = step; i + step <= count; i += step) {
        fetch_far<step * sizeof(T)>(x + i);
#pragma GCC unroll 4
        for (int v = 0; v < vectors; ++v) {
          V value = load_vector<V>(x + i + v * width);
          if constexpr (is_same<Order, Less>) {
            best[v] = value < best[v] ? value : best[v];
          } else {
            best[v] = value > best[v] ? value : best[v];
          }
          nan[v] |= value != value;
        }
      }
#pragma GCC unroll 3
      for (int v = 1; v < vectors; ++v) {
        if constexpr (is_same<Order, Less>) {
          best[0] = best[v] < best[0] ? best[v] : best[0];
        } else {
          best[0] = best[v] > best[0] ? best[v] : best[0];
        }
        nan[0] |= nan[v];
      }
      if (any_lane(nan[0])) return static_cast<T>(__builtin_nan(""));
      for (int l = 0; l < width; ++l) {
        if (Order::before(static_cast<T>(best[0][l]), result)) result = best[0][l];
      }
    }
    for (; i < count; ++i) {
      if (replaces<Order>(x[i], result)) result = x[i];
    }
    return result;
  } else if constexpr (is_same<T, Complex64>) {
    T result = x[0];
    for (int64_t i = 1; i < count; ++i) {
      if (replaces<Order>(x[i], result)) result = x[i];
    }
    return result;
  } else {
    T result = x[0];
    for (int64_t i = 1; i < count; ++i) result = Order::before(x[i], result) ? x[i] : result;
    return result;
  }
}

}  // namespace holdfast::kernels::cpu::HOLDFAST_SIMD_TARGET
