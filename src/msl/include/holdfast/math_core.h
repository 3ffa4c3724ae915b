// exp, log, pow and the hyperbolic functions of float, as scalar code that widens well: no calls,
// no tables, selects instead of branches, integers of 32 bits. Results are the same everywhere. So
// a fused multiply-add is exact also where the machine has none, and slow there: only the
// exponentials, in which kernels spend their time, use it. Denormals, infinities and NaN are kept.
// `fast` holds shorter versions, which are still right at the infinities.
//
// The order of operations is exact: whatever the math mode, these headers are compiled without
// leave to reassociate or to contract.
//
// Coefficients: scripts/fit_msl_math.py. Errors: tests/msl/math_accuracy_test.cpp, which compiles
// this file as plain C++.
#pragma once

#ifndef HF_INLINE
#define HF_INLINE inline __attribute__((always_inline))
#endif
#ifndef HF_HAS_APPROXIMATIONS
#define HF_HAS_APPROXIMATIONS false
#endif

namespace __hf {

HF_INLINE constexpr unsigned bits_of(float x) { return __builtin_bit_cast(unsigned, x); }
HF_INLINE constexpr float float_of(unsigned u) { return __builtin_bit_cast(float, u); }

HF_INLINE constexpr float infinity() { return __builtin_inff(); }
HF_INLINE constexpr float not_a_number() { return __builtin_nanf(""); }

HF_INLINE float absolute(float x) { return __builtin_fabsf(x); }

// a b + c, rounded once.
HF_INLINE float fused(float a, float b, float c) { return __builtin_fmaf(a, b, c); }

// Adding and subtracting it rounds to an integer, which then stands in the low bits of the sum.
inline constexpr float round_magic = 0x1.8p23f;

HF_INLINE int integer_of_sum(float sum) {
  return static_cast<int>(bits_of(sum) - bits_of(round_magic));
}

// 2^n for -126 <= n <= 127, and infinity for 128.
HF_INLINE float power_of_two(int n) { return float_of(static_cast<unsigned>(n + 127) << 23); }

// x * 2^n for -252 <= n <= 254 and x near 1: rounds once. When x is NaN, n may be anything. Other
// code has no use for the builtin: lowerings rely on n being small
// (devices/cpu/jit/compiler/widen/powers_of_two.h).
HF_INLINE float scale(float x, int n) { return __builtin_ldexpf(x, n); }

inline constexpr float log2_e = 1.44269504f, ln2_high = 0.693359375f, ln2_low = -2.12194440e-4f;

// n and r of x = n ln 2 + r, |r| <= ln 2 / 2.
HF_INLINE int reduce_exp(float x, float& r) {
  float sum = x * log2_e + round_magic;
  float n = sum - round_magic;
  r = fused(n, -ln2_low, fused(n, -ln2_high, x));
  return integer_of_sum(sum);
}

// e^r for the r of reduce_exp.
HF_INLINE float exp_polynomial(float r) {
  float p = 0.00138189399f;
  p = fused(p, r, 0.00836870354f);
  p = fused(p, r, 0.0416682884f);
  p = fused(p, r, 0.166665211f);
  p = fused(p, r, 0.49999994f);
  return fused(p, r * r, r) + 1.0f;
}

// Beyond these e^x is infinity or 0.
HF_INLINE float clamped_for_exp(float x) {
  x = x > 90.0f ? 90.0f : x;
  return x < -110.0f ? -110.0f : x;
}

// e^x 2^shift, shift 0 or -1.
HF_INLINE float exp_shifted(float x, int shift) {
  float r;
  int n = reduce_exp(clamped_for_exp(x), r);
  return scale(exp_polynomial(r), n + shift);
}

HF_INLINE float exp(float x) { return exp_shifted(x, 0); }

// e^x for |x| <= 87: neither x nor the result needs care.
HF_INLINE float exp_inside(float x) {
  float r;
  int n = reduce_exp(x, r);
  return exp_polynomial(r) * power_of_two(n);
}

// 2^r for |r| <= 0.5.
HF_INLINE float exp2_polynomial(float r) {
  float p = 0.000153267829f;
  p = fused(p, r, 0.0013391024f);
  p = fused(p, r, 0.00961850584f);
  p = fused(p, r, 0.0555035956f);
  p = fused(p, r, 0.240226477f);
  p = fused(p, r, 0.693147182f);
  return fused(p, r, 1.0f);
}

HF_INLINE float exp2(float x) {
  x = x > 130.0f ? 130.0f : x;
  x = x < -160.0f ? -160.0f : x;
  float sum = x + round_magic;
  return scale(exp2_polynomial(x - (sum - round_magic)), integer_of_sum(sum));
}

HF_INLINE float exp10(float x) {
  x = x > 39.0f ? 39.0f : x;
  x = x < -47.0f ? -47.0f : x;
  float sum = x * 3.32192809f + round_magic;
  float n = sum - round_magic;
  float r = fused(n, -0.000248745666f, fused(n, -0.30078125f, x));
  float p = 0.206162483f;
  p = fused(p, r, 0.541827381f);
  p = fused(p, r, 1.17129529f);
  p = fused(p, r, 2.03465605f);
  p = fused(p, r, 2.65094876f);
  p = fused(p, r, 2.30258512f);
  return scale(fused(p, r, 1.0f), integer_of_sum(sum));
}

// e and f of x = 2^e (1 + f), sqrt(1/2) <= 1 + f < sqrt(2), for positive finite x.
HF_INLINE float reduce_log(float x, float& f) {
  bool is_denormal = x < 0x1p-126f;
  unsigned u = bits_of(is_denormal ? x * 0x1p23f : x) + (0x3F800000u - 0x3F3504F3u);
  f = float_of((u & 0x007FFFFFu) + 0x3F3504F3u) - 1.0f;
  return static_cast<float>(static_cast<int>(u >> 23) - (is_denormal ? 150 : 127));
}

// log(1 + f) - f for the f of reduce_log.
HF_INLINE float log_rest(float f) {
  float p = 0.0674962401f;
  p = p * f - 0.116702214f;
  p = p * f + 0.118834637f;
  p = p * f - 0.124062046f;
  p = p * f + 0.142203629f;
  p = p * f - 0.166679904f;
  p = p * f + 0.200020716f;
  p = p * f - 0.250000089f;
  p = p * f + 0.333333135f;
  float square = f * f;
  return square * f * p - 0.5f * square;
}

// What any logarithm is outside the positive finite numbers.
HF_INLINE float log_limits(float x, float result) {
  result = x < infinity() ? result : x;
  result = x < 0.0f ? not_a_number() : result;
  return x == 0.0f ? -infinity() : result;
}

HF_INLINE float log(float x) {
  float f;
  float e = reduce_log(x, f);
  float result = (f + (log_rest(f) + e * ln2_low)) + e * ln2_high;
  return log_limits(x, result);
}

HF_INLINE float log2(float x) {
  float f;
  float e = reduce_log(x, f);
  float result = (f * 1.44269502f + (log_rest(f) * 1.44269502f + f * 1.92596303e-8f)) + e;
  return log_limits(x, result);
}

HF_INLINE float log10(float x) {
  float f;
  float e = reduce_log(x, f);
  float low = log_rest(f) * 0.434294492f + (f * -1.01030504e-8f + e * 0.000248745666f);
  float result = (f * 0.434294492f + low) + e * 0.30078125f;
  return log_limits(x, result);
}

// log(1 + x) + n log 2, for n that are 0 or 1.
HF_INLINE float log1p_and(float x, int n) {
  unsigned u = bits_of(1.0f + x) + (0x3F800000u - 0x3F3504F3u);
  int e = static_cast<int>(u >> 23) - 127;
  // 1 + x rounds; f is taken from x itself: (1 + x) 2^-e - 1 = x 2^-e + (2^-e - 1).
  float power = power_of_two(-(e > 24 ? 24 : e));
  float f_large = float_of((u & 0x007FFFFFu) + 0x3F3504F3u) - 1.0f;
  float f = e > 24 ? f_large : x * power + (power - 1.0f);
  float exponent = static_cast<float>(e + n);
  float result = (f + (log_rest(f) + exponent * ln2_low)) + exponent * ln2_high;
  result = x < infinity() ? result : x;
  result = x < -1.0f ? not_a_number() : result;
  result = x == -1.0f ? -infinity() : result;
  return x == 0.0f ? x : result;
}

HF_INLINE float log1p(float x) { return log1p_and(x, 0); }

// log2 of a positive finite x to 38 bits.
HF_INLINE double log2_double(float x) {
  float f;
  float e = reduce_log(x, f);
  double s = static_cast<double>(f) / (static_cast<double>(f) + 2.0);
  double z = s * s;
  double p = 0.3407489033972973;
  p = p * z + 0.41167174873742152;
  p = p * z + 0.5770836003189207;
  p = p * z + 0.96179667326596407;
  p = p * z + 2.8853900817901428;
  return s * p + static_cast<double>(e);
}

HF_INLINE float pow(float x, float y) {
  float a = absolute(x);
  double t = log2_double(a) * static_cast<double>(y);
  t = t > 200.0 ? 200.0 : t;
  t = t < -200.0 ? -200.0 : t;
  constexpr double magic = 0x1.8p52;
  double n = (t + magic) - magic;
  // NaN has no integer; its result is NaN whatever the power of two.
  float n_float = static_cast<float>(n);
  int n_int = integer_of_sum(n_float + round_magic);
  float result = scale(exp2_polynomial(static_cast<float>(t - n)), n_int);

  float ay = absolute(y);
  bool is_small = ay < 0x1p24f;
  int truncated = static_cast<int>(is_small ? y : 0.0f);
  bool is_integer = !is_small | (static_cast<float>(truncated) == y);
  bool is_odd = is_small & is_integer & ((truncated & 1) != 0);

  bool is_limit = (a == 0.0f) | (a == infinity());
  float limit = (a == 0.0f) == (y < 0.0f) ? infinity() : 0.0f;
  result = is_limit ? limit : result;
  result = a == 1.0f ? 1.0f : result;
  result = ((x < 0.0f) & !is_integer & !is_limit) ? not_a_number() : result;
  bool negate = is_odd & ((bits_of(x) >> 31) != 0);
  result = negate ? -result : result;
  result = ((x != x) | (y != y)) ? x + y : result;
  return ((y == 0.0f) | (x == 1.0f)) ? 1.0f : result;
}

HF_INLINE float powr(float x, float y) { return x < 0.0f ? not_a_number() : pow(x, y); }

HF_INLINE float with_sign_of(float magnitude, float sign) {
  return float_of(bits_of(magnitude) | (bits_of(sign) & 0x80000000u));
}

HF_INLINE float tanh(float x) {
  float a = absolute(x);
  float z = x * x;
  float p = 0.00201066863f;
  p = p * z - 0.00802839827f;
  p = p * z + 0.0216386896f;
  p = p * z - 0.0539351441f;
  p = p * z + 0.13333112f;
  p = p * z - 0.333333284f;
  float small = a + a * (z * p);
  float clamped = a > 20.0f ? 20.0f : a;
  float large = 1.0f - 2.0f / (exp_inside(clamped + clamped) + 1.0f);
  return with_sign_of(a < 0.625f ? small : large, x);
}

HF_INLINE float sinh(float x) {
  float a = absolute(x);
  float z = x * x;
  float p = 2.78221319e-06f;
  p = p * z + 0.000198428956f;
  p = p * z + 0.00833331048f;
  p = p * z + 0.166666672f;
  float small = a + a * (z * p);
  float e = exp_shifted(a, -1);
  return with_sign_of(a < 1.0f ? small : e - 0.25f / e, x);
}

HF_INLINE float cosh(float x) {
  float e = exp_shifted(absolute(x), -1);
  return e + 0.25f / e;
}

HF_INLINE float asinh(float x) {
  float a = absolute(x);
  float z = x * x;
  float p = -0.00919551682f;
  p = p * z + 0.0171210542f;
  p = p * z - 0.0226703323f;
  p = p * z + 0.0304607693f;
  p = p * z - 0.0446509533f;
  p = p * z + 0.0750003532f;
  p = p * z - 0.166666672f;
  float small = a + a * (z * p);
  bool is_huge = a > 0x1p20f;
  float root = __builtin_sqrtf(z + 1.0f);
  float argument = is_huge ? a : a + z / (1.0f + root);
  float large = log1p_and(argument, is_huge ? 1 : 0);
  return with_sign_of(a < 0.5f ? small : large, x);
}

HF_INLINE float acosh(float x) {
  bool is_huge = x > 0x1p20f;
  float t = x - 1.0f;
  float root = __builtin_sqrtf(t * t + (t + t));
  float sum = t + root;
  float lost = t - (sum - root);  // what the sum has rounded away
  float result = log1p_and(is_huge ? x : sum, is_huge ? 1 : 0);
  result = is_huge ? result : result + lost / (1.0f + sum);
  return x < 1.0f ? not_a_number() : result;
}

HF_INLINE float atanh(float x) {
  float a = absolute(x);
  float z = x * x;
  float p = 0.185143307f;
  p = p * z + 0.0169576108f;
  p = p * z + 0.105245143f;
  p = p * z + 0.109293982f;
  p = p * z + 0.142978147f;
  p = p * z + 0.199996218f;
  p = p * z + 0.333333373f;
  float small = a + a * (z * p);
  float large = 0.5f * log1p((a + a) / (1.0f - a));
  return with_sign_of(a < 0.5f ? small : large, x);
}

namespace fast {

HF_INLINE float exp(float x) {
  if (HF_HAS_APPROXIMATIONS) return __builtin_exp2f(x * log2_e);
  float r;
  int n = reduce_exp(clamped_for_exp(x), r);
  float p = 0.00831279531f;
  p = fused(p, r, 0.0418910533f);
  p = fused(p, r, 0.166671142f);
  p = fused(p, r, 0.499992251f);
  return scale(fused(p, r * r, r) + 1.0f, n);
}

HF_INLINE float exp2(float x) { return HF_HAS_APPROXIMATIONS ? __builtin_exp2f(x) : __hf::exp2(x); }

HF_INLINE float exp10(float x) { return __hf::fast::exp2(x * 3.32192809f); }

// e and log(1 + f); denormals count as 0.
HF_INLINE float reduced_log(float x, float& e) {
  unsigned u = bits_of(x) + (0x3F800000u - 0x3F3504F3u);
  float f = float_of((u & 0x007FFFFFu) + 0x3F3504F3u) - 1.0f;
  e = static_cast<float>(static_cast<int>(u >> 23) - 127);
  float p = 0.0870038047f;
  p = p * f - 0.142668858f;
  p = p * f + 0.149144918f;
  p = p * f - 0.165776551f;
  p = p * f + 0.19963102f;
  p = p * f - 0.250013351f;
  p = p * f + 0.333339095f;
  float square = f * f;
  return (square * f * p - 0.5f * square) + f;
}

HF_INLINE float limits(float x, float result) {
  result = x < infinity() ? result : x;
  result = x < 0x1p-126f ? -infinity() : result;
  return x < 0.0f ? not_a_number() : result;
}

HF_INLINE float log(float x) {
  if (HF_HAS_APPROXIMATIONS) return __builtin_log2f(x) * 0.693147182f;
  float e;
  float l = reduced_log(x, e);
  return limits(x, l + e * 0.693147182f);
}

HF_INLINE float log2(float x) {
  if (HF_HAS_APPROXIMATIONS) return __builtin_log2f(x);
  float e;
  float l = reduced_log(x, e);
  return limits(x, l * 1.44269502f + e);
}

HF_INLINE float log10(float x) {
  if (HF_HAS_APPROXIMATIONS) return __builtin_log2f(x) * 0.301029996f;
  float e;
  float l = reduced_log(x, e);
  return limits(x, l * 0.434294492f + e * 0.301029996f);
}

HF_INLINE float powr(float x, float y) { return exp2(y * log2(x)); }

HF_INLINE float pow(float x, float y) {
  float ay = absolute(y);
  bool is_small = ay < 0x1p24f;
  int truncated = static_cast<int>(is_small ? y : 0.0f);
  bool is_integer = !is_small | (static_cast<float>(truncated) == y);
  float result = exp2(y * log2(absolute(x)));
  bool is_negative = x < 0.0f;
  result = (is_negative & ((truncated & 1) != 0)) ? -result : result;
  result = (is_negative & !is_integer) ? not_a_number() : result;
  return y == 0.0f ? 1.0f : result;
}

}  // namespace fast
}  // namespace __hf
