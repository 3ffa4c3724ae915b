// Scalar element types that C++20 lacks: float16_t, bfloat16_t and complex64_t.
//
// The two half types are 16-bit structs that convert through float; every arithmetic operator
// rounds its result to the half type, to nearest even. complex64_t is std::complex<float> with a
// lexicographic order and `%`.
#pragma once

#include <bit>
#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace holdfast {

namespace detail {

// IEEE binary16 bits of a float, rounded to nearest even; NaN stays NaN (quiet).
constexpr uint16_t float_to_half_bits(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  uint32_t sign = (bits >> 16) & 0x8000u;
  uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u)
    return static_cast<uint16_t>(sign | 0x7e00u | ((magnitude >> 13) & 0x3ffu));
  if (magnitude >= 0x47800000u)
    return static_cast<uint16_t>(sign | 0x7c00u);  // >= 65536 or infinite
  if (magnitude < 0x33000000u)
    return static_cast<uint16_t>(sign);  // below half the smallest subnormal
  if (magnitude < 0x38800000u) {         // subnormal half
    uint32_t shift = 126u - (magnitude >> 23);
    uint32_t mantissa = (magnitude & 0x7fffffu) | 0x800000u;
    uint32_t result = mantissa >> shift;
    uint32_t rest = mantissa & ((1u << shift) - 1u);
    uint32_t halfway = 1u << (shift - 1u);
    if (rest > halfway || (rest == halfway && (result & 1u))) ++result;
    return static_cast<uint16_t>(sign | result);
  }
  uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1u);
  return static_cast<uint16_t>(sign | ((rounded - 0x38000000u) >> 13));
}

constexpr float half_bits_to_float(uint16_t half) {
  uint32_t sign = static_cast<uint32_t>(half & 0x8000u) << 16;
  uint32_t exponent = (half >> 10) & 0x1fu;
  uint32_t mantissa = half & 0x3ffu;
  if (exponent == 0x1fu) return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13));
  if (exponent == 0) {
    // Zero or subnormal: mantissa * 2^-24 is exact in float.
    float magnitude = static_cast<float>(mantissa) * 5.9604644775390625e-8f;
    return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(magnitude));
  }
  return std::bit_cast<float>(sign | ((exponent + 112u) << 23) | (mantissa << 13));
}

constexpr uint16_t float_to_bfloat_bits(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>((bits >> 16) | 0x40u);
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

constexpr float bfloat_bits_to_float(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

}  // namespace detail

// `Encode`/`Decode` are the two conversions; the rest of both half types is the same.
template <uint16_t (*Encode)(float), float (*Decode)(uint16_t)>
struct Half {
  uint16_t bits_;

  Half() = default;
  template <typename T>
    requires std::is_convertible_v<T, float>
  constexpr Half(const T& value) : bits_(Encode(static_cast<float>(value))) {}
  template <typename T>
    requires std::is_convertible_v<T, float>
  constexpr Half& operator=(const T& value) {
    bits_ = Encode(static_cast<float>(value));
    return *this;
  }
  constexpr operator float() const { return Decode(bits_); }

  static constexpr Half from_bits(uint16_t bits) {
    Half result{};
    result.bits_ = bits;
    return result;
  }

  friend constexpr Half operator-(Half a) { return from_bits(a.bits_ ^ 0x8000u); }
#define HOLDFAST_HALF_ARITHMETIC(op)                                                       \
  friend constexpr Half operator op(Half a, Half b) { return Half(float(a) op float(b)); } \
  friend constexpr Half& operator op##=(Half & a, Half b) { return a = a op b; }
  HOLDFAST_HALF_ARITHMETIC(+)
  HOLDFAST_HALF_ARITHMETIC(-)
  HOLDFAST_HALF_ARITHMETIC(*)
  HOLDFAST_HALF_ARITHMETIC(/)
#undef HOLDFAST_HALF_ARITHMETIC
#define HOLDFAST_HALF_COMPARISON(op) \
  friend constexpr bool operator op(Half a, Half b) { return float(a) op float(b); }
  HOLDFAST_HALF_COMPARISON(==)
  HOLDFAST_HALF_COMPARISON(!=)
  HOLDFAST_HALF_COMPARISON(<)
  HOLDFAST_HALF_COMPARISON(<=)
  HOLDFAST_HALF_COMPARISON(>)
  HOLDFAST_HALF_COMPARISON(>=)
#undef HOLDFAST_HALF_COMPARISON
// Against other arithmetic types the half is widened: `half * 2.0f` is a float.
#define HOLDFAST_HALF_MIXED(op)                    \
  template <typename T>                            \
    requires std::is_arithmetic_v<T>               \
  friend constexpr auto operator op(Half a, T b) { \
    return float(a) op b;                          \
  }                                                \
  template <typename T>                            \
    requires std::is_arithmetic_v<T>               \
  friend constexpr auto operator op(T a, Half b) { \
    return a op float(b);                          \
  }
  HOLDFAST_HALF_MIXED(+)
  HOLDFAST_HALF_MIXED(-)
  HOLDFAST_HALF_MIXED(*)
  HOLDFAST_HALF_MIXED(/)
  HOLDFAST_HALF_MIXED(==)
  HOLDFAST_HALF_MIXED(!=)
  HOLDFAST_HALF_MIXED(<)
  HOLDFAST_HALF_MIXED(<=)
  HOLDFAST_HALF_MIXED(>)
  HOLDFAST_HALF_MIXED(>=)
#undef HOLDFAST_HALF_MIXED
};

using float16_t = Half<detail::float_to_half_bits, detail::half_bits_to_float>;
using bfloat16_t = Half<detail::float_to_bfloat_bits, detail::bfloat_bits_to_float>;
static_assert(sizeof(float16_t) == 2 && sizeof(bfloat16_t) == 2);

struct complex64_t : std::complex<float> {
  complex64_t() = default;
  constexpr complex64_t(float real, float imag) : std::complex<float>(real, imag) {}
  constexpr complex64_t(const std::complex<float>& value) : std::complex<float>(value) {}
  template <typename T>
    requires(std::is_convertible_v<T, float> && !std::is_same_v<T, complex64_t> &&
             !std::is_same_v<T, std::complex<float>>)
  constexpr complex64_t(const T& value) : std::complex<float>(static_cast<float>(value)) {}

  // The real part, implicitly, as in MLX.
  constexpr operator float() const { return real(); }

  friend bool operator<(complex64_t a, complex64_t b) {
    return a.real() < b.real() || (a.real() == b.real() && a.imag() < b.imag());
  }
  friend bool operator>(complex64_t a, complex64_t b) { return b < a; }
  friend bool operator<=(complex64_t a, complex64_t b) {
    return a.real() < b.real() || (a.real() == b.real() && a.imag() <= b.imag());
  }
  friend bool operator>=(complex64_t a, complex64_t b) { return b <= a; }
  friend complex64_t operator%(complex64_t a, complex64_t b) {
    return {a.real() - b.real() * std::floor(a.real() / b.real()),
            a.imag() - b.imag() * std::floor(a.imag() / b.imag())};
  }
};
static_assert(sizeof(complex64_t) == 8);

// Beside a real number the number becomes complex: the conversion to float is never chosen by an
// operator.
namespace detail {
template <typename T>
concept RealNumber = std::is_convertible_v<T, float> && !std::is_base_of_v<std::complex<float>, T>;
template <typename A, typename B>
concept OneIsComplex64 =
    (std::is_same_v<A, complex64_t> && (std::is_same_v<B, complex64_t> || RealNumber<B>)) ||
    (std::is_same_v<B, complex64_t> && RealNumber<A>);
}  // namespace detail

#define HOLDFAST_COMPLEX_ARITHMETIC(op)                       \
  template <typename A, typename B>                           \
    requires detail::OneIsComplex64<A, B>                     \
  constexpr complex64_t operator op(const A& a, const B& b) { \
    const complex64_t left(a), right(b);                      \
    return static_cast<const std::complex<float>&>(left)      \
        op static_cast<const std::complex<float>&>(right);    \
  }
HOLDFAST_COMPLEX_ARITHMETIC(+)
HOLDFAST_COMPLEX_ARITHMETIC(-)
HOLDFAST_COMPLEX_ARITHMETIC(*)
HOLDFAST_COMPLEX_ARITHMETIC(/)
#undef HOLDFAST_COMPLEX_ARITHMETIC
#define HOLDFAST_COMPLEX_COMPARISON(op)                             \
  template <typename A, typename B>                                 \
    requires(detail::OneIsComplex64<A, B> && !std::is_same_v<A, B>) \
  bool operator op(const A& a, const B& b) {                        \
    return complex64_t(a) op complex64_t(b);                        \
  }
HOLDFAST_COMPLEX_COMPARISON(==)
HOLDFAST_COMPLEX_COMPARISON(<)
HOLDFAST_COMPLEX_COMPARISON(<=)
HOLDFAST_COMPLEX_COMPARISON(>)
HOLDFAST_COMPLEX_COMPARISON(>=)
#undef HOLDFAST_COMPLEX_COMPARISON

}  // namespace holdfast
