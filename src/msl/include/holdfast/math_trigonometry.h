// The trigonometric functions of float; see math_core.h for what they have in common.
#pragma once

#include "math_core.h"

namespace __hf {

// The top bits of a fraction hi:lo after a shift to the left by 0 to 31.
HF_INLINE unsigned shifted(unsigned high, unsigned low, unsigned count) {
  return (high << count) | ((low >> 1) >> (31u - count));
}

// Payne and Hanek: x = n pi/2 + r for 2^24 <= |x| < infinity, through the product of x's
// significand with those words of 2/pi that can matter. Rare, so it is allowed 64-bit products.
HF_INLINE int reduce_huge_angle(float x, double& r) {
  unsigned u = bits_of(x);
  unsigned long significand = (u & 0x007FFFFFu) | 0x00800000u;
  unsigned shift = ((u >> 23) & 0xFFu) - 150u;  // x = significand 2^shift, shift 1 to 104
  unsigned words = shift >> 5, count = shift & 31u;
  bool none = words == 0, one = words == 1, two = words == 2;
  unsigned t0 = none ? 0u : one ? 0xA2F9836Eu : two ? 0x4E441529u : 0xFC2757D1u;
  unsigned t1 = none ? 0xA2F9836Eu : one ? 0x4E441529u : two ? 0xFC2757D1u : 0xF534DDC0u;
  unsigned t2 = none ? 0x4E441529u : one ? 0xFC2757D1u : two ? 0xF534DDC0u : 0xDB629599u;
  unsigned t3 = none ? 0xFC2757D1u : one ? 0xF534DDC0u : two ? 0xDB629599u : 0x3C439041u;
  unsigned t4 = none ? 0xF534DDC0u : one ? 0xDB629599u : two ? 0x3C439041u : 0xFE5163ABu;
  // Their product, from the word with the units on; of the last one only what it carries.
  unsigned long sum = significand * t3 + ((significand * t4) >> 32);
  unsigned w3 = static_cast<unsigned>(sum);
  sum = significand * t2 + (sum >> 32);
  unsigned w2 = static_cast<unsigned>(sum);
  sum = significand * t1 + (sum >> 32);
  unsigned w1 = static_cast<unsigned>(sum);
  unsigned w0 = static_cast<unsigned>(significand * t0) + static_cast<unsigned>(sum >> 32);
  unsigned whole = shifted(w0, w1, count);
  unsigned high = shifted(w1, w2, count);
  unsigned low = shifted(w2, w3, count);
  // Read as a signed number the fraction is in [-1/2, 1/2): that is the rounding of n.
  double fraction = static_cast<double>(static_cast<int>(high)) +
                    static_cast<double>(static_cast<int>(low >> 1)) * 0x1p-31;
  int n = static_cast<int>(whole + (high >> 31));
  bool is_negative = (u >> 31) != 0;
  r = fraction * (is_negative ? -3.657295198167899e-10 : 3.657295198167899e-10);  // pi/2 2^-32
  return is_negative ? -n : n;
}

// x = n pi/2 + r + low, |r| <= pi/4; the last bits of n count. r is NaN for infinities and NaN.
// What r has lost by being a float is in `low`, for those who need it.
HF_INLINE int reduce_angle(float x, float& r, float& low) {
  double wide = static_cast<double>(x);
  double sum = wide * 0.63661977236758138 + 0x1.8p52;
  double n_double = sum - 0x1.8p52;
  int n = static_cast<int>(static_cast<unsigned>(__builtin_bit_cast(unsigned long, sum)));
  double rest = (wide - n_double * 0x1.921fb5p0) - n_double * 1.5893254773528196e-08;
  float a = absolute(x);
  if (__builtin_expect((a >= 0x1p24f) & (a < infinity()), 0)) n = reduce_huge_angle(x, rest);
  r = static_cast<float>(rest);
  low = static_cast<float>(rest - static_cast<double>(r));
  return n;
}
HF_INLINE int reduce_angle(float x, float& r) {
  float low;
  return reduce_angle(x, r, low);
}

// sin r and cos r for |r| <= pi/4.
HF_INLINE float sin_polynomial(float r) {
  float z = r * r;
  float p = -0.000195179062f;
  p = p * z + 0.00833218731f;
  p = p * z - 0.166666552f;
  return r + r * (z * p);
}
HF_INLINE float cos_polynomial(float r) {
  float z = r * r;
  float p = 2.44306684e-05f;
  p = p * z - 0.00138873013f;
  p = p * z + 0.0416666456f;
  return (1.0f - 0.5f * z) + z * z * p;
}

// The sine of n pi/2 + r; one more quarter turn gives the cosine.
HF_INLINE float sine_of_turn(int n, float sine, float cosine) {
  float value = (n & 1) != 0 ? cosine : sine;
  return float_of(bits_of(value) ^ ((static_cast<unsigned>(n) & 2u) << 30));
}

HF_INLINE float sin(float x) {
  float r;
  int n = reduce_angle(x, r);
  float result = sine_of_turn(n, sin_polynomial(r), cos_polynomial(r));
  return x == 0.0f ? x : result;
}

HF_INLINE float cos(float x) {
  float r;
  int n = reduce_angle(x, r);
  return sine_of_turn(n + 1, sin_polynomial(r), cos_polynomial(r));
}

HF_INLINE float sincos(float x, float& cosine) {
  float r;
  int n = reduce_angle(x, r);
  float s = sin_polynomial(r), c = cos_polynomial(r);
  cosine = sine_of_turn(n + 1, s, c);
  float result = sine_of_turn(n, s, c);
  return x == 0.0f ? x : result;
}

// The tangent of n pi/2 + r + low.
HF_INLINE float tangent_of_turn(int n, float r, float low) {
  float z = r * r;
  float p = 0.00437977212f;
  p = p * z + 8.48301424e-05f;
  p = p * z + 0.0108371405f;
  p = p * z + 0.0212829057f;
  p = p * z + 0.0540594347f;
  p = p * z + 0.133326724f;
  p = p * z + 0.333333492f;
  float rest = r * (z * p);
  float rough = r + rest;
  float tangent = r + (rest + low * (1.0f + rough * rough));
  return (n & 1) != 0 ? -1.0f / tangent : tangent;
}

HF_INLINE float tan(float x) {
  float r, low;
  int n = reduce_angle(x, r, low);
  float result = tangent_of_turn(n, r, low);
  return x == 0.0f ? x : result;
}

// x = n/2 + r, |r| <= 1/4, exactly; r is NaN for infinities and NaN.
HF_INLINE int reduce_turn(float x, float& r) {
  // From 2^24 on x is an even integer: nothing is left. Before, an even integer is taken away.
  float small = absolute(x) < 0x1p24f ? x : 0.0f;
  float y = small - static_cast<float>(static_cast<int>(small) & ~1);
  float sum = (y + y) + round_magic;
  r = (y - 0.5f * (sum - round_magic)) + (x - x);
  return integer_of_sum(sum);
}

HF_INLINE float sinpi_polynomial(float r) {
  float z = r * r;
  float p = 0.0791586339f;
  p = p * z - 0.598981261f;
  p = p * z + 2.55015469f;
  p = p * z - 5.16771269f;
  return r * 3.14159274f + r * (z * p - 8.74227766e-8f);
}
HF_INLINE float cospi_polynomial(float r) {
  float z = r * r;
  float p = 0.109865814f;
  p = p * z + 0.214656442f;
  p = p * z - 1.33417571f;
  p = p * z + 4.05868959f;
  p = p * z - 4.93480206f;
  return p * z + 1.0f;
}

HF_INLINE float sinpi(float x) {
  float r;
  int n = reduce_turn(x, r);
  float result = sine_of_turn(n, sinpi_polynomial(r), cospi_polynomial(r));
  return result == 0.0f ? with_sign_of(0.0f, x) : result;
}
HF_INLINE float cospi(float x) {
  float r;
  int n = reduce_turn(x, r);
  return sine_of_turn(n + 1, sinpi_polynomial(r), cospi_polynomial(r)) + 0.0f;  // never -0
}
HF_INLINE float tanpi(float x) {
  float r;
  int n = reduce_turn(x, r);
  double wide = static_cast<double>(r) * 3.1415926535897931;
  float angle = static_cast<float>(wide);
  float result = tangent_of_turn(n, angle, static_cast<float>(wide - static_cast<double>(angle)));
  return result == 0.0f ? with_sign_of(0.0f, x) : result;
}

// asin for |x| <= 1/2.
HF_INLINE float asin_polynomial(float x) {
  float z = x * x;
  float p = 0.0376918875f;
  p = p * z + 0.0143172406f;
  p = p * z + 0.0318387374f;
  p = p * z + 0.0445133895f;
  p = p * z + 0.0750052184f;
  p = p * z + 0.166666597f;
  return x + x * (z * p);
}

inline constexpr float half_pi = 1.57079637f, half_pi_low = -4.37113883e-8f;

HF_INLINE float asin(float x) {
  float a = absolute(x);
  bool is_large = a > 0.5f;
  float p = asin_polynomial(is_large ? __builtin_sqrtf((1.0f - a) * 0.5f) : a);
  return with_sign_of(is_large ? (half_pi - (p + p)) + half_pi_low : p, x);
}

HF_INLINE float acos(float x) {
  float a = absolute(x);
  bool is_large = a > 0.5f;
  float p = asin_polynomial(is_large ? __builtin_sqrtf((1.0f - a) * 0.5f) : x);
  float twice = p + p;
  float large = x < 0.0f ? 2.0f * half_pi - (twice - 2.0f * half_pi_low) : twice;
  return is_large ? large : half_pi - (p - half_pi_low);
}

// atan for 0 <= a <= 1.
HF_INLINE float atan_polynomial(float a) {
  float z = a * a;
  float p = -0.00178284873f;
  p = p * z + 0.0108687486f;
  p = p * z - 0.0310970321f;
  p = p * z + 0.0578814f;
  p = p * z - 0.0839930624f;
  p = p * z + 0.109508805f;
  p = p * z - 0.142640159f;
  p = p * z + 0.199985296f;
  p = p * z - 0.333332986f;
  return a + a * (z * p);
}

HF_INLINE float atan(float x) {
  float a = absolute(x);
  bool is_large = a > 1.0f;
  float p = atan_polynomial(is_large ? 1.0f / a : a);
  return with_sign_of(is_large ? (half_pi - p) + half_pi_low : p, x);
}

HF_INLINE float atan2(float y, float x) {
  float ax = absolute(x), ay = absolute(y);
  bool is_steep = ay > ax;
  float smaller = is_steep ? ax : ay, larger = is_steep ? ay : ax;
  float ratio = smaller / larger;
  ratio = larger == 0.0f ? 0.0f : ratio;
  ratio = smaller == infinity() ? 1.0f : ratio;
  float p = atan_polynomial(ratio);
  p = is_steep ? (half_pi - p) + half_pi_low : p;
  bool is_left = (bits_of(x) >> 31) != 0;
  p = is_left ? (2.0f * half_pi - p) + 2.0f * half_pi_low : p;
  p = ((x != x) | (y != y)) ? not_a_number() : p;
  return with_sign_of(p, y);
}

namespace fast {

// Good for angles up to some thousands; the error grows with the angle.
HF_INLINE int reduce(float x, float& r) {
  float sum = x * 0.636619772f + round_magic;
  float n = sum - round_magic;
  r = ((x - n * 1.5703125f) - n * 4.837512969970703125e-4f) - n * 7.54978995e-8f;
  return integer_of_sum(sum);
}
HF_INLINE float sin(float x) {
  float r;
  int n = reduce(x, r);
  return sine_of_turn(n, sin_polynomial(r), cos_polynomial(r));
}
HF_INLINE float cos(float x) {
  float r;
  int n = reduce(x, r);
  return sine_of_turn(n + 1, sin_polynomial(r), cos_polynomial(r));
}
HF_INLINE float sincos(float x, float& cosine) {
  float r;
  int n = reduce(x, r);
  float s = sin_polynomial(r), c = cos_polynomial(r);
  cosine = sine_of_turn(n + 1, s, c);
  return sine_of_turn(n, s, c);
}
HF_INLINE float tan(float x) {
  float r;
  int n = reduce(x, r);
  return tangent_of_turn(n, r, 0.0f);
}

}  // namespace fast
}  // namespace __hf
