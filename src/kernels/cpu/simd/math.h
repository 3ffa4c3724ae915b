// The math of the element-wise ops: one struct a row of elementwise.def, named like the Primitive.
//
// A struct has `apply` for each element type that in_types of its row accepts: Bool, the integers,
// float and double, Complex. Where it sets `is_vector`, floats and doubles go through `vector`
// instead, one register at a time. An op that has an `apply` or, without calling a library, a
// `vector` for FloatVector takes part in chains (chain_stages.h). `is_bitwise` says that signed
// integers may share the code of unsigned ones. Integer arithmetic wraps; it is done unsigned,
// since signed overflow is undefined.
#pragma once

#include "kernels/cpu/simd/loops.h"
#include "kernels/cpu/simd/scalar_math.h"
#include "kernels/cpu/simd/vector_math.h"

namespace holdfast::kernels::cpu::HOLDFAST_SIMD_TARGET {

// --- Unary ops.

struct Abs {
  static Bool apply(Bool a) { return a; }
  template <AnyInteger T>
  static T apply(T a) {
    if constexpr (std::is_signed_v<T>)
      return static_cast<T>(a < 0 ? 0 - Unsigned<T>(a) : Unsigned<T>(a));
    else
      return a;
  }
  template <AnyFloat T>
  static T apply(T a) {
    return absolute(a);
  }
  static FloatVector apply(FloatVector a) { return absolute(a); }
  static float apply(Complex a) {
    double real = a.real, imag = a.imag;
    float modulus = static_cast<float>(__builtin_sqrt(real * real + imag * imag));
    return either(is_infinite(a.real), is_infinite(a.imag)) ? __builtin_inff() : modulus;
  }
};

struct Negative {
  static constexpr bool is_bitwise = true;
  template <AnyInteger T>
  static T apply(T a) {
    return static_cast<T>(0 - Unsigned<T>(a));
  }
  template <AnyFloat T>
  static T apply(T a) {
    return -a;
  }
  static FloatVector apply(FloatVector a) { return -a; }
  static Complex apply(Complex a) { return {-a.real, -a.imag}; }
};

struct Sign {
  static Bool apply(Bool a) { return a; }
  template <AnyInteger T>
  static T apply(T a) {
    return static_cast<T>((a > 0) - (a < 0));
  }
  template <AnyFloat T>
  static T apply(T a) {
    return a > 0 ? T(1) : (a < 0 ? T(-1) : (a == 0 ? T(0) : a));
  }
  static Complex apply(Complex a) { return complex_sign(a); }
};

// The four roundings leave integers as they are.
#define HOLDFAST_ROUNDING(Primitive, function)                                       \
  struct Primitive {                                                                 \
    static constexpr bool is_bitwise = true;                                         \
    static Bool apply(Bool a) { return a; }                                          \
    static auto apply(AnyInteger auto a) { return a; }                               \
    static auto apply(AnyFloat auto a) { return function(a); }                       \
    static Complex apply(Complex a) { return {function(a.real), function(a.imag)}; } \
  };
HOLDFAST_ROUNDING(Floor, round_down)
HOLDFAST_ROUNDING(Ceil, round_up)
HOLDFAST_ROUNDING(Trunc, round_toward_zero)
HOLDFAST_ROUNDING(Round, round_to_even)
#undef HOLDFAST_ROUNDING

struct Square {
  static constexpr bool is_bitwise = true;
  static Bool apply(Bool a) { return a; }
  template <AnyInteger T>
  static T apply(T a) {
    return static_cast<T>(Unsigned<T>(a) * Unsigned<T>(a));
  }
  template <AnyFloat T>
  static T apply(T a) {
    return a * a;
  }
  static FloatVector apply(FloatVector a) { return a * a; }
  static Complex apply(Complex a) {
    return {a.real * a.real - a.imag * a.imag, 2 * (a.real * a.imag)};
  }
};

// Ops that are one function of a register, and one complex function. `calls_library`: the function
// is not inlined, and has no place in a chain, whose registers it would overwrite.
#define HOLDFAST_FUNCTION(Primitive, vector_function, library, complex_function) \
  struct Primitive {                                                             \
    static constexpr bool is_vector = true;                                      \
    static constexpr bool calls_library = library;                               \
    static auto vector(auto a) { return vector_function(a); }                    \
    static Complex apply(Complex a) { return complex_function(a); }              \
  };
HOLDFAST_FUNCTION(Sqrt, square_root, false, complex_sqrt)
HOLDFAST_FUNCTION(Rsqrt, reciprocal_square_root, false, complex_rsqrt)
HOLDFAST_FUNCTION(Expm1, library_expm1, true, complex_expm1)
HOLDFAST_FUNCTION(Log, natural_logarithm, true, complex_log)
HOLDFAST_FUNCTION(Log2, logarithm_base_2, true, complex_log2)
HOLDFAST_FUNCTION(Log10, logarithm_base_10, true, complex_log10)
HOLDFAST_FUNCTION(Log1p, logarithm_of_1_plus, true, complex_log1p)
HOLDFAST_FUNCTION(Sin, library_sin, true, complex_sin)
HOLDFAST_FUNCTION(Cos, library_cos, true, complex_cos)
HOLDFAST_FUNCTION(Tan, library_tan, true, complex_tan)
HOLDFAST_FUNCTION(ArcSin, library_asin, true, complex_arcsin)
HOLDFAST_FUNCTION(ArcCos, library_acos, true, complex_arccos)
HOLDFAST_FUNCTION(ArcTan, library_atan, true, complex_arctan)
HOLDFAST_FUNCTION(Sinh, library_sinh, true, complex_sinh)
HOLDFAST_FUNCTION(Cosh, library_cosh, true, complex_cosh)
HOLDFAST_FUNCTION(Tanh, library_tanh, true, complex_tanh)
HOLDFAST_FUNCTION(ArcSinh, library_asinh, true, complex_arcsinh)
HOLDFAST_FUNCTION(ArcCosh, library_acosh, true, complex_arccosh)
HOLDFAST_FUNCTION(ArcTanh, library_atanh, true, complex_arctanh)
HOLDFAST_FUNCTION(Sigmoid, sigmoid, false, complex_sigmoid)
#undef HOLDFAST_FUNCTION

struct Erf {
  static constexpr bool is_vector = true;
  static constexpr bool calls_library = error_function_calls_library;
  static auto vector(auto a) { return error_function(a); }
};
struct Exp {
  static constexpr bool is_vector = true;
  static constexpr bool calls_library = false;
  static auto vector(auto v) { return exponential(v); }
  static Complex apply(Complex a) { return complex_exp(a); }
#if defined(__AVX512F__)
  static FloatVector half(FloatVector v) { return half_exponential(v); }
#endif
};
struct ErfInv {
  static constexpr bool is_vector = true;
  static constexpr bool calls_library = true;
  static auto vector(auto a) { return inverse_error_function(a); }
};

struct BitwiseInvert {
  static constexpr bool is_bitwise = true;
  static Bool apply(Bool a) { return {static_cast<uint8_t>(a.value ^ 1)}; }
  template <AnyInteger T>
  static T apply(T a) {
    return static_cast<T>(~a);
  }
};

struct LogicalNot {
  static Bool apply(Bool a) { return {static_cast<uint8_t>(a.value ^ 1)}; }
};

struct IsNaN {
  static constexpr bool is_bitwise = true;
  static bool apply(Bool) { return false; }
  static bool apply(AnyInteger auto) { return false; }
  static bool apply(AnyFloat auto a) { return is_nan(a); }
  static bool apply(Complex a) { return is_nan(a); }
};
struct IsInf {
  static constexpr bool is_bitwise = true;
  static bool apply(Bool) { return false; }
  static bool apply(AnyInteger auto) { return false; }
  static bool apply(AnyFloat auto a) { return is_infinite(a); }
  static bool apply(Complex a) { return either(is_infinite(a.real), is_infinite(a.imag)); }
};
struct IsFinite {
  static constexpr bool is_bitwise = true;
  static bool apply(Bool) { return true; }
  static bool apply(AnyInteger auto) { return true; }
  static bool apply(AnyFloat auto a) { return is_finite(a); }
  static bool apply(Complex a) { return both(is_finite(a.real), is_finite(a.imag)); }
};
struct IsPosInf {
  static constexpr bool is_bitwise = true;
  static bool apply(Bool) { return false; }
  static bool apply(AnyInteger auto) { return false; }
  template <AnyFloat T>
  static bool apply(T a) {
    return a == static_cast<T>(__builtin_inf());
  }
};
struct IsNegInf {
  static constexpr bool is_bitwise = true;
  static bool apply(Bool) { return false; }
  static bool apply(AnyInteger auto) { return false; }
  template <AnyFloat T>
  static bool apply(T a) {
    return a == -static_cast<T>(__builtin_inf());
  }
};

struct Real {
  static constexpr bool is_bitwise = true;
  static auto apply(auto a) { return a; }
  static float apply(Complex a) { return a.real; }
};
struct Imag {
  static constexpr bool is_bitwise = true;
  template <typename T>
  static T apply(T) {
    return T{};
  }
  static float apply(Complex a) { return a.imag; }
};
struct Conjugate {
  static constexpr bool is_bitwise = true;
  static auto apply(auto a) { return a; }
  static Complex apply(Complex a) { return {a.real, -a.imag}; }
};

// --- Binary ops.

struct Add {
  static constexpr bool is_bitwise = true;
  static Bool apply(Bool a, Bool b) { return {static_cast<uint8_t>(a.value | b.value)}; }
  template <AnyInteger T>
  static T apply(T a, T b) {
    return static_cast<T>(Unsigned<T>(a) + Unsigned<T>(b));
  }
  template <AnyFloat T>
  static T apply(T a, T b) {
    return a + b;
  }
  static FloatVector apply(FloatVector a, FloatVector b) { return sum_of(a, b); }
  static Complex apply(Complex a, Complex b) { return {a.real + b.real, a.imag + b.imag}; }
};

struct Subtract {
  static constexpr bool is_bitwise = true;
  static Bool apply(Bool a, Bool b) { return {static_cast<uint8_t>(a.value ^ b.value)}; }
  template <AnyInteger T>
  static T apply(T a, T b) {
    return static_cast<T>(Unsigned<T>(a) - Unsigned<T>(b));
  }
  template <AnyFloat T>
  static T apply(T a, T b) {
    return a - b;
  }
  static FloatVector apply(FloatVector a, FloatVector b) { return a - b; }
  static Complex apply(Complex a, Complex b) { return {a.real - b.real, a.imag - b.imag}; }
};

struct Multiply {
  static constexpr bool is_bitwise = true;
  static Bool apply(Bool a, Bool b) { return {static_cast<uint8_t>(a.value & b.value)}; }
  template <AnyInteger T>
  static T apply(T a, T b) {
    return static_cast<T>(Unsigned<T>(a) * Unsigned<T>(b));
  }
  template <AnyFloat T>
  static T apply(T a, T b) {
    return a * b;
  }
  static FloatVector apply(FloatVector a, FloatVector b) { return product_of(a, b); }
  static Complex apply(Complex a, Complex b) {
    return {a.real * b.real - a.imag * b.imag, a.real * b.imag + a.imag * b.real};
  }
};

struct Divide {
  template <AnyFloat T>
  static T apply(T a, T b) {
    return a / b;
  }
  static FloatVector apply(FloatVector a, FloatVector b) { return a / b; }
  // In double: no product of floats overflows or underflows there. As in C, a finite number by an
  // infinity is zero, and by zero it is an infinity.
  static Complex apply(Complex a, Complex b) {
    bool infinite = either(is_infinite(b.real), is_infinite(b.imag));
    float unit_real = __builtin_copysignf(is_infinite(b.real) ? 1.0f : 0.0f, b.real);
    float unit_imag = __builtin_copysignf(is_infinite(b.imag) ? 1.0f : 0.0f, b.imag);
    double real = infinite ? unit_real : b.real, imag = infinite ? unit_imag : b.imag;
    double scale = infinite ? 0.0 : 1.0;
    double norm = real * real + imag * imag;
    real = norm == 0 ? __builtin_copysignf(1.0f, b.real) : real;
    return {static_cast<float>(scale * ((a.real * real + a.imag * imag) / norm)),
            static_cast<float>(scale * ((a.imag * real - a.real * imag) / norm))};
  }
};

struct Remainder {
  static Bool apply(Bool, Bool) { return {0}; }
  template <AnyInteger T>
  static T apply(T a, T b) {
    return divide_down(a, b).remainder;
  }

  // The exact remainder of the truncated quotient, moved to the sign of the divisor as in Python.
  template <AnyFloat T>
  static T with_sign_of(T remainder, T b) {
    T moved = (remainder < 0) != (b < 0) ? remainder + b : remainder;
    T zero =
        sizeof(T) == 4 ? T(__builtin_copysignf(0.0f, float(b))) : T(__builtin_copysign(0.0, b));
    return remainder == 0 ? zero : moved;
  }
  static float apply(float a, float b) { return with_sign_of(__builtin_fmodf(a, b), b); }
  static double apply(double a, double b) { return with_sign_of(__builtin_fmod(a, b), b); }
  // In double the quotient of two floats truncates exactly below 2^28, and the product is exact.
  using EasyType = float;
  static bool is_easy(float a, float b) {
    return both(absolute(a) < absolute(b) * 268435456.0f, is_finite(b));
  }
  static float apply_easy(float a, float b) {
    double quotient = round_toward_zero(static_cast<double>(a) / static_cast<double>(b));
    return with_sign_of(static_cast<float>(a - quotient * b), b);
  }

  static float part(float a, float b) { return a - b * round_down(a / b); }
  static Complex apply(Complex a, Complex b) {
    return {part(a.real, b.real), part(a.imag, b.imag)};
  }
};

// Floats: the floor of the exact quotient, so that it fits the remainder: 1 // 0.1 is 9.
struct FloorDivide {
  static Bool apply(Bool a, Bool b) { return {static_cast<uint8_t>(a.value & b.value)}; }
  template <AnyInteger T>
  static T apply(T a, T b) {
    return divide_down(a, b).quotient;
  }
  static float apply(float a, float b) {
    return static_cast<float>(round_down(static_cast<double>(a) / static_cast<double>(b)));
  }
  static double apply(double a, double b) {
    double quotient = a / b;
    if (!is_finite(quotient) || b == 0 || !is_finite(b)) return round_down(quotient);
    double remainder = __builtin_fmod(a, b);
    double truncated = round_to_even((a - remainder) / b);
    return remainder != 0 && (remainder < 0) != (b < 0) ? truncated - 1 : truncated;
  }
};

struct Power {
  static constexpr bool is_vector = true;
  static constexpr bool calls_library = true;
  static Bool apply(Bool a, Bool b) { return {static_cast<uint8_t>(a.value | (b.value ^ 1))}; }
  // By squaring, wrapping. A negative exponent gives 0, except for the bases 1 and -1.
  template <AnyInteger T>
  static T apply(T base, T exponent) {
    if constexpr (std::is_signed_v<T>) {
      if (exponent < 0) {
        if (base == 1) return 1;
        if (base == -1) return exponent & 1 ? -1 : 1;
        return 0;
      }
    }
    uint64_t factor = static_cast<uint64_t>(base), result = 1;
    for (uint64_t left = static_cast<uint64_t>(exponent); left != 0; left >>= 1) {
      if (left & 1) result *= factor;
      factor *= factor;
    }
    return static_cast<T>(result);
  }
  static auto vector(auto a, auto b) { return library_pow(a, b); }
  static Complex apply(Complex a, Complex b) { return complex_power(a, b); }
};

// Complex numbers are ordered by their real parts, then by their imaginary parts.
struct Less {
  static Bool apply(Bool a, Bool b) { return {static_cast<uint8_t>((a.value ^ 1) & b.value)}; }
  template <AnyReal T>
  static bool apply(T a, T b) {
    return a < b;
  }
  static bool apply(Complex a, Complex b) {
    return either(a.real < b.real, both(a.real == b.real, a.imag < b.imag));
  }
};
struct LessEqual {
  static Bool apply(Bool a, Bool b) { return {static_cast<uint8_t>((a.value ^ 1) | b.value)}; }
  template <AnyReal T>
  static bool apply(T a, T b) {
    return a <= b;
  }
  static bool apply(Complex a, Complex b) {
    return either(a.real < b.real, both(a.real == b.real, a.imag <= b.imag));
  }
};
struct Greater {
  using Exchanged = Less;
};
struct GreaterEqual {
  using Exchanged = LessEqual;
};
struct Equal {
  static constexpr bool is_bitwise = true;
  static Bool apply(Bool a, Bool b) { return {static_cast<uint8_t>(a.value ^ b.value ^ 1)}; }
  template <AnyReal T>
  static bool apply(T a, T b) {
    return a == b;
  }
  static bool apply(Complex a, Complex b) { return both(a.real == b.real, a.imag == b.imag); }
};
struct NotEqual {
  static constexpr bool is_bitwise = true;
  static Bool apply(Bool a, Bool b) { return {static_cast<uint8_t>(a.value ^ b.value)}; }
  template <AnyReal T>
  static bool apply(T a, T b) {
    return a != b;
  }
  static bool apply(Complex a, Complex b) { return either(a.real != b.real, a.imag != b.imag); }
};

struct Maximum {
  static Bool apply(Bool a, Bool b) { return {static_cast<uint8_t>(a.value | b.value)}; }
  template <AnyInteger T>
  static T apply(T a, T b) {
    return a > b ? a : b;
  }
  template <AnyFloat T>
  static T apply(T a, T b) {
    return either(a > b, is_nan(a)) ? a : b;
  }
  static FloatVector apply(FloatVector a, FloatVector b) { return ((a > b) | (a != a)) ? a : b; }
  static Complex apply(Complex a, Complex b) {
    bool take_a = either(both(Less::apply(b, a), !is_nan(b)), is_nan(a));
    return {take_a ? a.real : b.real, take_a ? a.imag : b.imag};
  }
};
struct Minimum {
  static Bool apply(Bool a, Bool b) { return {static_cast<uint8_t>(a.value & b.value)}; }
  template <AnyInteger T>
  static T apply(T a, T b) {
    return a < b ? a : b;
  }
  template <AnyFloat T>
  static T apply(T a, T b) {
    return either(a < b, is_nan(a)) ? a : b;
  }
  static FloatVector apply(FloatVector a, FloatVector b) { return ((a < b) | (a != a)) ? a : b; }
  static Complex apply(Complex a, Complex b) {
    bool take_a = either(both(Less::apply(a, b), !is_nan(b)), is_nan(a));
    return {take_a ? a.real : b.real, take_a ? a.imag : b.imag};
  }
};

struct ArcTan2 {
  static constexpr bool is_vector = true;
  static constexpr bool calls_library = true;
  static auto vector(auto a, auto b) { return library_atan2(a, b); }
};
struct LogAddExp {
  static constexpr bool is_vector = true;
  static constexpr bool calls_library = true;
  static auto vector(auto a, auto b) { return log_add_exp(a, b); }
  static Complex apply(Complex a, Complex b) { return complex_logaddexp(a, b); }
};

#define HOLDFAST_BITWISE(Primitive, op)                                                      \
  struct Primitive {                                                                         \
    static constexpr bool is_bitwise = true;                                                 \
    static Bool apply(Bool a, Bool b) { return {static_cast<uint8_t>(a.value op b.value)}; } \
    template <AnyInteger T>                                                                  \
    static T apply(T a, T b) {                                                               \
      return static_cast<T>(a op b);                                                         \
    }                                                                                        \
  };
HOLDFAST_BITWISE(BitwiseAnd, &)
HOLDFAST_BITWISE(BitwiseOr, |)
HOLDFAST_BITWISE(BitwiseXor, ^)
HOLDFAST_BITWISE(LogicalAnd, &)
HOLDFAST_BITWISE(LogicalOr, |)
HOLDFAST_BITWISE(LogicalXor, ^)
#undef HOLDFAST_BITWISE

// The shift count is taken as unsigned: a negative one counts as beyond the width.
struct LeftShift {
  static constexpr bool is_bitwise = true;
  template <AnyInteger T>
  static T apply(T a, T b) {
    auto count = static_cast<std::make_unsigned_t<T>>(b);
    T shifted = static_cast<T>(Unsigned<T>(a) << (count & (width_of<T> - 1)));
    return count < width_of<T> ? shifted : T(0);
  }
};
struct RightShift {
  template <AnyInteger T>
  static T apply(T a, T b) {
    auto count = static_cast<std::make_unsigned_t<T>>(b);
    T shifted = static_cast<T>(a >> (count & (width_of<T> - 1)));
    if constexpr (std::is_signed_v<T>)
      return count < width_of<T> ? shifted : static_cast<T>(a >> (width_of<T> - 1));
    else
      return count < width_of<T> ? shifted : T(0);
  }
};

// --- Ternary.

struct Select {
  template <AnyInteger T>
  static T apply(uint8_t condition, T x, T y) {
    return condition ? x : y;
  }
};

}  // namespace holdfast::kernels::cpu::HOLDFAST_SIMD_TARGET
