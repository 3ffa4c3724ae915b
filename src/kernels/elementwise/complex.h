// The math of the element-wise ops on complex numbers. As on the host, functions are computed in
// double precision and rounded, so that nothing overflows or cancels where the result does not; the
// functions of double here are good to some 40 bits. (After math.h.)

struct Complex {
  float real, imag;
};

struct Wide {
  double real, imag;
};

// Literals of Metal are floats.
inline constexpr double operator""_d(long double value) { return double(value); }

// --- Functions of double whose operands come from floats.

inline constexpr double huge = __builtin_huge_val();

inline double magnitude(double a) { return __builtin_elementwise_abs(a); }
inline double root(double a) { return __builtin_elementwise_sqrt(a); }
inline double signed_as(double a, double sign) {
  return as_type<double>((as_type<ulong>(a) & 0x7fffffffffffffff) |
                         (as_type<ulong>(sign) & 0x8000000000000000));
}
inline double two_to(int n) { return as_type<double>(ulong(n + 1023) << 52); }

// e^r - 1 for |r| <= 0.35: r + r^2 / 2 + ... + r^11 / 11!.
inline double small_expm1(double r) {
  double p = 1.0_d / 39916800.0_d;
  p = p * r + 1.0_d / 3628800.0_d;
  p = p * r + 1.0_d / 362880.0_d;
  p = p * r + 1.0_d / 40320.0_d;
  p = p * r + 1.0_d / 5040.0_d;
  p = p * r + 1.0_d / 720.0_d;
  p = p * r + 1.0_d / 120.0_d;
  p = p * r + 1.0_d / 24.0_d;
  p = p * r + 1.0_d / 6.0_d;
  p = p * r + 0.5_d;
  return p * r * r + r;
}
// Saturates at e^±700, which no float reaches.
inline double exponential(double a) {
  double x = a > 700.0_d ? 700.0_d : a;
  x = x < -700.0_d ? -700.0_d : x;
  const double sum = x * 1.4426950408889634_d + 0x1.8p52_d;
  const double n = sum - 0x1.8p52_d;
  const double r = (x - n * 0x1.62e42fep-1_d) - n * 1.8206359985041462e-09_d;
  return (1.0_d + small_expm1(r)) * two_to(int(as_type<ulong>(sum) & 0xffffffff));
}
inline double exponential_less_1(double x) {
  return magnitude(x) < 0.35_d ? small_expm1(x) : exponential(x) - 1.0_d;
}
// log((1 + s) / (1 - s)) for |s| <= 0.18.
inline double twice_atanh(double s) {
  const double z = s * s;
  double p = 1.0_d / 17.0_d;
  p = p * z + 1.0_d / 15.0_d;
  p = p * z + 1.0_d / 13.0_d;
  p = p * z + 1.0_d / 11.0_d;
  p = p * z + 1.0_d / 9.0_d;
  p = p * z + 1.0_d / 7.0_d;
  p = p * z + 1.0_d / 5.0_d;
  p = p * z + 1.0_d / 3.0_d;
  return 2.0_d * (s + s * z * p);
}
inline double logarithm(double x) {
  const ulong bits = as_type<ulong>(x);
  int e = int(bits >> 52) - 1023;
  double m = as_type<double>((bits & 0xfffffffffffff) | 0x3ff0000000000000);
  const bool is_upper = m > 1.4142135623730951_d;
  m = is_upper ? 0.5_d * m : m;
  e = is_upper ? e + 1 : e;
  const double result = double(e) * 0.69314718055994531_d + twice_atanh((m - 1.0_d) / (m + 1.0_d));
  return x == 0.0_d ? -huge : x < 0.0_d ? double(NAN) : x < huge ? result : x;
}
inline double logarithm_of_1_plus(double x) {
  return magnitude(x) < 0.25_d ? twice_atanh(x / (2.0_d + x)) : logarithm(1.0_d + x);
}
inline Wide sine_and_cosine(float angle) {  // the cosine in `real`
  float high, low;
  const int n = __hf::reduce_angle(angle, high, low);
  const double r = double(high) + double(low), z = r * r;
  double s = 1.0_d / 6227020800.0_d;
  s = s * z - 1.0_d / 39916800.0_d;
  s = s * z + 1.0_d / 362880.0_d;
  s = s * z - 1.0_d / 5040.0_d;
  s = s * z + 1.0_d / 120.0_d;
  s = s * z - 1.0_d / 6.0_d;
  s = r + r * z * s;
  double c = -1.0_d / 87178291200.0_d;
  c = c * z + 1.0_d / 479001600.0_d;
  c = c * z - 1.0_d / 3628800.0_d;
  c = c * z + 1.0_d / 40320.0_d;
  c = c * z - 1.0_d / 720.0_d;
  c = c * z + 1.0_d / 24.0_d;
  c = (1.0_d - 0.5_d * z) + z * z * c;
  const double sine = (n & 1) != 0 ? c : s, cosine = (n & 1) != 0 ? s : c;
  return {((n + 1) & 2) != 0 ? -cosine : cosine, angle == 0.0f  ? double(angle)
                                                 : (n & 2) != 0 ? -sine
                                                                : sine};
}
inline double angle_of(double y, double x) {
  const double a = magnitude(x), b = magnitude(y);
  const bool is_steep = b > a;
  const double smaller = is_steep ? a : b, larger = is_steep ? b : a;
  double t = smaller == huge ? 1.0_d : larger == 0.0_d ? 0.0_d : smaller / larger;
  const bool is_far = t > 0.41421356237309503_d;  // tan(pi / 8)
  t = is_far ? (t - 1.0_d) / (t + 1.0_d) : t;
  const double z = t * t;
  double p = 0.0_d;
  for (int k = 14; k > 0; --k) p = (p + (k % 2 != 0 ? -1.0_d : 1.0_d) / double(2 * k + 1)) * z;
  double angle = t + t * p + (is_far ? 0.78539816339744828_d : 0.0_d);
  angle = is_steep ? 1.5707963267948966_d - angle : angle;
  angle = (as_type<ulong>(x) >> 63) != 0 ? 3.1415926535897931_d - angle : angle;
  return signed_as(x != x || y != y ? double(NAN) : angle, y);
}
inline double hyperbolic_sine(double x) {
  const double z = x * x;
  double p = 1.0_d / 362880.0_d;
  p = p * z + 1.0_d / 5040.0_d;
  p = p * z + 1.0_d / 120.0_d;
  p = p * z + 1.0_d / 6.0_d;
  const double e = exponential(magnitude(x));
  return magnitude(x) < 0.35_d ? x + x * z * p : signed_as(0.5_d * (e - 1.0_d / e), x);
}
inline double hyperbolic_cosine(double x) {
  const double e = exponential(magnitude(x));
  return 0.5_d * (e + 1.0_d / e);
}
inline double inverse_hyperbolic_sine(double x) {
  const double a = magnitude(x);
  return signed_as(logarithm_of_1_plus(a + a * a / (1.0_d + root(1.0_d + a * a))), x);
}

// --- Complex numbers in double precision.

inline Wide widened(Complex a) { return {double(a.real), double(a.imag)}; }
inline Complex narrowed(Wide a) { return {float(a.real), float(a.imag)}; }
inline Wide product(Wide a, Wide b) {
  return {a.real * b.real - a.imag * b.imag, a.real * b.imag + a.imag * b.real};
}
inline double modulus(Wide a) {
  const double result = root(a.real * a.real + a.imag * a.imag);
  return magnitude(a.real) == huge || magnitude(a.imag) == huge ? huge : result;
}
inline Wide wide_root(Wide a) {
  const double t = root(0.5_d * (modulus(a) + magnitude(a.real)));
  const double other = t == 0.0_d ? 0.0_d : 0.5_d * magnitude(a.imag) / t;
  const bool is_right = !(a.real < 0.0_d);
  const Wide result = {is_right ? t : other, signed_as(is_right ? other : t, a.imag)};
  return magnitude(a.imag) == huge ? Wide{huge, a.imag} : result;
}
inline Wide wide_logarithm(Wide a) { return {logarithm(modulus(a)), angle_of(a.imag, a.real)}; }
inline Wide wide_logarithm_of_1_plus(Wide a) {
  // log|1 + a| from |1 + a|^2 - 1, which keeps its digits near zero.
  const bool is_small = magnitude(a.real) < 0.5_d && magnitude(a.imag) < 0.5_d;
  const double square = a.real * (a.real + 2.0_d) + a.imag * a.imag;
  const Wide shifted = {1.0_d + a.real, a.imag};
  return {is_small ? 0.5_d * logarithm_of_1_plus(square) : logarithm(modulus(shifted)),
          angle_of(shifted.imag, shifted.real)};
}
// Of a number whose imaginary part is a float.
inline Wide wide_exponential(double real, float imag) {
  const double e = exponential(real);
  const Wide turn = sine_and_cosine(imag);
  return {e * turn.real, imag == 0.0f ? double(imag) : e * turn.imag};
}
// The same for angles up to some millions: what is left of whole turns is a float and its rest.
inline Wide wide_exponential(double real, double imag) {
  const double turns = __builtin_elementwise_rint(imag * 0.15915494309189535_d);
  const double angle = (imag - turns * 6.28125_d) - turns * 1.9353071795864769e-3_d;
  const float high = float(angle);
  const Wide turn = sine_and_cosine(high);
  const double low = angle - double(high), size = exponential(real);
  return {size * (turn.real - low * turn.imag), size * (turn.imag + low * turn.real)};
}
inline Wide wide_quotient(Wide a, Wide b) {
  const double norm = b.real * b.real + b.imag * b.imag;
  return {(a.real * b.real + a.imag * b.imag) / norm, (a.imag * b.real - a.real * b.imag) / norm};
}

// --- The ops.

inline float Abs(Complex a) { return float(modulus(widened(a))); }
inline Complex Negative(Complex a) { return {-a.real, -a.imag}; }
inline Complex Sign(Complex a) {
  const double m = modulus(widened(a));
  return m == 0.0_d ? Complex{0.0f, 0.0f} : narrowed({double(a.real) / m, double(a.imag) / m});
}
inline Complex Floor(Complex a) { return {floor(a.real), floor(a.imag)}; }
inline Complex Ceil(Complex a) { return {ceil(a.real), ceil(a.imag)}; }
inline Complex Trunc(Complex a) { return {trunc(a.real), trunc(a.imag)}; }
inline Complex Round(Complex a) { return {rint(a.real), rint(a.imag)}; }
inline Complex Square(Complex a) {
  return {a.real * a.real - a.imag * a.imag, 2.0f * (a.real * a.imag)};
}
inline Complex Sqrt(Complex a) { return narrowed(wide_root(widened(a))); }
inline Complex Rsqrt(Complex a) {
  return narrowed(wide_quotient({1.0_d, 0.0_d}, wide_root(widened(a))));
}
inline Complex Exp(Complex a) { return narrowed(wide_exponential(double(a.real), a.imag)); }
inline Complex Expm1(Complex a) {
  // e^x cos y - 1 = expm1(x) cos y - 2 sin^2(y / 2).
  const double rest = exponential_less_1(double(a.real));
  const Wide turn = sine_and_cosine(a.imag);
  const double half_sine = sine_and_cosine(0.5f * a.imag).imag;
  const double imag = a.imag == 0.0f ? double(a.imag) : (rest + 1.0_d) * turn.imag;
  return narrowed({rest * turn.real - 2.0_d * half_sine * half_sine, imag});
}
inline constexpr double log2_of_e = 1.4426950408889634_d, log10_of_e = 0.43429448190325182_d;
inline Complex scaled_logarithm(Complex a, double factor) {
  const Wide result = wide_logarithm(widened(a));
  return narrowed({factor * result.real, factor * result.imag});
}
inline Complex Log(Complex a) { return scaled_logarithm(a, 1.0_d); }
inline Complex Log2(Complex a) { return scaled_logarithm(a, log2_of_e); }
inline Complex Log10(Complex a) { return scaled_logarithm(a, log10_of_e); }
inline Complex Log1p(Complex a) { return narrowed(wide_logarithm_of_1_plus(widened(a))); }
inline Complex Sinh(Complex a) {
  const Wide turn = sine_and_cosine(a.imag);
  const double x = double(a.real);
  return narrowed({x == 0.0_d ? x : hyperbolic_sine(x) * turn.real,
                   a.imag == 0.0f ? double(a.imag) : hyperbolic_cosine(x) * turn.imag});
}
inline Complex Cosh(Complex a) {
  const Wide turn = sine_and_cosine(a.imag);
  const double x = double(a.real);
  return narrowed({hyperbolic_cosine(x) * turn.real, a.imag == 0.0f || x == 0.0_d
                                                         ? signed_as(0.0_d, x) * double(a.imag)
                                                         : hyperbolic_sine(x) * turn.imag});
}
// sinh x cosh x / (sinh^2 x + cos^2 y), and sin y cos y over the same.
inline Complex Tanh(Complex a) {
  const Wide turn = sine_and_cosine(a.imag);
  double x = double(a.real);
  x = x > 150.0_d ? 150.0_d : x < -150.0_d ? -150.0_d : x;
  const double s = hyperbolic_sine(x), c = hyperbolic_cosine(x);
  const double norm = s * s + turn.real * turn.real;
  return narrowed({x == 0.0_d ? x : s * c / norm,
                   a.imag == 0.0f ? double(a.imag) : turn.imag * turn.real / norm});
}
// i a and a / i: f(i a) / i makes the other trigonometric functions of these (lowered_steps.cpp).
inline Complex Turn(Complex a) { return {-a.imag, a.real}; }
inline Complex TurnBack(Complex a) { return {a.imag, -a.real}; }
// W. Kahan, "Branch cuts for complex elementary functions" (1987).
inline Complex ArcSin(Complex a) {
  const double x = double(a.real), y = double(a.imag);
  const Wide below = wide_root({1.0_d - x, -y}), above = wide_root({1.0_d + x, y});
  return narrowed({angle_of(x, below.real * above.real - below.imag * above.imag),
                   inverse_hyperbolic_sine(below.real * above.imag - below.imag * above.real)});
}
inline Complex ArcCos(Complex a) {
  const double x = double(a.real), y = double(a.imag);
  const Wide below = wide_root({1.0_d - x, -y}), above = wide_root({1.0_d + x, y});
  return narrowed({2.0_d * angle_of(below.real, above.real),
                   inverse_hyperbolic_sine(above.real * below.imag - above.imag * below.real)});
}
inline Complex ArcCosh(Complex a) {
  const double x = double(a.real), y = double(a.imag);
  const Wide below = wide_root({x - 1.0_d, y}), above = wide_root({x + 1.0_d, y});
  return narrowed({inverse_hyperbolic_sine(below.real * above.real + below.imag * above.imag),
                   2.0_d * angle_of(below.imag, above.real)});
}
inline Complex ArcTanh(Complex a) {
  const double x = double(a.real), y = double(a.imag), m = magnitude(x);
  const double near = (1.0_d - m) * (1.0_d - m) + y * y;
  return narrowed({signed_as(0.25_d * logarithm_of_1_plus(4.0_d * m / near), x),
                   0.5_d * angle_of(2.0_d * y, (1.0_d - x) * (1.0_d + x) - y * y)});
}
// From the exponential of the side that decays: no overflow.
inline Complex Sigmoid(Complex a) {
  const Wide e = wide_exponential(-magnitude(double(a.real)), a.real < 0.0f ? a.imag : -a.imag);
  return narrowed(
      wide_quotient(a.real < 0.0f ? e : Wide{1.0_d, 0.0_d}, Wide{1.0_d + e.real, e.imag}));
}
inline uint IsNaN(Complex a) { return uint(a.real != a.real || a.imag != a.imag); }
inline uint IsInf(Complex a) { return IsInf(a.real) | IsInf(a.imag); }
inline uint IsFinite(Complex a) { return IsFinite(a.real) & IsFinite(a.imag); }
inline float Real(Complex a) { return a.real; }
inline float Imag(Complex a) { return a.imag; }
inline Complex Conjugate(Complex a) { return {a.real, -a.imag}; }

inline Complex Add(Complex a, Complex b) { return {a.real + b.real, a.imag + b.imag}; }
inline Complex Subtract(Complex a, Complex b) { return {a.real - b.real, a.imag - b.imag}; }
inline Complex Multiply(Complex a, Complex b) {
  return {a.real * b.real - a.imag * b.imag, a.real * b.imag + a.imag * b.real};
}
// As in C, a finite number by an infinity is zero, and by zero it is an infinity.
inline Complex Divide(Complex a, Complex b) {
  const bool infinite = (IsInf(b.real) | IsInf(b.imag)) != 0;
  const float unit_real = copysign(IsInf(b.real) != 0 ? 1.0f : 0.0f, b.real);
  const float unit_imag = copysign(IsInf(b.imag) != 0 ? 1.0f : 0.0f, b.imag);
  double real = double(infinite ? unit_real : b.real);
  const double imag = double(infinite ? unit_imag : b.imag), scale = infinite ? 0.0_d : 1.0_d;
  const double norm = real * real + imag * imag;
  real = norm == 0.0_d ? double(copysign(1.0f, b.real)) : real;
  return narrowed({scale * ((double(a.real) * real + double(a.imag) * imag) / norm),
                   scale * ((double(a.imag) * real - double(a.real) * imag) / norm)});
}
inline Complex Remainder(Complex a, Complex b) {
  return {a.real - b.real * floor(a.real / b.real), a.imag - b.imag * floor(a.imag / b.imag)};
}
// 0 to the power of 0 is 1, to a power with a positive real part 0, to other powers NaN.
inline Complex Power(Complex a, Complex b) {
  const Wide e = product(widened(b), wide_logarithm(widened(a)));
  const Complex result = narrowed(wide_exponential(e.real, e.imag));
  const float nothing = b.real > 0.0f ? 0.0f : NAN;
  if (b.real == 0.0f && b.imag == 0.0f) return {1.0f, 0.0f};
  return a.real == 0.0f && a.imag == 0.0f ? Complex{nothing, nothing} : result;
}
// Complex numbers are ordered by their real parts, then by their imaginary parts.
inline uint Equal(Complex a, Complex b) { return uint(a.real == b.real && a.imag == b.imag); }
inline uint NotEqual(Complex a, Complex b) { return uint(a.real != b.real || a.imag != b.imag); }
inline uint Less(Complex a, Complex b) {
  return uint(a.real < b.real || (a.real == b.real && a.imag < b.imag));
}
inline uint LessEqual(Complex a, Complex b) {
  return uint(a.real < b.real || (a.real == b.real && a.imag <= b.imag));
}
inline Complex Maximum(Complex a, Complex b) {
  return (Less(b, a) != 0 && IsNaN(b) == 0) || IsNaN(a) != 0 ? a : b;
}
inline Complex Minimum(Complex a, Complex b) {
  return (Less(a, b) != 0 && IsNaN(b) == 0) || IsNaN(a) != 0 ? a : b;
}
// The branch is that of the operand with the larger real part.
inline Complex LogAddExp(Complex a, Complex b) {
  const bool is_first = a.real > b.real || (a.real == b.real && a.imag >= b.imag);
  const Complex large = is_first ? a : b, small = is_first ? b : a;
  if (IsNaN(a) != 0) return a;
  if (IsNaN(b) != 0) return b;
  if ((IsInf(small.real) | IsInf(large.real)) != 0) return large;
  const Wide e = product(wide_exponential(double(small.real) - double(large.real), small.imag),
                         wide_exponential(0.0_d, -large.imag));
  const Wide rest = wide_logarithm_of_1_plus(e);
  return narrowed({double(large.real) + rest.real, double(large.imag) + rest.imag});
}

inline Complex ToComplex(float a) { return {a, 0.0f}; }
inline uint ToBool(Complex a) { return uint(a.real != 0.0f || a.imag != 0.0f); }
