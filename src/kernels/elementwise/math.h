// The math of the element-wise ops, one function for each row of elementwise.def, named like its
// Primitive: what kernels/cpu/simd/math.h is to the block engine. Kernels include it, those that
// are generated for a group (step_source.h) and the interpreter of the Metal back-end.
//
// A value is computed in the type of its dtype's lane: float for floating-point numbers of up to 32
// bits, int and uint for integers of up to 32 bits (bool: 0 or 1 in a uint), long and ulong,
// Complex (complex.h), and double as far as generated kernels of the CPU have it. Narrower dtypes
// are made fit again after each op, by the functions at the end. Ops of bool are those of uint that
// give the same (lowered_steps.h).
#include <metal_stdlib>
using namespace metal;
// As the host's math, some functions compute in double precision.
#undef double

template <typename T>
using unsigned_of = conditional_t<sizeof(T) == 8, ulong, uint>;

// Functions of real numbers, float and double, and of integers, where U is unsigned, so that it
// wraps.
#define REAL_1(name, ...)                            \
  inline float name(float a) { return __VA_ARGS__; } \
  inline double name(double a) { return __VA_ARGS__; }
#define REAL_2(name, ...)                                     \
  inline float name(float a, float b) { return __VA_ARGS__; } \
  inline double name(double a, double b) { return __VA_ARGS__; }
#define INTEGER_1(name, ...)                   \
  template <typename T>                        \
  inline T name(T a) {                         \
    using U [[maybe_unused]] = unsigned_of<T>; \
    return T(__VA_ARGS__);                     \
  }
#define INTEGER_2(name, ...)                   \
  template <typename T>                        \
  inline T name(T a, T b) {                    \
    using U [[maybe_unused]] = unsigned_of<T>; \
    return T(__VA_ARGS__);                     \
  }
#define FLOAT_1(name, function) \
  inline float name(float a) { return function(a); }

// --- Unary ops.

REAL_1(Abs, __builtin_elementwise_abs(a))
INTEGER_1(Abs, a < T(0) ? T(U(0) - U(a)) : a)
REAL_1(Negative, -a)
INTEGER_1(Negative, U(0) - U(a))
REAL_1(Sign, a > 0 ? 1 : a < 0 ? -1 : a == 0 ? 0 : a)
INTEGER_1(Sign, T(a > T(0)) - T(a < T(0)))
REAL_1(Floor, __builtin_elementwise_floor(a))
REAL_1(Ceil, __builtin_elementwise_ceil(a))
REAL_1(Trunc, __builtin_elementwise_trunc(a))
REAL_1(Round, __builtin_elementwise_rint(a))
REAL_1(Square, (a * a))
INTEGER_1(Square, U(a) * U(a))
REAL_1(Sqrt, __builtin_elementwise_sqrt(a))
REAL_1(Rsqrt, 1 / __builtin_elementwise_sqrt(a))
FLOAT_1(Exp, precise::exp)
// 2^n (e^r - 1) + 2^n - 1, at half the size: 2^n need not be a float.
inline float Expm1(float a) {
  float x = a > 89.0f ? 89.0f : a, r;
  x = x < -30.0f ? -30.0f : x;
  const int n = __hf::reduce_exp(x, r);
  float p = 0.00138189399f;
  p = fma(p, r, 0.00836870354f);
  p = fma(p, r, 0.0416682884f);
  p = fma(p, r, 0.166665211f);
  p = fma(p, r, 0.49999994f);
  const float rest = fma(p, r * r, r);
  const float half_power = __hf::power_of_two(n - 1);
  const float result = 2.0f * (rest * half_power + (half_power - 0.5f));
  return a == 0.0f ? a : result;
}
FLOAT_1(Log, precise::log)
FLOAT_1(Log2, precise::log2)
FLOAT_1(Log10, precise::log10)
FLOAT_1(Log1p, __hf::log1p)
FLOAT_1(Sin, precise::sin)
FLOAT_1(Cos, precise::cos)
FLOAT_1(Tan, precise::tan)
FLOAT_1(ArcSin, asin)
FLOAT_1(ArcCos, acos)
FLOAT_1(ArcTan, atan)
FLOAT_1(Sinh, sinh)
FLOAT_1(Cosh, cosh)
FLOAT_1(Tanh, tanh)
FLOAT_1(ArcSinh, asinh)
FLOAT_1(ArcCosh, acosh)
FLOAT_1(ArcTanh, atanh)
inline float Sigmoid(float a) {
  const float e = precise::exp(-fabs(a));
  return (a < 0.0f ? e : 1.0f) / (1.0f + e);
}
// a + a p(a^2) up to 1, beyond it 1 - e^(q(|a|) - a^2): polynomials through Chebyshev nodes.
inline float Erf(float a) {
  const float z = a * a;
  float p = 7.87587487e-05f;
  p = fma(p, z, -0.00080168643f);
  p = fma(p, z, 0.00518908724f);
  p = fma(p, z, -0.0268542115f);
  p = fma(p, z, 0.112835944f);
  p = fma(p, z, -0.37612626f);
  p = fma(p, z, 0.128379166f);
  const float x = fabs(a) > 4.0f ? 4.0f : fabs(a);
  float q = 1.64267897e-06f;
  q = fma(q, x, -4.61647869e-05f);
  q = fma(q, x, 0.000597677252f);
  q = fma(q, x, -0.00476350961f);
  q = fma(q, x, 0.0264316425f);
  q = fma(q, x, -0.110097244f);
  q = fma(q, x, 0.368190438f);
  q = fma(q, x, -1.13024187f);
  q = fma(q, x, 0.000321866246f);
  const float far = 1.0f - precise::exp(fma(-x, x, q));
  return fabs(a) <= 1.0f ? fma(a, p, a) : copysign(far, a);
}
inline float ErfInv(float a) {
  // M. Giles, "Approximating the erfinv function" (2010), single precision.
  const float w = -precise::log((1.0f - a) * (1.0f + a));
  const float c = w - 2.5f;
  float central = 2.81022636e-08f;
  central = central * c + 3.43273939e-07f;
  central = central * c - 3.5233877e-06f;
  central = central * c - 4.39150654e-06f;
  central = central * c + 0.00021858087f;
  central = central * c - 0.00125372503f;
  central = central * c - 0.00417768164f;
  central = central * c + 0.246640727f;
  central = central * c + 1.50140941f;
  const float t = sqrt(w) - 3.0f;
  float tail = -0.000200214257f;
  tail = tail * t + 0.000100950558f;
  tail = tail * t + 0.00134934322f;
  tail = tail * t - 0.00367342844f;
  tail = tail * t + 0.00573950773f;
  tail = tail * t - 0.0076224613f;
  tail = tail * t + 0.00943887047f;
  tail = tail * t + 1.00167406f;
  tail = tail * t + 2.83297682f;
  const float inside = (w < 5.0f ? central : tail) * a;
  const float outside = fabs(a) == 1.0f ? copysign(INFINITY, a) : NAN;
  return fabs(a) < 1.0f ? inside : outside;
}
INTEGER_1(BitwiseInvert, ~a)
inline uint LogicalNot(uint a) { return a ^ 1; }
#define PREDICATE(name, ...)                        \
  inline uint name(float a) { return __VA_ARGS__; } \
  inline uint name(double a) { return __VA_ARGS__; }
PREDICATE(IsNaN, a != a)
PREDICATE(IsInf, __builtin_elementwise_abs(a) == INFINITY)
PREDICATE(IsFinite, __builtin_elementwise_abs(a) < INFINITY)
PREDICATE(IsPosInf, a == INFINITY)
PREDICATE(IsNegInf, a == -INFINITY)

// --- Binary ops.

REAL_2(Add, a + b)
REAL_2(Subtract, a - b)
REAL_2(Multiply, (a * b))
REAL_2(Divide, a / b)
INTEGER_2(Add, U(a) + U(b))
INTEGER_2(Subtract, U(a) - U(b))
INTEGER_2(Multiply, U(a) * U(b))

// Rounded toward minus infinity; by zero both are 0.
template <typename T>
inline T divided_down(T a, T b, bool wants_remainder) {
  const T divisor = b == T(0) ? T(1) : b;
  T quotient;
  if constexpr (is_signed_v<T>) {
    const T safe = divisor == T(-1) ? T(1) : divisor;
    quotient = a / safe;
    quotient = divisor == T(-1) ? Negative(a) : quotient;
  } else {
    quotient = a / divisor;
  }
  T remainder = Subtract(a, Multiply(quotient, divisor));
  if constexpr (is_signed_v<T>) {
    const bool too_high = remainder != T(0) && (remainder ^ divisor) < T(0);
    quotient -= too_high ? T(1) : T(0);
    remainder += too_high ? divisor : T(0);
  }
  return b == T(0) ? T(0) : wants_remainder ? remainder : quotient;
}
// The floor of the exact quotient, so that it fits the remainder: 1 // 0.1 is 9.
inline float FloorDivide(float a, float b) {
  return float(__builtin_elementwise_floor(double(a) / double(b)));
}
INTEGER_2(FloorDivide, divided_down(a, b, false))
// The exact remainder of the truncated quotient, moved to the sign of the divisor.
inline float Remainder(float a, float b) {
  const float remainder = fmod(a, b);
  const float moved = (remainder < 0.0f) != (b < 0.0f) ? remainder + b : remainder;
  return remainder == 0.0f ? copysign(0.0f, b) : moved;
}
INTEGER_2(Remainder, divided_down(a, b, true))
inline float Power(float a, float b) { return precise::pow(a, b); }
// By squaring, wrapping. A negative exponent gives 0, except for the bases 1 and -1.
template <typename T>
inline T Power(T base, T exponent) {
  using U = unsigned_of<T>;
  U factor = U(base), result = 1;
  for (U left = exponent < T(0) ? U(0) : U(exponent); left != 0; left >>= 1) {
    result *= (left & 1) != 0 ? factor : U(1);
    factor *= factor;
  }
  const T inverse = base == T(1) || (base == T(-1) && (exponent & T(1)) == T(0)) ? T(1)
                    : base == T(-1)                                              ? T(-1)
                                                                                 : T(0);
  return exponent < T(0) ? inverse : T(result);
}
REAL_2(Maximum, a > b || a != a ? a : b)
REAL_2(Minimum, a < b || a != a ? a : b)
INTEGER_2(Maximum, a > b ? a : b)
INTEGER_2(Minimum, a < b ? a : b)
inline float ArcTan2(float a, float b) { return atan2(a, b); }
inline float LogAddExp(float a, float b) {
  const float larger = a > b ? a : b;
  const float sum = larger + __hf::log1p(precise::exp(-fabs(a - b)));
  // Of infinities the difference is NaN, or the sum is right already.
  const float result = fabs(larger) == INFINITY ? larger : sum;
  return a != a || b != b ? a + b : result;
}
INTEGER_2(BitwiseAnd, (a & b))
INTEGER_2(BitwiseOr, a | b)
INTEGER_2(BitwiseXor, a ^ b)
// The count is taken as unsigned: a negative one is beyond the width. Counts between the width of a
// narrow dtype and 32 move all of its bits out.
template <typename T>
inline T LeftShift(T a, T b) {
  constexpr uint width = 8 * sizeof(T);
  const T shifted = T(unsigned_of<T>(a) << (unsigned_of<T>(b) & (width - 1)));
  return unsigned_of<T>(b) < width ? shifted : T(0);
}
template <typename T>
inline T RightShift(T a, T b) {
  constexpr uint width = 8 * sizeof(T);
  const T shifted = a >> (b & T(width - 1));
  const T all = is_signed_v<T> ? T(a >> T(width - 1)) : T(0);
  return unsigned_of<T>(b) < width ? shifted : all;
}
// Of real numbers and of integers.
#define COMPARISON(name, relation) \
  template <typename T>            \
  inline uint name(T a, T b) {     \
    return a relation b;           \
  }
COMPARISON(Equal, ==)
COMPARISON(NotEqual, !=)
COMPARISON(Less, <)
COMPARISON(LessEqual, <=)

// --- Conversions. From floats to integers they saturate; NaN gives 0. Between integers they wrap.

#define CONVERSION(name, T) \
  template <typename From>  \
  inline T name(From a) {   \
    return T(a);            \
  }
CONVERSION(ToFloat, float)
CONVERSION(ToDouble, double)
CONVERSION(ToInt32, int)
CONVERSION(ToUint32, uint)
CONVERSION(ToInt64, long)
CONVERSION(ToUint64, ulong)
template <typename T>
inline uint ToBool(T a) {
  return a != T(0);
}
inline int saturated(float a, int lowest, int highest) {
  const int value = int(a > -2147483648.0f && a < 2147483648.0f ? a : 0.0f);
  const int limited = a >= 2147483648.0f ? highest : a <= -2147483648.0f ? lowest : value;
  return min(max(limited, lowest), highest);
}
inline int ToInt8(float a) { return saturated(a, -128, 127); }
inline int ToInt16(float a) { return saturated(a, -32768, 32767); }
inline int ToInt32(float a) { return saturated(a, -2147483647 - 1, 2147483647); }
inline uint ToUint8(float a) { return uint(saturated(a, 0, 255)); }
inline uint ToUint16(float a) { return uint(saturated(a, 0, 65535)); }
inline uint ToUint32(float a) {
  const float end = 4294967296.0f;
  return a >= end ? ~0u : uint(a > 0.0f && a < end ? a : 0.0f);
}
inline long ToInt64(float a) {
  const float end = 9223372036854775808.0f;
  const long value = long(a > -end && a < end ? a : 0.0f);
  return a >= end ? 0x7fffffffffffffff : a <= -end ? -0x7fffffffffffffff - 1 : value;
}
inline ulong ToUint64(float a) {
  const float end = 18446744073709551616.0f;
  return a >= end ? ~0ul : ulong(a > 0.0f && a < end ? a : 0.0f);
}

// --- Results that fit their dtype (Finish).

inline float finish_float16(float a) { return float(half(a)); }
inline float finish_bfloat16(float a) { return float(bfloat(a)); }
inline int finish_int8(int a) { return char(a); }
inline int finish_int16(int a) { return short(a); }
inline uint finish_uint8(uint a) { return a & 0xff; }
inline uint finish_uint16(uint a) { return a & 0xffff; }
