// The order of sort: elements as unsigned integers that compare the same way. NaN comes last;
// complex numbers compare by real, then by imaginary part.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>
#include <type_traits>

#include <holdfast/types.h>

namespace holdfast::kernels::cpu {

template <size_t size>
using UnsignedOfSize = std::conditional_t<
    size == 1, uint8_t,
    std::conditional_t<size == 2, uint16_t, std::conditional_t<size == 4, uint32_t, uint64_t>>>;

template <typename T>
inline constexpr bool is_ieee =
    std::is_floating_point_v<T> || std::is_same_v<T, float16_t> || std::is_same_v<T, bfloat16_t>;

// `equal_zeros`: -0 and 0 get one key, as indices of a stable sort need; else -0 stands before 0,
// and value_of gives back the element. The zeros of complex numbers are always equal: the imaginary
// parts decide between them.
template <bool equal_zeros, typename T>
UnsignedOfSize<sizeof(T)> key_of(T value) {
  using Key = UnsignedOfSize<sizeof(T)>;
  constexpr Key sign = Key(Key{1} << (sizeof(T) * 8 - 1));
  if constexpr (std::is_same_v<T, complex64_t>) {
    if (value.real() != value.real() || value.imag() != value.imag()) return ~Key{0};
    return Key{key_of<true>(value.real())} << 32 | key_of<true>(value.imag());
  } else if constexpr (is_ieee<T>) {
    // Without branches: signs are as good as random.
    Key bits = std::bit_cast<Key>(value);
    if (equal_zeros) bits = static_cast<Key>(bits << 1) == 0 ? Key{0} : bits;
    auto negative = static_cast<Key>(Key{0} - static_cast<Key>(bits >> (sizeof(T) * 8 - 1)));
    auto key = static_cast<Key>(bits ^ (negative | sign));
    return value != value ? static_cast<Key>(~Key{0}) : key;
  } else if constexpr (std::is_signed_v<T>) {
    return static_cast<Key>(static_cast<Key>(value) ^ sign);
  } else {
    return value;
  }
}

// The inverse; all NaNs have become one.
template <typename T>
T value_of(UnsignedOfSize<sizeof(T)> key) {
  using Key = UnsignedOfSize<sizeof(T)>;
  constexpr Key sign = Key(Key{1} << (sizeof(T) * 8 - 1));
  if constexpr (std::is_same_v<T, complex64_t>) {
    return {value_of<float>(static_cast<uint32_t>(key >> 32)),
            value_of<float>(static_cast<uint32_t>(key))};
  } else if constexpr (is_ieee<T>) {
    return std::bit_cast<T>(static_cast<Key>(key & sign ? key ^ sign : ~key));
  } else if constexpr (std::is_signed_v<T>) {
    return static_cast<T>(key ^ sign);
  } else {
    return static_cast<T>(key);
  }
}

// Does `a` come before `b`?
template <typename T>
bool comes_before(T a, T b) {
  return key_of<true>(a) < key_of<true>(b);
}

}  // namespace holdfast::kernels::cpu
