// Mathematical functions of one vector register of floats or doubles.
//
// glibc's vector library does most of them (at most 4 ulp). Its weak spot is special operands,
// which it hands to the scalar function one by one: where such operands are common (exp of a masked
// -infinity, log of zero) they are answered here. Without the library, scalar libm is called for
// each element.
#pragma once

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "kernels/cpu/simd/loops.h"

namespace holdfast::kernels::cpu::HOLDFAST_SIMD_TARGET {

inline constexpr int float_count = register_size / 4;
inline constexpr int double_count = register_size / 8;

// a * b + c, fused where the instruction set has it.
HOLDFAST_INLINE FloatVector multiply_add(FloatVector a, FloatVector b, FloatVector c) {
#if defined(__AVX512F__)
  return (FloatVector)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif defined(__AVX2__) && defined(__FMA__)
  return (FloatVector)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#else
  return a * b + c;
#endif
}
HOLDFAST_INLINE DoubleVector multiply_add(DoubleVector a, DoubleVector b, DoubleVector c) {
#if defined(__AVX512F__)
  return (DoubleVector)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c);
#elif defined(__AVX2__) && defined(__FMA__)
  return (DoubleVector)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c);
#else
  return a * b + c;
#endif
}

// a + b and a * b. Of two NaNs the result is the first operand's; a compiler may exchange the
// operands, and then the bits would depend on the code around them.
#if defined(__AVX2__)
#define HOLDFAST_ORDERED(name, instruction)                                              \
  HOLDFAST_INLINE FloatVector name(FloatVector a, FloatVector b) {                       \
    FloatVector result;                                                                  \
    __asm__("v" instruction " {%2, %1, %0|%0, %1, %2}" : "=v"(result) : "v"(a), "v"(b)); \
    return result;                                                                       \
  }
#elif defined(__x86_64__)
#define HOLDFAST_ORDERED(name, instruction)                        \
  HOLDFAST_INLINE FloatVector name(FloatVector a, FloatVector b) { \
    __asm__(instruction " {%1, %0|%0, %1}" : "+x"(a) : "x"(b));    \
    return a;                                                      \
  }
#endif
#if defined(HOLDFAST_ORDERED)
HOLDFAST_ORDERED(sum_of, "addps")
HOLDFAST_ORDERED(product_of, "mulps")
#undef HOLDFAST_ORDERED
#else
HOLDFAST_INLINE FloatVector sum_of(FloatVector a, FloatVector b) { return a + b; }
HOLDFAST_INLINE FloatVector product_of(FloatVector a, FloatVector b) { return a * b; }
#endif

// The masked AVX-512 forms are the plain instruction; g++ 12 warns about its own header in the
// others.
HOLDFAST_INLINE FloatVector square_root(FloatVector a) {
#if defined(__AVX512F__)
  return (FloatVector)_mm512_maskz_sqrt_ps(0xffff, (__m512)a);
#elif defined(__AVX2__)
  return (FloatVector)_mm256_sqrt_ps((__m256)a);
#elif defined(__x86_64__)
  return (FloatVector)_mm_sqrt_ps((__m128)a);
#else
  for (int i = 0; i < float_count; ++i) a[i] = __builtin_sqrtf(a[i]);
  return a;
#endif
}
HOLDFAST_INLINE DoubleVector square_root(DoubleVector a) {
#if defined(__AVX512F__)
  return (DoubleVector)_mm512_maskz_sqrt_pd(0xff, (__m512d)a);
#elif defined(__AVX2__)
  return (DoubleVector)_mm256_sqrt_pd((__m256d)a);
#elif defined(__x86_64__)
  return (DoubleVector)_mm_sqrt_pd((__m128d)a);
#else
  for (int i = 0; i < double_count; ++i) a[i] = __builtin_sqrt(a[i]);
  return a;
#endif
}

HOLDFAST_INLINE FloatVector reciprocal_square_root(FloatVector a) { return 1.0f / square_root(a); }
HOLDFAST_INLINE DoubleVector reciprocal_square_root(DoubleVector a) { return 1.0 / square_root(a); }

HOLDFAST_INLINE FloatVector broadcast(float value) { return value - FloatVector{}; }
HOLDFAST_INLINE DoubleVector broadcast(double value) { return value - DoubleVector{}; }

HOLDFAST_INLINE Int32Vector bits(FloatVector a) { return (Int32Vector)a; }
HOLDFAST_INLINE Int64Vector bits(DoubleVector a) { return (Int64Vector)a; }

HOLDFAST_INLINE FloatVector absolute(FloatVector a) { return (FloatVector)(bits(a) & 0x7fffffff); }
HOLDFAST_INLINE DoubleVector absolute(DoubleVector a) {
  return (DoubleVector)(bits(a) & 0x7fffffffffffffff);
}
// The magnitude of `magnitude` with the sign of `sign`.
HOLDFAST_INLINE FloatVector copy_sign(FloatVector magnitude, FloatVector sign) {
  return (FloatVector)(bits(absolute(magnitude)) | (bits(sign) & (int32_t)0x80000000));
}
HOLDFAST_INLINE DoubleVector copy_sign(DoubleVector magnitude, DoubleVector sign) {
  return (DoubleVector)(bits(absolute(magnitude)) | (bits(sign) & (int64_t)0x8000000000000000));
}

// The scalar type of a vector's elements, as a value for constants.
HOLDFAST_INLINE float element(FloatVector) { return 0; }
HOLDFAST_INLINE double element(DoubleVector) { return 0; }
#define HOLDFAST_CONSTANT(V, value) broadcast(static_cast<decltype(element(V{}))>(value))

// library_exp(FloatVector), library_exp(DoubleVector), ...: glibc's, or scalar libm for each
// element.
#if defined(HOLDFAST_HAVE_LIBMVEC) && defined(__x86_64__)
#if defined(__AVX512F__)
#define HOLDFAST_LIBRARY_NAMES(arguments, name) \
  _ZGVeN16##arguments##_##name##f, _ZGVeN8##arguments##_##name
#elif defined(__AVX2__)
#define HOLDFAST_LIBRARY_NAMES(arguments, name) \
  _ZGVdN8##arguments##_##name##f, _ZGVdN4##arguments##_##name
#else
#define HOLDFAST_LIBRARY_NAMES(arguments, name) \
  _ZGVbN4##arguments##_##name##f, _ZGVbN2##arguments##_##name
#endif
#define HOLDFAST_LIBRARY_UNARY_NAMED(name, for_floats, for_doubles)                   \
  extern "C" FloatVector for_floats(FloatVector);                                     \
  extern "C" DoubleVector for_doubles(DoubleVector);                                  \
  HOLDFAST_INLINE FloatVector library_##name(FloatVector a) { return for_floats(a); } \
  HOLDFAST_INLINE DoubleVector library_##name(DoubleVector a) { return for_doubles(a); }
#define HOLDFAST_LIBRARY_BINARY_NAMED(name, for_floats, for_doubles)            \
  extern "C" FloatVector for_floats(FloatVector, FloatVector);                  \
  extern "C" DoubleVector for_doubles(DoubleVector, DoubleVector);              \
  HOLDFAST_INLINE FloatVector library_##name(FloatVector a, FloatVector b) {    \
    return for_floats(a, b);                                                    \
  }                                                                             \
  HOLDFAST_INLINE DoubleVector library_##name(DoubleVector a, DoubleVector b) { \
    return for_doubles(a, b);                                                   \
  }
#define HOLDFAST_EXPAND(macro, ...) macro(__VA_ARGS__)
#define HOLDFAST_LIBRARY_UNARY(name) \
  HOLDFAST_EXPAND(HOLDFAST_LIBRARY_UNARY_NAMED, name, HOLDFAST_LIBRARY_NAMES(v, name))
#define HOLDFAST_LIBRARY_BINARY(name) \
  HOLDFAST_EXPAND(HOLDFAST_LIBRARY_BINARY_NAMED, name, HOLDFAST_LIBRARY_NAMES(vv, name))
#else
#define HOLDFAST_LIBRARY_UNARY(name)                                        \
  HOLDFAST_INLINE FloatVector library_##name(FloatVector a) {               \
    for (int i = 0; i < float_count; ++i) a[i] = __builtin_##name##f(a[i]); \
    return a;                                                               \
  }                                                                         \
  HOLDFAST_INLINE DoubleVector library_##name(DoubleVector a) {             \
    for (int i = 0; i < double_count; ++i) a[i] = __builtin_##name(a[i]);   \
    return a;                                                               \
  }
#define HOLDFAST_LIBRARY_BINARY(name)                                             \
  HOLDFAST_INLINE FloatVector library_##name(FloatVector a, FloatVector b) {      \
    for (int i = 0; i < float_count; ++i) a[i] = __builtin_##name##f(a[i], b[i]); \
    return a;                                                                     \
  }                                                                               \
  HOLDFAST_INLINE DoubleVector library_##name(DoubleVector a, DoubleVector b) {   \
    for (int i = 0; i < double_count; ++i) a[i] = __builtin_##name(a[i], b[i]);   \
    return a;                                                                     \
  }
#endif
HOLDFAST_LIBRARY_UNARY(exp)
HOLDFAST_LIBRARY_UNARY(expm1)
HOLDFAST_LIBRARY_UNARY(log)
HOLDFAST_LIBRARY_UNARY(log2)
HOLDFAST_LIBRARY_UNARY(log10)
HOLDFAST_LIBRARY_UNARY(log1p)
HOLDFAST_LIBRARY_UNARY(sin)
HOLDFAST_LIBRARY_UNARY(cos)
HOLDFAST_LIBRARY_UNARY(tan)
HOLDFAST_LIBRARY_UNARY(asin)
HOLDFAST_LIBRARY_UNARY(acos)
HOLDFAST_LIBRARY_UNARY(atan)
HOLDFAST_LIBRARY_UNARY(sinh)
HOLDFAST_LIBRARY_UNARY(cosh)
HOLDFAST_LIBRARY_UNARY(tanh)
HOLDFAST_LIBRARY_UNARY(asinh)
HOLDFAST_LIBRARY_UNARY(acosh)
HOLDFAST_LIBRARY_UNARY(atanh)
HOLDFAST_LIBRARY_UNARY(erf)
HOLDFAST_LIBRARY_UNARY(erfc)
HOLDFAST_LIBRARY_BINARY(pow)
HOLDFAST_LIBRARY_BINARY(atan2)

// e^x in single precision, without a branch for any operand; at most 1 ulp with fma.
// x = n log(2) + r with |r| <= log(2)/2; e^r from a minimax polynomial for (e^r - 1 - r) / r^2.
HOLDFAST_INLINE FloatVector exponential(FloatVector x) {
#if !defined(__AVX512F__)
  const FloatVector lowest = broadcast(-104.0f), highest = broadcast(89.0f);  // give 0 and infinity
  x = x < lowest ? lowest : x;
  x = x > highest ? highest : x;
#endif
  // Adding 1.5 * 2^23 leaves the rounded integer in the low bits of the sum.
  const FloatVector magic = broadcast(12582912.0f);
  FloatVector shifted = multiply_add(x, broadcast(1.44269504089f), magic);
  FloatVector n_float = shifted - magic;
  // log(2) in two parts; the products of the first one are exact.
  FloatVector r = multiply_add(n_float, broadcast(-0.693359375f), x);
  r = multiply_add(n_float, broadcast(2.12194440e-4f), r);
#if defined(__AVX512F__)
  // Where n alone decides (0, infinity, NaN), any r near 0 does; 0.35 takes the place of a NaN.
  constexpr int smaller_magnitude = 0b10, with_the_sign_of_r = 0b00 << 2;
  r = (FloatVector)_mm512_maskz_range_ps(0xffff, (__m512)r, (__m512)broadcast(0.35f),
                                         smaller_magnitude | with_the_sign_of_r);
#endif
  FloatVector p = broadcast(0.001381388092f);
  p = multiply_add(p, r, broadcast(0.008369063458f));
  p = multiply_add(p, r, broadcast(0.04166842181f));
  p = multiply_add(p, r, broadcast(0.1666651776f));
  p = multiply_add(p, r, broadcast(0.4999999325f));
  p = multiply_add(p, r, broadcast(1.0f));
  p = multiply_add(p, r, broadcast(1.0f));
#if defined(__AVX512F__)
  return (FloatVector)_mm512_maskz_scalef_ps(0xffff, (__m512)p, (__m512)n_float);
#else
  // 2^n in two factors, since n reaches from -150 to 128; only the second product rounds.
  Int32Vector n = bits(shifted) - bits(magic);
  Int32Vector half = n >> 1;
  FloatVector first = (FloatVector)((half + 127) << 23);
  FloatVector second = (FloatVector)((n - half + 127) << 23);
  return p * first * second;
#endif
}

#if defined(__AVX512F__)
// e^x to 2^-18, for results that are rounded to a half type: half the time. y = x / log(2) is split
// by the instructions themselves, infinities included: 2^y = 2^(y - floor(y)) 2^floor(y).
HOLDFAST_INLINE FloatVector half_exponential(FloatVector x) {
  constexpr int down = 1;
  FloatVector y = x * 1.44269504089f;
  FloatVector f = (FloatVector)_mm512_maskz_reduce_ps(0xffff, (__m512)y, down);
  FloatVector p = broadcast(0.0135341678f);
  p = multiply_add(p, f, broadcast(0.0520114601f));
  p = multiply_add(p, f, broadcast(0.241442755f));
  p = multiply_add(p, f, broadcast(0.693003833f));
  p = multiply_add(p, f, broadcast(1.00000262f));
  return (FloatVector)_mm512_maskz_scalef_ps(0xffff, (__m512)p, (__m512)y);
}
#endif

HOLDFAST_INLINE DoubleVector exponential(DoubleVector x) {
  const DoubleVector zero = {}, infinity = broadcast(__builtin_inf());
  Int64Vector usual = (x > -745.2) & (x < 709.8);
  DoubleVector special = x < 0.0 ? zero : (x > 0.0 ? infinity : x);
  return usual ? library_exp(usual ? x : zero) : special;
}

// A logarithm with its pole at `pole`: the library sees `harmless` in place of operands that have
// no finite result.
template <typename V, typename Function>
HOLDFAST_INLINE V guarded_logarithm(V x, V pole, V harmless, Function function) {
  const V infinity = HOLDFAST_CONSTANT(V, __builtin_inf());
  auto usual = (x > pole) & (x < infinity);
  V special = x == pole ? -infinity : (x < pole ? HOLDFAST_CONSTANT(V, __builtin_nan("")) : x);
  return usual ? function(usual ? x : harmless) : special;
}

template <typename V>
HOLDFAST_INLINE V natural_logarithm(V x) {
  return guarded_logarithm(x, V{}, HOLDFAST_CONSTANT(V, 1), [](V y) { return library_log(y); });
}
template <typename V>
HOLDFAST_INLINE V logarithm_base_2(V x) {
  return guarded_logarithm(x, V{}, HOLDFAST_CONSTANT(V, 1), [](V y) { return library_log2(y); });
}
template <typename V>
HOLDFAST_INLINE V logarithm_base_10(V x) {
  return guarded_logarithm(x, V{}, HOLDFAST_CONSTANT(V, 1), [](V y) { return library_log10(y); });
}
// Floats as doubles, rounded once: powers of ten have whole logarithms.
HOLDFAST_INLINE FloatVector logarithm_base_10(FloatVector x) {
  typedef float HalfVector __attribute__((vector_size(register_size / 2)));
  struct Halves {
    HalfVector low, high;
  };
  return guarded_logarithm(x, FloatVector{}, broadcast(1.0f), [](FloatVector y) {
    auto halves = __builtin_bit_cast(Halves, y);
    DoubleVector low = library_log10(__builtin_convertvector(halves.low, DoubleVector));
    DoubleVector high = library_log10(__builtin_convertvector(halves.high, DoubleVector));
    return __builtin_bit_cast(FloatVector, (Halves{__builtin_convertvector(low, HalfVector),
                                                   __builtin_convertvector(high, HalfVector)}));
  });
}
template <typename V>
HOLDFAST_INLINE V logarithm_of_1_plus(V x) {
  return guarded_logarithm(x, HOLDFAST_CONSTANT(V, -1), V{}, [](V y) { return library_log1p(y); });
}

// 1 / (1 + e^-x), from e^-|x|, which cannot overflow.
template <typename V>
HOLDFAST_INLINE V sigmoid(V x) {
  const V one = HOLDFAST_CONSTANT(V, 1);
  V e = exponential(-absolute(x));
  return (x < V{} ? e : one) / (one + e);
}

template <typename V>
HOLDFAST_INLINE V log_add_exp(V a, V b) {
  const V infinity = HOLDFAST_CONSTANT(V, __builtin_inf());
  V larger = a > b ? a : b;
  V sum = larger + library_log1p(exponential(-absolute(a - b)));
  // Of infinities the difference is NaN, or the sum is right already. NaN operands: a + b.
  V result = absolute(larger) == infinity ? larger : sum;
  return ((a != a) | (b != b)) ? a + b : result;
}

#if defined(__AVX512F__)
inline constexpr bool error_function_calls_library = false;
// erf(|x|) as one of 32 polynomials of degree 4 in the distance from the nearest multiple of 4/31,
// fitted by scripts/fit_erf.py. Their coefficients lie in pairs of registers, and picking those of
// 16 lanes is one instruction.
alignas(64) static constexpr float erf_coefficients[5][32] = {
    {0.0f,         0.144793302f, 0.284857482f, 0.415921807f, 0.534558892f, 0.638439596f,
     0.726428628f, 0.79852277f,  0.855664134f, 0.89947474f,  0.931967556f, 0.955279171f,
     0.971457601f, 0.982318878f, 0.989372313f, 0.993803322f, 0.996495962f, 0.998078763f,
     0.998978794f, 0.999473929f, 0.999737322f, 0.999872923f, 0.999940455f, 0.999972939f,
     0.999988079f, 0.999994934f, 0.999997914f, 0.999999166f, 0.999999702f, 0.999999881f,
     0.99999994f,  1.0f},
    {0.145597309f,    0.143193215f,    0.1362167f,      0.125336304f,    0.111548051f,
     0.0960253105f,   0.0799554437f,   0.0643945187f,   0.0501635633f,   0.0377977863f,
     0.0275475439f,   0.0194194932f,   0.0132413246f,   0.00873299874f,  0.00557100866f,
     0.00343749952f,  0.00205158652f,  0.00118433719f,  0.000661301077f, 0.000357158802f,
     0.00018657856f,  9.42758124e-05f, 4.60762349e-05f, 2.17817014e-05f, 9.95966366e-06f,
     4.40489475e-06f, 1.88436206e-06f, 7.7970634e-07f,  3.12058233e-07f, 1.2080308e-07f,
     4.52332785e-08f, 9.92111154e-07f},
    {1.25730338e-07f,  -0.00238394295f,  -0.00453578122f,  -0.00626026932f,  -0.00742878765f,
     -0.00799377635f,  -0.0079872217f,   -0.00750487577f,  -0.0066815149f,   -0.00566376885f,
     -0.00458648149f,  -0.00355653837f,  -0.00264551211f,  -0.00189018389f,  -0.00129855226f,
     -0.000858483254f, -0.000546522613f, -0.000335214718f, -0.000198185109f, -0.000112983442f,
     -6.2128689e-05f,  -3.29625436e-05f, -1.68772458e-05f, -8.34108232e-06f, -3.97978465e-06f,
     -1.83349721e-06f, -8.15724604e-07f, -3.50511243e-07f, -1.45479618e-07f, -5.83291886e-08f,
     -2.25938841e-08f, 9.7235361e-06f},
    {-0.000809290272f, -0.000767087971f, -0.000654412026f, -0.000486662815f, -0.000289214484f,
     -8.96422061e-05f, 8.75574478e-05f,  0.000224963296f,  0.000314138568f,  0.000355373399f,
     0.00035572701f,   0.000326184119f,  0.000278774591f,  0.000224298186f,  0.000170971965f,
     0.000123994716f,  8.58177445e-05f,  5.68091527e-05f,  3.60301892e-05f,  2.19229623e-05f,
     1.28108195e-05f,  7.19570198e-06f,  3.88772787e-06f,  2.02163096e-06f,  1.0122975e-06f,
     4.88314527e-07f,  2.27004946e-07f,  1.01730983e-07f,  4.39616237e-08f,  1.83232718e-08f,
     7.36773886e-09f,  3.11075346e-05f},
    {4.0290638e-06f,   1.90873179e-05f,  3.58293037e-05f,  4.67499012e-05f,  5.07603327e-05f,
     4.80222625e-05f,  3.99023484e-05f,  2.8507593e-05f,   1.61432454e-05f,  4.80568906e-06f,
     -4.14810938e-06f, -1.01108944e-05f, -1.31410552e-05f, -1.37569505e-05f, -1.26940813e-05f,
     -1.06970729e-05f, -8.37993866e-06f, -6.16608759e-06f, -4.28967542e-06f, -2.83417762e-06f,
     -1.78405219e-06f, -1.07250639e-06f, -6.16875582e-07f, -3.39957694e-07f, -1.79714661e-07f,
     -9.12185527e-08f, -4.44901964e-08f, -2.08647322e-08f, -9.41391054e-09f, -4.08838341e-09f,
     -1.70973169e-09f, 3.10818614e-05f}};

HOLDFAST_INLINE FloatVector error_function(FloatVector x) {
  // Of two operands one of which is NaN, `min` gives the second.
  FloatVector magnitude =
      (FloatVector)_mm512_maskz_min_ps(0xffff, _mm512_set1_ps(4.0f), (__m512)absolute(x));
  // Adding 1.5 * 2^23 leaves the rounded integer in the low bits of the sum.
  const FloatVector scale = broadcast(7.75f), magic = broadcast(12582912.0f);
  FloatVector shifted = multiply_add(magnitude, scale, magic);
  FloatVector f = multiply_add(magnitude, scale, magic - shifted);
  auto coefficient = [&](int k) {
    return (FloatVector)_mm512_permutex2var_ps(_mm512_load_ps(erf_coefficients[k]),
                                               (__m512i)shifted,
                                               _mm512_load_ps(erf_coefficients[k] + 16));
  };
  FloatVector result = coefficient(4);
  for (int k = 3; k >= 0; --k) result = multiply_add(result, f, coefficient(k));
  // The result is positive: its sign bit is free for the sign of x.
  return (FloatVector)_mm512_ternarylogic_epi32((__m512i)result, (__m512i)x,
                                                _mm512_set1_epi32(INT32_MIN), 0xf8);
}
HOLDFAST_INLINE DoubleVector error_function(DoubleVector x) { return library_erf(x); }
#else
inline constexpr bool error_function_calls_library = true;
template <typename V>
HOLDFAST_INLINE V error_function(V x) {
  return library_erf(x);
}
#endif

// M. Giles, "Approximating the erfinv function" (2010), single precision.
template <typename V>
HOLDFAST_INLINE V inverse_error_function_estimate(V x, V w) {
  V c = w - HOLDFAST_CONSTANT(V, 2.5);
  V central = HOLDFAST_CONSTANT(V, 2.81022636e-08);
  central = central * c + HOLDFAST_CONSTANT(V, 3.43273939e-07);
  central = central * c + HOLDFAST_CONSTANT(V, -3.5233877e-06);
  central = central * c + HOLDFAST_CONSTANT(V, -4.39150654e-06);
  central = central * c + HOLDFAST_CONSTANT(V, 0.00021858087);
  central = central * c + HOLDFAST_CONSTANT(V, -0.00125372503);
  central = central * c + HOLDFAST_CONSTANT(V, -0.00417768164);
  central = central * c + HOLDFAST_CONSTANT(V, 0.246640727);
  central = central * c + HOLDFAST_CONSTANT(V, 1.50140941);
  V t = square_root(w) - HOLDFAST_CONSTANT(V, 3);
  V tail = HOLDFAST_CONSTANT(V, -0.000200214257);
  tail = tail * t + HOLDFAST_CONSTANT(V, 0.000100950558);
  tail = tail * t + HOLDFAST_CONSTANT(V, 0.00134934322);
  tail = tail * t + HOLDFAST_CONSTANT(V, -0.00367342844);
  tail = tail * t + HOLDFAST_CONSTANT(V, 0.00573950773);
  tail = tail * t + HOLDFAST_CONSTANT(V, -0.0076224613);
  tail = tail * t + HOLDFAST_CONSTANT(V, 0.00943887047);
  tail = tail * t + HOLDFAST_CONSTANT(V, 1.00167406);
  tail = tail * t + HOLDFAST_CONSTANT(V, 2.83297682);
  return (w < HOLDFAST_CONSTANT(V, 5) ? central : tail) * x;
}

// For |x| < 1; the caller handles the rest.
HOLDFAST_INLINE FloatVector inverse_error_function_inside(FloatVector x) {
  return inverse_error_function_estimate(x, -library_log((1.0f - x) * (1.0f + x)));
}
HOLDFAST_INLINE DoubleVector inverse_error_function_inside(DoubleVector x) {
  DoubleVector magnitude = absolute(x);
  DoubleVector w = -library_log((1.0 - magnitude) * (1.0 + magnitude));
  // Beyond the range of single precision: erfc(y) ~ e^(-y^2) / (y sqrt(pi)) (1 - 1 / (2 y^2)),
  // solved for y^2 with the logarithm taken at y^2 = w.
  DoubleVector far = w < 16.0 ? broadcast(16.0) : w;
  far = square_root(far + 0.12078223763524522 - 0.5 * library_log(far) - 0.5 / far);
  DoubleVector y = w < 16.0 ? inverse_error_function_estimate(magnitude, w) : far;
  // Halley's method on erf(y) = x, or on erfc(y) = 1 - x where that keeps the digits: 1 - x is
  // exact.
  for (int step = 0; step < 2; ++step) {
    DoubleVector error =
        magnitude < 0.5 ? library_erf(y) - magnitude : (1.0 - magnitude) - library_erfc(y);
    DoubleVector newton = error * 0.88622692545275801365 * exponential(y * y);  // sqrt(pi) / 2
    y -= newton / (1.0 + y * newton);
  }
  // Below 1e-8 erfinv is linear to double precision.
  y = magnitude < 1e-8 ? magnitude * 0.88622692545275801365 : y;
  return copy_sign(y, x);
}

template <typename V>
HOLDFAST_INLINE V inverse_error_function(V x) {
  const V one = HOLDFAST_CONSTANT(V, 1);
  V magnitude = absolute(x);
  auto inside = magnitude < one;
  V outside = magnitude == one ? copy_sign(HOLDFAST_CONSTANT(V, __builtin_inf()), x)
                               : HOLDFAST_CONSTANT(V, __builtin_nan(""));
  return inside ? inverse_error_function_inside(inside ? x : V{}) : outside;
}

}  // namespace holdfast::kernels::cpu::HOLDFAST_SIMD_TARGET
