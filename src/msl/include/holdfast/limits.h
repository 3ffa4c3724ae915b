// metal::numeric_limits.
#pragma once

#include <holdfast/integer.h>

namespace metal {

struct __hf_no_limits {
  static constexpr bool is_specialized = false, is_signed = false, is_integer = false,
                        is_exact = false;
  static constexpr bool has_infinity = false, has_quiet_NaN = false, has_signaling_NaN = false;
  static constexpr bool is_iec559 = false, is_bounded = false, is_modulo = false;
  static constexpr int digits = 0, digits10 = 0, max_digits10 = 0, radix = 0;
  static constexpr int min_exponent = 0, max_exponent = 0, min_exponent10 = 0, max_exponent10 = 0;
};

template <class T, bool = __is_integral(T)>
struct __hf_limits : __hf_no_limits {};

template <class T>
struct __hf_limits<T, true> : __hf_no_limits {
  static constexpr bool is_specialized = true, is_signed = __is_signed(T), is_integer = true,
                        is_exact = true;
  static constexpr bool is_bounded = true, is_modulo = !__is_signed(T);
  static constexpr int radix = 2;
  static constexpr int digits = 8 * sizeof(T) - (__is_signed(T) ? 1 : 0);
  static constexpr int digits10 = digits * 30103 / 100000;
  HF_INLINE static constexpr T min() { return __hf::lowest<T>; }
  HF_INLINE static constexpr T max() { return __hf::highest<T>; }
  HF_INLINE static constexpr T lowest() { return __hf::lowest<T>; }
  HF_INLINE static constexpr T epsilon() { return T(0); }
  HF_INLINE static constexpr T round_error() { return T(0); }
  HF_INLINE static constexpr T infinity() { return T(0); }
  HF_INLINE static constexpr T quiet_NaN() { return T(0); }
  HF_INLINE static constexpr T signaling_NaN() { return T(0); }
  HF_INLINE static constexpr T denorm_min() { return T(0); }
};

template <>
struct __hf_limits<bool, true> : __hf_no_limits {
  static constexpr bool is_specialized = true, is_integer = true, is_exact = true,
                        is_bounded = true;
  static constexpr int radix = 2, digits = 1;
  HF_INLINE static constexpr bool min() { return false; }
  HF_INLINE static constexpr bool max() { return true; }
  HF_INLINE static constexpr bool lowest() { return false; }
};

// (type, largest, least normal, epsilon, least denormal, bits of the significand, exponents)
#define HF_FLOAT_LIMITS(T, largest, least, eps, denormal, bits, low, high, low10, high10, d10,  \
                        max10)                                                                  \
  template <>                                                                                   \
  struct __hf_limits<T, false> : __hf_no_limits {                                               \
    static constexpr bool is_specialized = true, is_signed = true, has_infinity = true;         \
    static constexpr bool has_quiet_NaN = true, has_signaling_NaN = true, is_iec559 = true;     \
    static constexpr bool is_bounded = true;                                                    \
    static constexpr int radix = 2, digits = bits, digits10 = d10, max_digits10 = max10;        \
    static constexpr int min_exponent = low, max_exponent = high;                               \
    static constexpr int min_exponent10 = low10, max_exponent10 = high10;                       \
    HF_INLINE static constexpr T min() { return static_cast<T>(least); }                        \
    HF_INLINE static constexpr T max() { return static_cast<T>(largest); }                      \
    HF_INLINE static constexpr T lowest() { return static_cast<T>(-largest); }                  \
    HF_INLINE static constexpr T epsilon() { return static_cast<T>(eps); }                      \
    HF_INLINE static constexpr T round_error() { return static_cast<T>(0.5f); }                 \
    HF_INLINE static constexpr T infinity() { return static_cast<T>(__builtin_inff()); }        \
    HF_INLINE static constexpr T quiet_NaN() { return static_cast<T>(__builtin_nanf("")); }     \
    HF_INLINE static constexpr T signaling_NaN() { return static_cast<T>(__builtin_nanf("")); } \
    HF_INLINE static constexpr T denorm_min() { return static_cast<T>(denormal); }              \
  };
HF_FLOAT_LIMITS(float, 0x1.fffffep127f, 0x1p-126f, 0x1p-23f, 0x1p-149f, 24, -125, 128, -37, 38, 6,
                9)
HF_FLOAT_LIMITS(half, 65504.0f, 0x1p-14f, 0x1p-10f, 0x1p-24f, 11, -13, 16, -4, 4, 3, 5)
HF_FLOAT_LIMITS(bfloat, 0x1.fep127f, 0x1p-126f, 0x1p-7f, 0x1p-133f, 8, -125, 128, -37, 38, 2, 4)
#undef HF_FLOAT_LIMITS

template <class T>
struct numeric_limits : __hf_limits<T> {};
template <class T>
struct numeric_limits<const T> : numeric_limits<T> {};
template <class T>
struct numeric_limits<volatile T> : numeric_limits<T> {};

}  // namespace metal
