// Complex functions of one element, for the c64 lane. Compiled once, not per instruction set: their
// cost is in libm. They are computed in double precision and rounded, so that no intermediate value
// overflows or cancels where the result does not.
#pragma once

namespace holdfast::kernels::cpu {

// One element of the c64 lane; the layout of complex64_t. Plain data, so that the builds for
// several instruction sets can share it.
struct Complex {
  float real, imag;
};

Complex complex_sign(Complex z);  // z / |z|; zero at zero
Complex complex_sqrt(Complex z);
Complex complex_rsqrt(Complex z);
Complex complex_exp(Complex z);
Complex complex_expm1(Complex z);
Complex complex_log(Complex z);
Complex complex_log2(Complex z);
Complex complex_log10(Complex z);
Complex complex_log1p(Complex z);
Complex complex_sin(Complex z);
Complex complex_cos(Complex z);
Complex complex_tan(Complex z);
Complex complex_arcsin(Complex z);
Complex complex_arccos(Complex z);
Complex complex_arctan(Complex z);
Complex complex_sinh(Complex z);
Complex complex_cosh(Complex z);
Complex complex_tanh(Complex z);
Complex complex_arcsinh(Complex z);
Complex complex_arccosh(Complex z);
Complex complex_arctanh(Complex z);
Complex complex_sigmoid(Complex z);
// 0 to the power of 0 is 1, to a power with a positive real part 0, to other powers NaN.
Complex complex_power(Complex base, Complex exponent);
// The branch is that of the operand with the larger real part.
Complex complex_logaddexp(Complex a, Complex b);

}  // namespace holdfast::kernels::cpu
