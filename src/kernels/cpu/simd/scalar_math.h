// What the ops' math (math.h) is made of: tests of numbers, rounding and integer division of one
// element, without branches, so that loops over them are vectorised.
#pragma once

#include "kernels/cpu/simd/loops.h"

namespace holdfast::kernels::cpu::HOLDFAST_SIMD_TARGET {

// The unsigned type to compute in: at least 32 bits, since narrower ones promote to signed int.
template <AnyInteger T>
using Unsigned = std::conditional_t<sizeof(T) < 4, uint32_t, std::make_unsigned_t<T>>;
template <AnyInteger T>
inline constexpr int width_of = 8 * sizeof(T);

HOLDFAST_INLINE float absolute(float a) { return __builtin_fabsf(a); }
HOLDFAST_INLINE double absolute(double a) { return __builtin_fabs(a); }

// `||` and `&&` without a branch, which would keep a loop from being vectorised.
HOLDFAST_INLINE bool either(bool a, bool b) { return a | b; }
HOLDFAST_INLINE bool both(bool a, bool b) { return a & b; }

HOLDFAST_INLINE bool is_nan(AnyFloat auto a) { return a != a; }
HOLDFAST_INLINE bool is_nan(Complex a) { return either(a.real != a.real, a.imag != a.imag); }
HOLDFAST_INLINE bool is_infinite(AnyFloat auto a) {
  return absolute(a) == static_cast<decltype(a)>(__builtin_inf());
}
HOLDFAST_INLINE bool is_finite(AnyFloat auto a) {
  return absolute(a) < static_cast<decltype(a)>(__builtin_inf());
}

// --- Rounding. Before SSE 4.1 there is no instruction; then adding and taking away 2^23 (2^52)
// rounds.

template <AnyFloat T>
HOLDFAST_INLINE T round_to_even(T a) {
#if defined(__SSE4_1__) || !defined(__x86_64__)
  if constexpr (sizeof(T) == 4)
    return __builtin_rintf(a);
  else
    return __builtin_rint(a);
#else
  const T magic = sizeof(T) == 4 ? T(8388608) : T(4503599627370496);
  T magnitude = absolute(a);
  T rounded = magnitude < magic ? (magnitude + magic) - magic : magnitude;
  if constexpr (sizeof(T) == 4)
    return __builtin_copysignf(rounded, a);
  else
    return __builtin_copysign(rounded, a);
#endif
}
template <AnyFloat T>
HOLDFAST_INLINE T round_down(T a) {
#if defined(__SSE4_1__) || !defined(__x86_64__)
  if constexpr (sizeof(T) == 4)
    return __builtin_floorf(a);
  else
    return __builtin_floor(a);
#else
  T nearest = round_to_even(a);
  return nearest > a ? nearest - 1 : nearest;
#endif
}
template <AnyFloat T>
HOLDFAST_INLINE T round_up(T a) {
#if defined(__SSE4_1__) || !defined(__x86_64__)
  if constexpr (sizeof(T) == 4)
    return __builtin_ceilf(a);
  else
    return __builtin_ceil(a);
#else
  return -round_down(-a);
#endif
}
template <AnyFloat T>
HOLDFAST_INLINE T round_toward_zero(T a) {
#if defined(__SSE4_1__) || !defined(__x86_64__)
  if constexpr (sizeof(T) == 4)
    return __builtin_truncf(a);
  else
    return __builtin_trunc(a);
#else
  T rounded = round_down(absolute(a));
  if constexpr (sizeof(T) == 4)
    return __builtin_copysignf(rounded, a);
  else
    return __builtin_copysign(rounded, a);
#endif
}

// --- Integer division. Up to 32 bits the floating-point quotient truncates to the exact one (its
// error is smaller than the distance of an inexact quotient to the next integer), and it
// vectorises.

template <AnyInteger T>
HOLDFAST_INLINE T quotient_toward_zero(T a, T b) {  // b != 0; the one overflow wraps
  if constexpr (sizeof(T) < 4) {
    return static_cast<T>(static_cast<int32_t>(static_cast<float>(a) / static_cast<float>(b)));
  } else if constexpr (sizeof(T) == 4) {
    double quotient = static_cast<double>(a) / static_cast<double>(b);
    // Into the range of int32_t, modulo 2^32. Only divisors of 1 and -1 get here: still an integer.
    quotient = quotient >= 2147483648.0 ? quotient - 4294967296.0 : quotient;
    return static_cast<T>(static_cast<int32_t>(quotient));
  } else if constexpr (std::is_signed_v<T>) {
    return b == -1 ? static_cast<T>(0 - static_cast<uint64_t>(a)) : a / b;
  } else {
    return a / b;
  }
}

template <AnyInteger T>
struct Division {
  T quotient, remainder;
};
// Rounded toward minus infinity; by zero both are 0.
template <AnyInteger T>
HOLDFAST_INLINE Division<T> divide_down(T a, T b) {
  T divisor = b == 0 ? T(1) : b;
  T quotient = quotient_toward_zero(a, divisor);
  T remainder = static_cast<T>(Unsigned<T>(a) - Unsigned<T>(quotient) * Unsigned<T>(divisor));
  if constexpr (std::is_signed_v<T>) {
    bool too_high = remainder != 0 && ((remainder ^ divisor) < 0);
    quotient = static_cast<T>(quotient - (too_high ? 1 : 0));
    remainder = static_cast<T>(remainder + (too_high ? divisor : T(0)));
  }
  return {b == 0 ? T(0) : quotient, b == 0 ? T(0) : remainder};
}

}  // namespace holdfast::kernels::cpu::HOLDFAST_SIMD_TARGET
