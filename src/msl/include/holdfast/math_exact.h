// Functions of float that are exact or correctly rounded: fmod, ldexp, frexp, nextafter, and rsqrt.
#pragma once

#include "math_trigonometry.h"

namespace __hf {

HF_INLINE float rsqrt(float x) { return 1.0f / __builtin_sqrtf(x); }

HF_INLINE float divide(float x, float y) { return x / y; }

HF_INLINE float fdim(float x, float y) {
  float result = x > y ? x - y : 0.0f;
  return ((x != x) | (y != y)) ? x + y : result;
}

// x - floor(x), but never 1.
HF_INLINE float fract(float x) {
  float f = x - __builtin_floorf(x);
  f = f > 0x1.fffffep-1f ? 0x1.fffffep-1f : f;
  return absolute(x) == infinity() ? 0.0f : f;
}

// x 2^k, rounded once.
HF_INLINE float ldexp(float x, int k) {
  k = k > 400 ? 400 : k;
  k = k < -400 ? -400 : k;
  // Up in two steps of 2^127; down in steps that leave room for the last rounding.
  for (int i = 0; i < 2; ++i) {
    bool up = k > 127, down = k < -126;
    x = up ? x * 0x1p127f : x;
    x = down ? x * 0x1p-102f : x;
    k = up ? k - 127 : k;
    k = down ? k + 102 : k;
  }
  k = k > 127 ? 127 : k;
  k = k < -126 ? -126 : k;
  return x * power_of_two(k);
}

HF_INLINE float frexp(float x, int& exponent) {
  float a = absolute(x);
  bool is_denormal = a < 0x1p-126f;
  float normal = is_denormal ? x * 0x1p24f : x;
  unsigned u = bits_of(normal);
  bool is_special = (a == 0.0f) | !(a < infinity());
  int e = static_cast<int>((u >> 23) & 0xFFu) - (is_denormal ? 150 : 126);
  exponent = is_special ? 0 : e;
  return is_special ? x : float_of((u & 0x807FFFFFu) | 0x3F000000u);
}

HF_INLINE int ilogb(float x) {
  int e;
  frexp(x, e);
  int result = e - 1;
  result = absolute(x) == infinity() ? 0x7FFFFFFF : result;
  return ((x == 0.0f) | (x != x)) ? -0x7FFFFFFF - 1 : result;
}

// The neighbour of x in the direction of y, for the type whose bits are U.
template <class U, class T>
HF_INLINE T neighbour(T x, T y) {
  constexpr U sign = static_cast<U>(U(1) << (sizeof(U) * 8 - 1));
  U u = __builtin_bit_cast(U, x);
  bool away = (x < y) == ((u & sign) == 0);
  U stepped = static_cast<U>(away ? u + 1 : u - 1);
  U y_bits = __builtin_bit_cast(U, y);
  stepped = (u & static_cast<U>(~sign)) == 0 ? static_cast<U>((y_bits & sign) | 1) : stepped;
  T result = x == y ? y : __builtin_bit_cast(T, stepped);
  return x != x ? x : (y != y ? y : result);
}
template <class T>
HF_INLINE T nextafter(T x, T y) {
  if constexpr (sizeof(T) == 4)
    return neighbour<unsigned>(x, y);
  else
    return neighbour<unsigned short>(x, y);
}

// The exact remainder of the truncated quotient.
HF_INLINE float fmod(float x, float y) {
  float a = absolute(x), b = absolute(y);
  // For quotients below 2^23 one step in double is exact but for a last correction.
  double wide = static_cast<double>(a), divisor = static_cast<double>(b);
  float quotient = a / b;
  double q = static_cast<double>(static_cast<int>(quotient < 0x1p23f ? quotient : 0.0f));
  double rest = wide - q * divisor;
  rest = rest < 0.0 ? rest + divisor : rest;
  rest = rest >= divisor ? rest - divisor : rest;
  float result = static_cast<float>(rest);
  if (__builtin_expect((quotient >= 0x1p23f) & (b > 0.0f) & (a < infinity()), 0)) {
    // Division with remainder on the significands, 24 bits at a time: exact in double.
    int ea, eb;
    double rest_a = static_cast<double>(frexp(a, ea)) * 0x1p24;
    double fb = static_cast<double>(frexp(b, eb)) * 0x1p24;
    rest_a = rest_a >= fb ? rest_a - fb : rest_a;
    for (int left = ea - eb; left > 0; left -= 24) {
      double shifted_up = rest_a * static_cast<double>(power_of_two(left < 24 ? left : 24));
      double whole = static_cast<double>(static_cast<int>(shifted_up / fb));
      rest_a = shifted_up - whole * fb;
    }
    result = ldexp(static_cast<float>(rest_a), eb - 24);
  }
  result = b == infinity() ? a : result;
  bool is_undefined = !(a < infinity()) | (b == 0.0f) | (y != y);
  result = is_undefined ? not_a_number() : result;
  return with_sign_of(result, x);
}

}  // namespace __hf
