// The functions that headers which overload mathematical functions for types of their own call
// underneath: __metal_exp(x, mode), with a mode of the three below, and __metal_simd_sum(x).
#pragma once

#include <holdfast/math.h>
#include <holdfast/simdgroup.h>

#define __METAL_PRECISE_MATH__ 0
#define __METAL_FAST_MATH__ 1
// What the mode of the compilation is.
#define __METAL_MAYBE_FAST_MATH__ (__hf_is_fast_math() ? 1 : 0)

// Functions of which the fast version is another one.
#define HF_MODE1(name)                                                 \
  template <class T>                                                   \
  HF_INLINE auto __metal_##name(T x, int mode) {                       \
    return mode != 0 ? metal::fast::name(x) : metal::precise::name(x); \
  }
#define HF_MODE2(name)                                                       \
  template <class T>                                                         \
  HF_INLINE auto __metal_##name(T x, T y, int mode) {                        \
    return mode != 0 ? metal::fast::name(x, y) : metal::precise::name(x, y); \
  }
// Functions of which there is one; some are called without a mode.
#define HF_ANY_MODE1(name)                      \
  template <class T>                            \
  HF_INLINE auto __metal_##name(T x, int = 0) { \
    return metal::name(x);                      \
  }
#define HF_ANY_MODE2(name)                           \
  template <class T>                                 \
  HF_INLINE auto __metal_##name(T x, T y, int = 0) { \
    return metal::name(x, y);                        \
  }
#define HF_ANY_MODE3(name)                                \
  template <class T>                                      \
  HF_INLINE auto __metal_##name(T x, T y, T z, int = 0) { \
    return metal::name(x, y, z);                          \
  }

HF_MODE1(exp)
HF_MODE1(exp2)
HF_MODE1(exp10)
HF_MODE1(log)
HF_MODE1(log2)
HF_MODE1(log10)
HF_MODE1(sin)
HF_MODE1(cos)
HF_MODE1(tan)
HF_MODE2(pow)
HF_MODE2(powr)
HF_ANY_MODE1(abs)
HF_ANY_MODE1(fabs)
HF_ANY_MODE1(acos)
HF_ANY_MODE1(acosh)
HF_ANY_MODE1(asin)
HF_ANY_MODE1(asinh)
HF_ANY_MODE1(atan)
HF_ANY_MODE1(atanh)
HF_ANY_MODE1(ceil)
HF_ANY_MODE1(cosh)
HF_ANY_MODE1(cospi)
HF_ANY_MODE1(floor)
HF_ANY_MODE1(fract)
HF_ANY_MODE1(ilogb)
HF_ANY_MODE1(rint)
HF_ANY_MODE1(round)
HF_ANY_MODE1(rsqrt)
HF_ANY_MODE1(saturate)
HF_ANY_MODE1(sign)
HF_ANY_MODE1(sinh)
HF_ANY_MODE1(sinpi)
HF_ANY_MODE1(sqrt)
HF_ANY_MODE1(tanh)
HF_ANY_MODE1(tanpi)
HF_ANY_MODE1(trunc)
HF_ANY_MODE1(isfinite)
HF_ANY_MODE1(isinf)
HF_ANY_MODE1(isnan)
HF_ANY_MODE1(isnormal)
HF_ANY_MODE1(signbit)
HF_ANY_MODE2(atan2)
HF_ANY_MODE2(copysign)
HF_ANY_MODE2(divide)
HF_ANY_MODE2(fdim)
HF_ANY_MODE2(fmax)
HF_ANY_MODE2(fmin)
HF_ANY_MODE2(fmod)
HF_ANY_MODE2(max)
HF_ANY_MODE2(min)
HF_ANY_MODE2(nextafter)
HF_ANY_MODE2(step)
HF_ANY_MODE3(clamp)
HF_ANY_MODE3(fma)
HF_ANY_MODE3(fmax3)
HF_ANY_MODE3(fmedian3)
HF_ANY_MODE3(fmin3)
HF_ANY_MODE3(max3)
HF_ANY_MODE3(median3)
HF_ANY_MODE3(min3)
HF_ANY_MODE3(mix)
HF_ANY_MODE3(smoothstep)
#undef HF_MODE1
#undef HF_MODE2
#undef HF_ANY_MODE1
#undef HF_ANY_MODE2
#undef HF_ANY_MODE3

template <class T>
HF_INLINE auto __metal_ldexp(T x, int k, int = 0) {
  return metal::ldexp(x, k);
}
template <class T>
HF_INLINE auto __metal_frexp(T x, thread int* exponent, int = 0) {
  return metal::frexp(x, *exponent);
}
template <class T>
HF_INLINE auto __metal_frexp(T x, thread int& exponent, int = 0) {
  return metal::frexp(x, exponent);
}
template <class T>
HF_INLINE auto __metal_modf(T x, thread T* whole, int = 0) {
  return metal::modf(x, *whole);
}
template <class T>
HF_INLINE auto __metal_modf(T x, thread T& whole, int = 0) {
  return metal::modf(x, whole);
}
template <class T>
HF_INLINE auto __metal_sincos(T x, thread T* cosine, int mode) {
  return mode != 0 ? metal::fast::sincos(x, *cosine) : metal::precise::sincos(x, *cosine);
}

// Of the lanes. The width is asked for with a number of the type that it is wanted in.
template <class T>
HF_INLINE constexpr T __metal_get_simdgroup_size(T) {
  return T(32);
}
template <class T>
HF_INLINE constexpr T __metal_get_quadgroup_size(T) {
  return T(4);
}
#define HF_OF_LANES(name)                 \
  template <class... T>                   \
  HF_INLINE auto __metal_##name(T... x) { \
    return metal::name(x...);             \
  }
HF_OF_LANES(simd_broadcast)
HF_OF_LANES(simd_broadcast_first)
HF_OF_LANES(simd_shuffle)
HF_OF_LANES(simd_shuffle_down)
HF_OF_LANES(simd_shuffle_rotate_down)
HF_OF_LANES(simd_shuffle_rotate_up)
HF_OF_LANES(simd_shuffle_up)
HF_OF_LANES(simd_shuffle_xor)
HF_OF_LANES(simd_shuffle_and_fill_down)
HF_OF_LANES(simd_shuffle_and_fill_up)
HF_OF_LANES(simd_max)
HF_OF_LANES(simd_min)
HF_OF_LANES(simd_product)
HF_OF_LANES(simd_sum)
HF_OF_LANES(simd_prefix_exclusive_product)
HF_OF_LANES(simd_prefix_exclusive_sum)
HF_OF_LANES(simd_prefix_inclusive_product)
HF_OF_LANES(simd_prefix_inclusive_sum)
HF_OF_LANES(quad_broadcast)
HF_OF_LANES(quad_broadcast_first)
HF_OF_LANES(quad_shuffle)
HF_OF_LANES(quad_shuffle_down)
HF_OF_LANES(quad_shuffle_rotate_down)
HF_OF_LANES(quad_shuffle_rotate_up)
HF_OF_LANES(quad_shuffle_up)
HF_OF_LANES(quad_shuffle_xor)
HF_OF_LANES(quad_shuffle_and_fill_down)
HF_OF_LANES(quad_shuffle_and_fill_up)
HF_OF_LANES(quad_max)
HF_OF_LANES(quad_min)
HF_OF_LANES(quad_product)
HF_OF_LANES(quad_sum)
HF_OF_LANES(quad_prefix_exclusive_product)
HF_OF_LANES(quad_prefix_exclusive_sum)
HF_OF_LANES(quad_prefix_inclusive_product)
HF_OF_LANES(quad_prefix_inclusive_sum)
#undef HF_OF_LANES

// Of floats, their bits.
#define HF_BITS_OF_LANES(name)                                                \
  template <class T>                                                          \
  HF_INLINE T __metal_##name(T x) {                                           \
    if constexpr (__hf::is_float<T>) {                                        \
      using Bits = metal::conditional_t<sizeof(T) == 4, uint, ushort>;        \
      return __builtin_bit_cast(T, metal::name(__builtin_bit_cast(Bits, x))); \
    } else {                                                                  \
      return metal::name(x);                                                  \
    }                                                                         \
  }
HF_BITS_OF_LANES(simd_and)
HF_BITS_OF_LANES(simd_or)
HF_BITS_OF_LANES(simd_xor)
HF_BITS_OF_LANES(quad_and)
HF_BITS_OF_LANES(quad_or)
HF_BITS_OF_LANES(quad_xor)
#undef HF_BITS_OF_LANES
