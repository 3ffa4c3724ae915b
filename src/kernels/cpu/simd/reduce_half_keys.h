// Half types in the order of min and max as 16-bit integers, whole registers at a time.
#pragma once

#include "kernels/cpu/simd/reduce_compare.h"

namespace holdfast::kernels::cpu::HOLDFAST_SIMD_TARGET {

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

  // Extremes of the bits, from which the largest key follows: as signed numbers those of positive
  // elements are above all others, as unsigned ones those of negative elements.
  struct Extremes {
    int16_t most;
    uint16_t largest, smallest;

    int16_t key() const {
      constexpr uint16_t sign = 0x8000;
      if (most > infinity || largest > (sign | infinity)) return nan;
      uint16_t first = is_same<Order, Less> ? (largest >= sign ? largest : smallest)
                                            : (most >= 0 ? static_cast<uint16_t>(most) : smallest);
      return of(T{first});
    }
  };

  // The largest key of `count` >= 1 elements.
  static inline int16_t largest(const T* x, int64_t count) {
    typedef uint16_t Bits __attribute__((vector_size(vector_bytes)));
    constexpr int vectors = 2;
    constexpr int64_t step = width * vectors;
    int64_t i = 0;
    Extremes all{static_cast<int16_t>(x[0].bits), x[0].bits, x[0].bits};
    auto larger = [](auto a, auto b) { return a > b ? a : b; };
    auto smaller = [](auto a, auto b) { return a < b ? a : b; };
    if (count >= step) {
      Vector most[vectors];
      Bits largest[vectors], smallest[vectors];
#pragma GCC unroll 2
      for (int v = 0; v < vectors; ++v) {
        largest[v] = smallest[v] = load_vector<Bits>(x + v * width);
        most[v] = (Vector)largest[v];
      }
      for (i = step; i + step <= count; i += step) {
        fetch_far<step * sizeof(T)>(x + i);
#pragma GCC unroll 2
        for (int v = 0; v < vectors; ++v) {
          Bits bits = load_vector<Bits>(x + i + v * width);
          most[v] = larger((Vector)bits, most[v]);
          largest[v] = larger(bits, largest[v]);
          smallest[v] = smaller(bits, smallest[v]);
        }
      }
      all.most = fold_lanes<width, 1>(larger(most[0], most[1]), larger)[0];
      all.largest = fold_lanes<width, 1>(larger(largest[0], largest[1]), larger)[0];
      all.smallest = fold_lanes<width, 1>(smaller(smallest[0], smallest[1]), smaller)[0];
    }
    for (; i < count; ++i) {
      all.most = larger(static_cast<int16_t>(x[i].bits), all.most);
      all.largest = larger(x[i].bits, all.largest);
      all.smallest = smaller(x[i].bits, all.smallest);
    }
    return all.key();
  }

  // Where the first element with this key is; there is one.
  static inline int64_t find(const T* x, int64_t count, int16_t key) {
    int64_t i = 0;
    if (key != 0 && key != nan) {  // of one pattern of bits only
      bool negative = (key < 0) != is_same<Order, Less>;
      auto magnitude = static_cast<int16_t>(key < 0 ? -key : key);
      auto bits = static_cast<int16_t>(negative ? magnitude | 0x8000 : magnitude);
      while (i + width <= count && !any_lane(load_vector<Vector>(x + i) == bits)) i += width;
    }
    while (i + width <= count && !any_lane(of(load_vector<Vector>(x + i)) == key)) i += width;
    while (of(x[i]) != key) ++i;
    return i;
  }
};

}  // namespace holdfast::kernels::cpu::HOLDFAST_SIMD_TARGET
