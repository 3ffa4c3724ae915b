#include "kernels/cpu/complex_math.h"

#include <cmath>
#include <complex>
#include <limits>
#include <numbers>

namespace holdfast::kernels::cpu {

namespace {

using Wide = std::complex<double>;

Wide widen(Complex z) { return {z.real, z.imag}; }
Complex narrow(Wide z) { return {static_cast<float>(z.real()), static_cast<float>(z.imag())}; }

// std::complex multiplies both parts by a real factor, as wanted: an infinite part times a finite
// factor stays infinite and does not touch the other part.
Wide scale(Wide z, double factor) { return {z.real() * factor, z.imag() * factor}; }

Wide log1p_of(Wide z) {
  double x = z.real(), y = z.imag();
  // log|1 + z| = log1p(x^2 + 2x + y^2) / 2, which keeps its digits near zero.
  if (std::abs(x) < 0.5 && std::abs(y) < 0.5) {
    return {0.5 * std::log1p(x * (x + 2.0) + y * y), std::atan2(y, 1.0 + x)};
  }
  return std::log(Wide(1.0 + x, y));
}

}  // namespace

Complex complex_sign(Complex z) {
  double modulus = std::hypot(static_cast<double>(z.real), static_cast<double>(z.imag));
  if (modulus == 0) return {0, 0};
  return narrow({z.real / modulus, z.imag / modulus});
}

Complex complex_sqrt(Complex z) { return narrow(std::sqrt(widen(z))); }
Complex complex_rsqrt(Complex z) { return narrow(1.0 / std::sqrt(widen(z))); }
Complex complex_exp(Complex z) { return narrow(std::exp(widen(z))); }

Complex complex_expm1(Complex z) {
  double x = z.real, y = z.imag;
  if (y == 0) return {static_cast<float>(std::expm1(x)), z.imag};
  // e^x cos y - 1 = expm1(x) cos y - 2 sin^2(y / 2).
  if (std::abs(x) < 1.0) {
    double half_sine = std::sin(0.5 * y);
    return narrow(
        {std::expm1(x) * std::cos(y) - 2.0 * half_sine * half_sine, std::exp(x) * std::sin(y)});
  }
  Wide e = std::exp(Wide(x, y));
  return narrow({e.real() - 1.0, e.imag()});
}

Complex complex_log(Complex z) { return narrow(std::log(widen(z))); }
Complex complex_log2(Complex z) { return narrow(scale(std::log(widen(z)), std::numbers::log2e)); }
Complex complex_log10(Complex z) { return narrow(scale(std::log(widen(z)), std::numbers::log10e)); }
Complex complex_log1p(Complex z) { return narrow(log1p_of(widen(z))); }
Complex complex_sin(Complex z) { return narrow(std::sin(widen(z))); }
Complex complex_cos(Complex z) { return narrow(std::cos(widen(z))); }
Complex complex_tan(Complex z) { return narrow(std::tan(widen(z))); }
Complex complex_arcsin(Complex z) { return narrow(std::asin(widen(z))); }
Complex complex_arccos(Complex z) { return narrow(std::acos(widen(z))); }
Complex complex_arctan(Complex z) { return narrow(std::atan(widen(z))); }
Complex complex_sinh(Complex z) { return narrow(std::sinh(widen(z))); }
Complex complex_cosh(Complex z) { return narrow(std::cosh(widen(z))); }
Complex complex_tanh(Complex z) { return narrow(std::tanh(widen(z))); }
Complex complex_arcsinh(Complex z) { return narrow(std::asinh(widen(z))); }
Complex complex_arccosh(Complex z) { return narrow(std::acosh(widen(z))); }
Complex complex_arctanh(Complex z) { return narrow(std::atanh(widen(z))); }

Complex complex_sigmoid(Complex z) {
  // The exponential of the side that decays: no overflow.
  if (z.real < 0) {
    Wide e = std::exp(widen(z));
    return narrow(e / (1.0 + e));
  }
  return narrow(1.0 / (1.0 + std::exp(-widen(z))));
}

Complex complex_power(Complex base, Complex exponent) {
  if (exponent.real == 0 && exponent.imag == 0) return {1, 0};
  if (base.real == 0 && base.imag == 0) {
    if (exponent.real > 0) return {0, 0};
    float nan = std::numeric_limits<float>::quiet_NaN();
    return {nan, nan};
  }
  return narrow(std::exp(widen(exponent) * std::log(widen(base))));
}

Complex complex_logaddexp(Complex a, Complex b) {
  bool a_is_larger = a.real > b.real || (a.real == b.real && a.imag >= b.imag);
  Wide large = widen(a_is_larger ? a : b), small = widen(a_is_larger ? b : a);
  if (std::isnan(a.real) || std::isnan(a.imag)) return a;
  if (std::isnan(b.real) || std::isnan(b.imag)) return b;
  if (std::isinf(small.real()) || std::isinf(large.real())) return narrow(large);
  return narrow(large + log1p_of(std::exp(small - large)));
}

}  // namespace holdfast::kernels::cpu
