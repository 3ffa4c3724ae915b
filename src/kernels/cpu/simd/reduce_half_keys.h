// Half types in the order of min and max as 16-bit integers, whole registers at a time.
#pragma once

#include "kernels/cpu/simd/reduce_compare.h"

namespace holdfast::cpu::HOLDFAST_SIMD_TARGET {

// The key of an element is larger the earlier the element comes in the order: its magnitude with
// its sign (that of the order's direction), so that both zeros have one key, and NaN above all.
template <typename T, typename Order>
struct HalfKeys {
  typedef int16_t Vector __attribute__((vector_size(vector_bytes)));
  static constexpr int width = vector_bytes / 2;
  static constexpr int16_t infinity = is_same<T, BFloat16> ? 0x7f80 : 0x7c00;
  static constexpr int16_t nan = 0x7fff;

  static inline Vector of(Vector bits) {
    Vector sign = bits >> 15, magnitude = bits & int16_t{0x7fff};
    if constexpr (is_same<Order, Less>) sign = ~sign;
    Vector key = (magnitude ^ sign) - sign;
    return magnitude > infinity ? Vector{} + nan : key;
  }
  static inline int16_t of(T value) {
    auto magnitude = static_cast<int16_t>(value.bits & 0x7fff);
    bool negate = (value.bits > 0x7fff) != is_same<Order, Less>;
    return magnitude > infinity ? nan : static_cast<int16_t>(negate ? -magnitude : magnitude);
  }

  // The largest key of `count` >= 1 elements.
  static inline int16_t largest(const T* x, int64_t count) {
    constexpr int vectors = 4;
    constexpr int64_t step = width * vectors;
    int64_t i = 0;
    int16_t result = of(x[0]);
    if (count >= step) {
      Vector best[vectors];
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) best[v] = of(load_vector<Vector>(x + v * width));
      for (i = step; i + step <= count; i += step) {
#pragma GCC unroll 4
        for (int v = 0; v < vectors; ++v) {
          Vector key = of(load_vector<Vector>(x + i + v * width));
          best[v] = key > best[v] ? key : best[v];
        }
      }
#pragma GCC unroll 3
      for (int v = 1; v < vectors; ++v) best[0] = best[v] > best[0] ? best[v] : best[0];
      int16_t lanes[width];
      store_vector(lanes, best[0]);
      for (int16_t key : lanes) result = key > result ? key : result;
    }
    for (; i < count; ++i) {
      int16_t key = of(x[i]);
      result = key > result ? key : result;
    }
    return result;
  }

  // Where the first element with this key is; there is one.
  static inline int64_t find(const T* x, int64_t count, int16_t key) {
    int64_t i = 0;
    while (i + width <= count && !any_lane(of(load_vector<Vector>(x + i)) == key)) i += width;
    while (of(x[i]) != key) ++i;
    return i;
  }
};

}  // namespace holdfast::cpu::HOLDFAST_SIMD_TARGET
