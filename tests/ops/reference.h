// What every element-wise op means, written as plainly as possible: one function per Primitive of
// elementwise.def, on wide types (128-bit integers, double, complex<double>). A row without a
// function here is still tested: all layouts must agree with each other.
#pragma once

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <type_traits>

namespace holdfast::testing {

using WideInt = __int128;
using WideComplex = std::complex<double>;

template <typename W>
inline constexpr bool is_integer = std::is_same_v<W, WideInt>;
template <typename W>
inline constexpr bool is_complex = std::is_same_v<W, WideComplex>;
template <typename W>
inline constexpr bool is_real = std::is_same_v<W, double>;

inline double inverse_erf(double a) {
  if (!(a >= -1 && a <= 1)) return std::numeric_limits<double>::quiet_NaN();
  if (a == 1 || a == -1) return a * std::numeric_limits<double>::infinity();
  double low = -7, high = 7;
  for (int i = 0; i < 200; ++i) (std::erf((low + high) / 2) < a ? low : high) = (low + high) / 2;
  return (low + high) / 2;
}

inline bool is_less(WideComplex a, WideComplex b) {
  return a.real() != b.real() ? a.real() < b.real() : a.imag() < b.imag();
}
template <typename W>
bool is_less(W a, W b) {
  return a < b;
}
inline bool is_nan(double a) { return std::isnan(a); }
inline bool is_nan(WideComplex a) { return std::isnan(a.real()) || std::isnan(a.imag()); }
inline bool is_nan(WideInt) { return false; }

// a * b; integers wrap.
template <typename W>
W product(W a, W b) {
  using Unsigned = unsigned __int128;
  if constexpr (is_integer<W>)
    return static_cast<W>(static_cast<Unsigned>(a) * static_cast<Unsigned>(b));
  else
    return a * b;
}

struct Reference {
  // Of the operands, in bits; a bool has 1.
  static inline int width = 0;

// A function of floating types only, one for reals only, and one that treats each part alone.
#define FLOATING(Name, expression) \
  template <typename W>            \
  static W Name(W a) {             \
    if constexpr (is_integer<W>)   \
      return a;                    \
    else                           \
      return expression;           \
  }
#define REAL(Name, expression) \
  template <typename W>        \
  static W Name(W a) {         \
    if constexpr (!is_real<W>) \
      return a;                \
    else                       \
      return expression;       \
  }
#define EACH_PART(Name, function)                       \
  template <typename W>                                 \
  static W Name(W a) {                                  \
    if constexpr (is_integer<W>)                        \
      return a;                                         \
    else if constexpr (is_real<W>)                      \
      return function(a);                               \
    else                                                \
      return W(function(a.real()), function(a.imag())); \
  }
  template <typename W>
  static W Abs(W a) {
    if constexpr (is_integer<W>)
      return a < 0 ? -a : a;
    else
      return std::abs(a);
  }
  template <typename W>
  static W Negative(W a) {
    return -a;
  }
  template <typename W>
  static W Sign(W a) {
    if constexpr (is_complex<W>)
      return a == 0.0 ? a : a / std::abs(a);
    else if (is_nan(a))
      return a;
    else
      return a > 0 ? 1 : a < 0 ? -1 : 0;
  }
  EACH_PART(Floor, std::floor)
  EACH_PART(Ceil, std::ceil)
  EACH_PART(Trunc, std::trunc)
  EACH_PART(Round, std::nearbyint)
  template <typename W>
  static W Square(W a) {
    return product(a, a);
  }
  FLOATING(Sqrt, std::sqrt(a))
  FLOATING(Rsqrt, 1.0 / std::sqrt(a))
  FLOATING(Exp, std::exp(a))
  template <typename W>
  static W Expm1(W a) {
    if constexpr (is_integer<W>)
      return a;
    else if constexpr (is_real<W>)
      return std::expm1(a);
    else
      return std::exp(a) - 1.0;
  }
  FLOATING(Log, std::log(a))
  FLOATING(Log2, std::log(a) / std::log(2.0))
  FLOATING(Log10, std::log10(a))
  template <typename W>
  static W Log1p(W a) {
    if constexpr (is_integer<W>)
      return a;
    else if constexpr (is_real<W>)
      return std::log1p(a);
    else
      return std::log(a + 1.0);
  }
  FLOATING(Sin, std::sin(a))
  FLOATING(Cos, std::cos(a))
  FLOATING(Tan, std::tan(a))
  FLOATING(ArcSin, std::asin(a))
  FLOATING(ArcCos, std::acos(a))
  FLOATING(ArcTan, std::atan(a))
  FLOATING(Sinh, std::sinh(a))
  FLOATING(Cosh, std::cosh(a))
  FLOATING(Tanh, std::tanh(a))
  FLOATING(ArcSinh, std::asinh(a))
  FLOATING(ArcCosh, std::acosh(a))
  FLOATING(ArcTanh, std::atanh(a))
  FLOATING(Sigmoid, 1.0 / (1.0 + std::exp(-a)))
  REAL(Erf, std::erf(a))
  REAL(ErfInv, inverse_erf(a))
  template <typename W>
  static W BitwiseInvert(W a) {
    if constexpr (is_integer<W>)
      return width == 1 ? WideInt(a == 0) : ~a;
    else
      return a;
  }
  template <typename W>
  static W LogicalNot(W a) {
    return a == W(0) ? W(1) : W(0);
  }
  template <typename W>
  static W IsNaN(W a) {
    return W(is_nan(a));
  }
  template <typename W>
  static W IsInf(W a) {
    if constexpr (is_integer<W>)
      return 0;
    else if constexpr (is_real<W>)
      return std::isinf(a);
    else
      return W(std::isinf(a.real()) || std::isinf(a.imag()));
  }
  template <typename W>
  static W IsFinite(W a) {
    if constexpr (is_integer<W>)
      return 1;
    else if constexpr (is_real<W>)
      return std::isfinite(a);
    else
      return W(std::isfinite(a.real()) && std::isfinite(a.imag()));
  }
  template <typename W>
  static W IsPosInf(W a) {
    if constexpr (is_real<W>)
      return a == std::numeric_limits<double>::infinity();
    else
      return W(0);
  }
  template <typename W>
  static W IsNegInf(W a) {
    if constexpr (is_real<W>)
      return a == -std::numeric_limits<double>::infinity();
    else
      return W(0);
  }
  template <typename W>
  static W Real(W a) {
    if constexpr (is_complex<W>)
      return a.real();
    else
      return a;
  }
  template <typename W>
  static W Imag(W a) {
    if constexpr (is_complex<W>)
      return a.imag();
    else
      return 0;
  }
  template <typename W>
  static W Conjugate(W a) {
    if constexpr (is_complex<W>)
      return std::conj(a);
    else
      return a;
  }
#undef FLOATING
#undef REAL
#undef EACH_PART

  template <typename W>
  static W Add(W a, W b) {
    return a + b;
  }
  template <typename W>
  static W Subtract(W a, W b) {
    return a - b;
  }
  template <typename W>
  static W Multiply(W a, W b) {
    return product(a, b);
  }
  template <typename W>
  static W Divide(W a, W b) {
    if constexpr (is_integer<W>)
      return 0;
    else
      return a / b;
  }
  template <typename W>
  static W FloorDivide(W a, W b) {
    if constexpr (is_integer<W>) {
      if (b == 0) return 0;
      WideInt quotient = a / b;
      return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
    } else if constexpr (is_real<W>) {
      return std::floor(a / b);
    } else {
      return a;
    }
  }
  template <typename W>
  static W Remainder(W a, W b) {
    if constexpr (is_integer<W>)
      return b == 0 ? W(0) : a - b * FloorDivide(a, b);
    else if constexpr (is_real<W>)
      return a - b * std::floor(a / b);
    else
      return {a.real() - b.real() * std::floor(a.real() / b.real()),
              a.imag() - b.imag() * std::floor(a.imag() / b.imag())};
  }
  template <typename W>
  static W Power(W a, W b) {
    if constexpr (is_integer<W>) {
      unsigned __int128 result = 1;
      for (WideInt i = 0; i < b; ++i) result *= static_cast<unsigned __int128>(a);
      return static_cast<WideInt>(result);
    } else {
      return std::pow(a, b);
    }
  }
  template <typename W>
  static W Maximum(W a, W b) {
    return is_nan(a) || (!is_nan(b) && is_less(b, a)) ? a : b;
  }
  template <typename W>
  static W Minimum(W a, W b) {
    return is_nan(a) || (!is_nan(b) && is_less(a, b)) ? a : b;
  }
  template <typename W>
  static W ArcTan2(W a, W b) {
    if constexpr (is_real<W>)
      return std::atan2(a, b);
    else
      return a;
  }
  template <typename W>
  static W LogAddExp(W a, W b) {
    if constexpr (is_integer<W>)
      return a;
    else if constexpr (is_complex<W>)
      return std::log(std::exp(a) + std::exp(b));
    else if (is_nan(a) || is_nan(b))
      return a + b;
    else if (std::isinf(std::max(a, b)))
      return std::max(a, b);
    else
      return std::max(a, b) + std::log1p(std::exp(-std::abs(a - b)));
  }
  template <typename W>
  static W BitwiseAnd(W a, W b) {
    if constexpr (is_integer<W>)
      return a & b;
    else
      return a;
  }
  template <typename W>
  static W BitwiseOr(W a, W b) {
    if constexpr (is_integer<W>)
      return a | b;
    else
      return a;
  }
  template <typename W>
  static W BitwiseXor(W a, W b) {
    if constexpr (is_integer<W>)
      return a ^ b;
    else
      return a;
  }
  template <typename W>
  static W LeftShift(W a, W b) {
    if constexpr (is_integer<W>)
      return b < 0 || b >= width ? W(0) : a << static_cast<int>(b);
    else
      return a;
  }
  template <typename W>
  static W RightShift(W a, W b) {
    if constexpr (is_integer<W>)
      return a >> static_cast<int>(b < 0 || b >= width ? 127 : b);
    else
      return a;
  }
  template <typename W>
  static W Equal(W a, W b) {
    return W(a == b);
  }
  template <typename W>
  static W NotEqual(W a, W b) {
    return W(a != b);
  }
  template <typename W>
  static W Less(W a, W b) {
    return W(is_less(a, b));
  }
  template <typename W>
  static W Greater(W a, W b) {
    return W(is_less(b, a));
  }
  template <typename W>
  static W LessEqual(W a, W b) {
    return W(is_less(a, b) || a == b);
  }
  template <typename W>
  static W GreaterEqual(W a, W b) {
    return W(is_less(b, a) || a == b);
  }
  template <typename W>
  static W LogicalAnd(W a, W b) {
    return W(a != W(0) && b != W(0));
  }
  template <typename W>
  static W LogicalOr(W a, W b) {
    return W(a != W(0) || b != W(0));
  }
  template <typename W>
  static W LogicalXor(W a, W b) {
    return W((a != W(0)) != (b != W(0)));
  }
};

}  // namespace holdfast::testing
