// The mathematical functions of namespace metal, metal::precise and metal::fast, for every scalar
// and vec. half and bfloat compute in float and round once; an integer counts as float.
//
// In the default mode, and in relaxed mode, metal::exp is metal::precise::exp; where the fast mode
// is chosen (__FAST_MATH__) it is metal::fast::exp.
#pragma once

#include <holdfast/common.h>
#include <holdfast/math_exact.h>
#include <holdfast/relational.h>

// A function of one float, lifted: HF_REAL1(name, implementation).
#define HF_REAL1(name, function)                                          \
  template <class T>                                                      \
  HF_INLINE __hf::real_t<T> name(T x) {                                   \
    return static_cast<__hf::real_t<T>>(function(static_cast<float>(x))); \
  }                                                                       \
  HF_VECTOR1(name)
// The type in which a function of two or three arguments computes.
#define HF_REAL2(name, function)                                 \
  template <class A, class B>                                    \
  HF_INLINE __hf::real_t<__hf::common_t<A, B>> name(A a, B b) {  \
    return static_cast<__hf::real_t<__hf::common_t<A, B>>>(      \
        function(static_cast<float>(a), static_cast<float>(b))); \
  }                                                              \
  HF_VECTOR2(name)

// For half and bfloat, which round the result anyway, an approximation to 20 bits is as good.
#define HF_EXPONENTIAL(name, space)                                                   \
  template <class T>                                                                  \
  HF_INLINE __hf::real_t<T> name(T x) {                                               \
    if constexpr (sizeof(__hf::real_t<T>) == 2) {                                     \
      if (HF_HAS_APPROXIMATIONS)                                                      \
        return static_cast<__hf::real_t<T>>(__hf::fast::name(static_cast<float>(x))); \
    }                                                                                 \
    return static_cast<__hf::real_t<T>>(space::name(static_cast<float>(x)));          \
  }                                                                                   \
  HF_VECTOR1(name)

// Functions of which the fast version is another one.
#define HF_TWO_VERSIONS(space)                                        \
  HF_EXPONENTIAL(exp, space)                                          \
  HF_EXPONENTIAL(exp2, space)                                         \
  HF_EXPONENTIAL(exp10, space)                                        \
  HF_REAL1(log, space::log)                                           \
  HF_REAL1(log2, space::log2)                                         \
  HF_REAL1(log10, space::log10)                                       \
  HF_REAL1(sin, space::sin)                                           \
  HF_REAL1(cos, space::cos)                                           \
  HF_REAL1(tan, space::tan)                                           \
  HF_REAL2(pow, space::pow)                                           \
  HF_REAL2(powr, space::powr)                                         \
  template <class T>                                                  \
  HF_INLINE __hf::real_t<T> sincos(T x, thread T& cosine) {           \
    float c;                                                          \
    float s = space::sincos(static_cast<float>(x), c);                \
    cosine = static_cast<T>(c);                                       \
    return static_cast<__hf::real_t<T>>(s);                           \
  }                                                                   \
  template <class T, int n>                                           \
  HF_INLINE vec<T, n> sincos(vec<T, n> x, thread vec<T, n>& cosine) { \
    cosine = cos(x);                                                  \
    return sin(x);                                                    \
  }

namespace metal {
namespace precise {
HF_TWO_VERSIONS(__hf)
}
namespace fast {
HF_TWO_VERSIONS(__hf::fast)
}
}  // namespace metal

// The version of the math mode, which is known before anything is optimised.
namespace __hf::chosen {
#define HF_CHOSEN1(name) \
  HF_INLINE float name(float x) { return __hf_is_fast_math() ? fast::name(x) : __hf::name(x); }
#define HF_CHOSEN2(name)                                              \
  HF_INLINE float name(float x, float y) {                            \
    return __hf_is_fast_math() ? fast::name(x, y) : __hf::name(x, y); \
  }
HF_CHOSEN1(exp)
HF_CHOSEN1(exp2)
HF_CHOSEN1(exp10)
HF_CHOSEN1(log)
HF_CHOSEN1(log2)
HF_CHOSEN1(log10)
HF_CHOSEN1(sin)
HF_CHOSEN1(cos)
HF_CHOSEN1(tan)
HF_CHOSEN2(pow)
HF_CHOSEN2(powr)
#undef HF_CHOSEN1
#undef HF_CHOSEN2
HF_INLINE float sincos(float x, float& cosine) {
  return __hf_is_fast_math() ? fast::sincos(x, cosine) : __hf::sincos(x, cosine);
}
}  // namespace __hf::chosen

namespace metal {
HF_TWO_VERSIONS(__hf::chosen)
#undef HF_TWO_VERSIONS

HF_REAL1(sinpi, __hf::sinpi)
HF_REAL1(cospi, __hf::cospi)
HF_REAL1(tanpi, __hf::tanpi)
HF_REAL1(asin, __hf::asin)
HF_REAL1(acos, __hf::acos)
HF_REAL1(atan, __hf::atan)
HF_REAL2(atan2, __hf::atan2)
HF_REAL1(sinh, __hf::sinh)
HF_REAL1(cosh, __hf::cosh)
HF_REAL1(tanh, __hf::tanh)
HF_REAL1(asinh, __hf::asinh)
HF_REAL1(acosh, __hf::acosh)
HF_REAL1(atanh, __hf::atanh)
HF_REAL1(sqrt, __builtin_sqrtf)
HF_REAL1(rsqrt, __hf::rsqrt)
HF_REAL1(floor, __builtin_floorf)
HF_REAL1(ceil, __builtin_ceilf)
HF_REAL1(trunc, __builtin_truncf)
HF_REAL1(rint, __builtin_rintf)
HF_REAL1(round, __builtin_roundf)
HF_REAL1(fract, __hf::fract)
HF_REAL1(fabs, __builtin_fabsf)
HF_REAL2(copysign, __builtin_copysignf)
HF_REAL2(fmod, __hf::fmod)
HF_REAL2(fdim, __hf::fdim)
HF_REAL2(divide, __hf::divide)
#undef HF_REAL1
#undef HF_REAL2

template <class A, class B, class C>
HF_INLINE __hf::real_t<__hf::common3_t<A, B, C>> fma(A a, B b, C c) {
  return static_cast<__hf::real_t<__hf::common3_t<A, B, C>>>(
      __builtin_fmaf(static_cast<float>(a), static_cast<float>(b), static_cast<float>(c)));
}
HF_VECTOR3(fma)

// abs is of integers too, and keeps their type.
template <class T>
HF_INLINE __hf::scalar_t<T> abs(T x) {
  if constexpr (__hf::is_float<T>)
    return static_cast<T>(__builtin_fabsf(static_cast<float>(x)));
  else if constexpr (__is_signed(T))
    return static_cast<T>(x < 0 ? 0 - x : x);
  else
    return x;
}
HF_VECTOR1(abs)

template <class T>
HF_INLINE __hf::real_t<T> nextafter(T x, __hf::same<T> y) {
  return __hf::nextafter(static_cast<__hf::real_t<T>>(x), static_cast<__hf::real_t<T>>(y));
}
HF_VECTOR2(nextafter)

template <class T>
HF_INLINE __hf::real_t<T> ldexp(T x, int k) {
  return static_cast<__hf::real_t<T>>(__hf::ldexp(static_cast<float>(x), k));
}
template <class T, int n>
HF_INLINE vec<T, n> ldexp(vec<T, n> x, __hf::same<vec<int, n>> k) {
  HF_MAP2(T, ldexp, x, k)
}

template <class T>
HF_INLINE __hf::real_t<T> frexp(T x, thread int& exponent) {
  return static_cast<__hf::real_t<T>>(__hf::frexp(static_cast<float>(x), exponent));
}
template <class T, int n>
HF_INLINE vec<T, n> frexp(vec<T, n> x, thread vec<int, n>& exponent) {
  vec<T, n> result;
  for (int i = 0; i < n; ++i) {
    int e;
    result[i] = frexp(x[i], e);
    exponent[i] = e;
  }
  return result;
}

template <class T>
HF_INLINE int ilogb(T x) {
  return __hf::ilogb(static_cast<float>(static_cast<__hf::real_t<T>>(x)));
}
template <class T, int n>
HF_INLINE vec<int, n> ilogb(vec<T, n> x) {
  HF_MAP1(int, ilogb, x)
}

template <class T>
HF_INLINE __hf::real_t<T> modf(T x, thread T& whole) {
  float f = static_cast<float>(x), t = __builtin_truncf(f);
  whole = static_cast<T>(t);
  float rest = __builtin_fabsf(f) < __builtin_inff() ? f - t : (f != f ? f : 0.0f);
  return static_cast<__hf::real_t<T>>(__builtin_copysignf(rest, f));
}
template <class T, int n>
HF_INLINE vec<T, n> modf(vec<T, n> x, thread vec<T, n>& whole) {
  vec<T, n> result;
  for (int i = 0; i < n; ++i) {
    T part;
    result[i] = modf(x[i], part);
    whole[i] = part;
  }
  return result;
}

// What has one version only is in both namespaces.
#define HF_BOTH(name) \
  namespace precise { \
  using metal::name;  \
  }                   \
  namespace fast {    \
  using metal::name;  \
  }
HF_BOTH(abs)
HF_BOTH(acos)
HF_BOTH(acosh)
HF_BOTH(asin)
HF_BOTH(asinh)
HF_BOTH(atan)
HF_BOTH(atan2)
HF_BOTH(atanh)
HF_BOTH(ceil)
HF_BOTH(clamp)
HF_BOTH(copysign)
HF_BOTH(cosh)
HF_BOTH(cospi)
HF_BOTH(divide)
HF_BOTH(fabs)
HF_BOTH(fdim)
HF_BOTH(floor)
HF_BOTH(fma)
HF_BOTH(fmax)
HF_BOTH(fmax3)
HF_BOTH(fmedian3)
HF_BOTH(fmin)
HF_BOTH(fmin3)
HF_BOTH(fmod)
HF_BOTH(fract)
HF_BOTH(frexp)
HF_BOTH(ilogb)
HF_BOTH(isfinite)
HF_BOTH(isinf)
HF_BOTH(isnan)
HF_BOTH(ldexp)
HF_BOTH(max)
HF_BOTH(max3)
HF_BOTH(median3)
HF_BOTH(min)
HF_BOTH(min3)
HF_BOTH(mix)
HF_BOTH(modf)
HF_BOTH(nextafter)
HF_BOTH(rint)
HF_BOTH(round)
HF_BOTH(rsqrt)
HF_BOTH(saturate)
HF_BOTH(sign)
HF_BOTH(sinh)
HF_BOTH(sinpi)
HF_BOTH(smoothstep)
HF_BOTH(sqrt)
HF_BOTH(step)
HF_BOTH(tanh)
HF_BOTH(tanpi)
HF_BOTH(trunc)
#undef HF_BOTH

}  // namespace metal

#define HUGE_VALF __builtin_inff()
#define HUGE_VALH static_cast<half>(__builtin_inff())
#define INFINITY __builtin_inff()
#define NAN __builtin_nanf("")
#define MAXFLOAT 3.40282347e+38f
#define MAXHALF static_cast<half>(65504.0f)
#define FLT_MAX 3.40282347e+38f
#define FLT_MIN 1.17549435e-38f
#define FLT_EPSILON 1.19209290e-7f
#define FLT_DIG 6
#define FLT_MANT_DIG 24
#define FLT_MAX_10_EXP 38
#define FLT_MAX_EXP 128
#define FLT_MIN_10_EXP (-37)
#define FLT_MIN_EXP (-125)
#define FLT_RADIX 2
#define HALF_MAX static_cast<half>(65504.0f)
#define HALF_MIN static_cast<half>(6.103515625e-05f)
#define HALF_EPSILON static_cast<half>(9.765625e-04f)
#define HALF_DIG 3
#define HALF_MANT_DIG 11
#define FP_ILOGB0 (-2147483647 - 1)
#define FP_ILOGBNAN (-2147483647 - 1)

#define M_E_F 2.71828183f
#define M_LOG2E_F 1.44269504f
#define M_LOG10E_F 0.434294482f
#define M_LN2_F 0.693147181f
#define M_LN10_F 2.30258509f
#define M_PI_F 3.14159265f
#define M_PI_2_F 1.57079633f
#define M_PI_4_F 0.785398163f
#define M_1_PI_F 0.318309886f
#define M_2_PI_F 0.636619772f
#define M_2_SQRTPI_F 1.12837917f
#define M_SQRT2_F 1.41421356f
#define M_SQRT1_2_F 0.707106781f
#define M_E_H static_cast<half>(M_E_F)
#define M_LOG2E_H static_cast<half>(M_LOG2E_F)
#define M_LOG10E_H static_cast<half>(M_LOG10E_F)
#define M_LN2_H static_cast<half>(M_LN2_F)
#define M_LN10_H static_cast<half>(M_LN10_F)
#define M_PI_H static_cast<half>(M_PI_F)
#define M_PI_2_H static_cast<half>(M_PI_2_F)
#define M_PI_4_H static_cast<half>(M_PI_4_F)
#define M_1_PI_H static_cast<half>(M_1_PI_F)
#define M_2_PI_H static_cast<half>(M_2_PI_F)
#define M_2_SQRTPI_H static_cast<half>(M_2_SQRTPI_F)
#define M_SQRT2_H static_cast<half>(M_SQRT2_F)
#define M_SQRT1_2_H static_cast<half>(M_SQRT1_2_F)
