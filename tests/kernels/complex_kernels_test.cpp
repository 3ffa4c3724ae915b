// The element-wise block kernels of the c64 lane: within a few roundings of the exact value,
// measured by its modulus; order, predicates and special operands.
#include <cfloat>
#include <complex>

#include "elementwise_test_support.h"

using namespace holdfast;
using namespace holdfast::kernels;
using namespace holdfast::kernels::cpu;
using namespace holdfast::kernels::cpu::test;

namespace {

using LongComplex = std::complex<Long>;
using Single = std::complex<float>;

LongComplex sigmoid_of(LongComplex z) { return Long(1) / (Long(1) + std::exp(-z)); }

struct ComplexFunction {
  Op op;
  LongComplex (*reference)(LongComplex);
};

const ComplexFunction complex_functions[] = {
    {Op::Negative, [](LongComplex z) { return -z; }},
    {Op::Sign, [](LongComplex z) { return z / std::abs(z); }},
    {Op::Square, [](LongComplex z) { return z * z; }},
    {Op::Sqrt, [](LongComplex z) { return std::sqrt(z); }},
    {Op::Rsqrt, [](LongComplex z) { return Long(1) / std::sqrt(z); }},
    {Op::Exp, [](LongComplex z) { return std::exp(z); }},
    {Op::Expm1, [](LongComplex z) { return std::exp(z) - Long(1); }},
    {Op::Log, [](LongComplex z) { return std::log(z); }},
    {Op::Log2, [](LongComplex z) { return std::log(z) / std::log(Long(2)); }},
    {Op::Log10, [](LongComplex z) { return std::log10(z); }},
    {Op::Log1p, [](LongComplex z) { return std::log(Long(1) + z); }},
    {Op::Sin, [](LongComplex z) { return std::sin(z); }},
    {Op::Cos, [](LongComplex z) { return std::cos(z); }},
    {Op::Tan, [](LongComplex z) { return std::tan(z); }},
    {Op::ArcSin, [](LongComplex z) { return std::asin(z); }},
    {Op::ArcCos, [](LongComplex z) { return std::acos(z); }},
    {Op::ArcTan, [](LongComplex z) { return std::atan(z); }},
    {Op::Sinh, [](LongComplex z) { return std::sinh(z); }},
    {Op::Cosh, [](LongComplex z) { return std::cosh(z); }},
    {Op::Tanh, [](LongComplex z) { return std::tanh(z); }},
    {Op::ArcSinh, [](LongComplex z) { return std::asinh(z); }},
    {Op::ArcCosh, [](LongComplex z) { return std::acosh(z); }},
    {Op::ArcTanh, [](LongComplex z) { return std::atanh(z); }},
    {Op::Sigmoid, sigmoid_of},
    {Op::Conjugate, [](LongComplex z) { return std::conj(z); }},
    {Op::Round,
     [](LongComplex z) { return LongComplex(std::nearbyint(z.real()), std::nearbyint(z.imag())); }},
};

struct ComplexPairFunction {
  Op op;
  LongComplex (*reference)(LongComplex, LongComplex);
};

LongComplex part_remainder(LongComplex a, LongComplex b) {
  auto part = [](float x, float y) { return static_cast<Long>(x - y * std::floor(x / y)); };
  return {part(float(a.real()), float(b.real())), part(float(a.imag()), float(b.imag()))};
}
bool is_below(LongComplex a, LongComplex b) {
  return a.real() < b.real() || (a.real() == b.real() && a.imag() < b.imag());
}

const ComplexPairFunction complex_pair_functions[] = {
    {Op::Add, [](LongComplex a, LongComplex b) { return a + b; }},
    {Op::Subtract, [](LongComplex a, LongComplex b) { return a - b; }},
    {Op::Multiply, [](LongComplex a, LongComplex b) { return a * b; }},
    {Op::Divide, [](LongComplex a, LongComplex b) { return a / b; }},
    {Op::Remainder, part_remainder},
    {Op::Power, [](LongComplex a, LongComplex b) { return std::pow(a, b); }},
    {Op::Maximum, [](LongComplex a, LongComplex b) { return is_below(a, b) ? b : a; }},
    {Op::Minimum, [](LongComplex a, LongComplex b) { return is_below(b, a) ? b : a; }},
    {Op::LogAddExp,
     [](LongComplex a, LongComplex b) {
       LongComplex larger = is_below(a, b) ? b : a, other = is_below(a, b) ? a : b;
       return larger + std::log(Long(1) + std::exp(other - larger));
     }},
};

std::vector<Single> complex_operands(int count) {
  std::vector<Single> values;
  std::mt19937_64 random(5);
  std::uniform_real_distribution<float> unit(-4, 4);
  for (int i = 0; i < count; ++i) {
    float real = unit(random), imag = unit(random);
    values.push_back(i % 4 == 3 ? Single(real * 0.01f, imag * 0.01f) : Single(real, imag));
  }
  return values;
}

double complex_distance(Single got, LongComplex exact) {
  LongComplex difference(got.real() - exact.real(), got.imag() - exact.imag());
  return static_cast<double>(std::abs(difference) / (std::abs(exact) * FLT_EPSILON + FLT_MIN));
}

Single complex_unary(Op op, Single z) {
  return run_unary<Single>(op, Lane::c64, std::vector<Single>{z})[0];
}
Single complex_binary(Op op, Single a, Single b) {
  return run_binary<Single>(op, Lane::c64, std::vector<Single>{a}, std::vector<Single>{b})[0];
}

}  // namespace

TEST_CASE("complex functions") {
  for_each_instruction_set([] {
    std::vector<Single> a = complex_operands(600);
    for (const ComplexFunction& function : complex_functions) {
      auto out = run_unary<Single>(function.op, Lane::c64, a);
      double worst = 0;
      for (size_t i = 0; i < a.size(); ++i) {
        worst = std::max(worst, complex_distance(out[i], function.reference(LongComplex(a[i]))));
      }
      INFO(name_of(function.op));
      CHECK(worst <= 2);
    }
    auto [left, right] = all_pairs(complex_operands(60));
    for (const ComplexPairFunction& function : complex_pair_functions) {
      auto out = run_binary<Single>(function.op, Lane::c64, left, right);
      double worst = 0;
      for (size_t i = 0; i < left.size(); ++i) {
        LongComplex x(left[i]), y(right[i]);
        worst = std::max(worst, complex_distance(out[i], function.reference(x, y)));
      }
      INFO(name_of(function.op));
      CHECK(worst <= 2);
    }
    auto modulus = run_unary<float>(Op::Abs, Lane::c64, a);
    auto real = run_unary<float>(Op::Real, Lane::c64, a);
    auto imag = run_unary<float>(Op::Imag, Lane::c64, a);
    for (size_t i = 0; i < a.size(); ++i) {
      CHECK(ulps(modulus[i], std::abs(LongComplex(a[i]))) <= 0.51);
      CHECK(real[i] == a[i].real());
      CHECK(imag[i] == a[i].imag());
    }
  });
}

TEST_CASE("complex predicates and order") {
  for_each_instruction_set([] {
    float inf = INFINITY, nan = NAN;
    std::vector<Single> values = {{0, 0},    {1, 2},   {1, 3},   {2, -1},   {inf, 0},
                                  {0, -inf}, {nan, 1}, {1, nan}, {nan, inf}};
    auto is_nan = run_unary<uint8_t>(Op::IsNaN, Lane::c64, values);
    auto is_inf = run_unary<uint8_t>(Op::IsInf, Lane::c64, values);
    auto is_finite = run_unary<uint8_t>(Op::IsFinite, Lane::c64, values);
    CHECK(is_nan == std::vector<uint8_t>{0, 0, 0, 0, 0, 0, 1, 1, 1});
    CHECK(is_inf == std::vector<uint8_t>{0, 0, 0, 0, 1, 1, 0, 0, 1});
    CHECK(is_finite == std::vector<uint8_t>{1, 1, 1, 1, 0, 0, 0, 0, 0});
    auto [a, b] = all_pairs(std::vector<Single>(values.begin(), values.begin() + 6));
    for (Op op :
         {Op::Equal, Op::NotEqual, Op::Greater, Op::GreaterEqual, Op::Less, Op::LessEqual}) {
      auto out = run_binary<uint8_t>(op, Lane::c64, a, b);
      for (size_t i = 0; i < a.size(); ++i) {
        complex64_t x(a[i]), y(b[i]);
        bool expected = op == Op::Equal          ? a[i] == b[i]
                        : op == Op::NotEqual     ? a[i] != b[i]
                        : op == Op::Greater      ? x > y
                        : op == Op::GreaterEqual ? x >= y
                        : op == Op::Less         ? x < y
                                                 : x <= y;
        CHECK(out[i] == expected);
      }
    }
  });
}

TEST_CASE("complex: extreme and special operands") {
  for_each_instruction_set([] {
    float inf = INFINITY, nan = NAN;
    auto modulus = [](Single z) {
      return run_unary<float>(Op::Abs, Lane::c64, std::vector<Single>{z})[0];
    };
    CHECK(modulus({3e38f, 4e37f}) == doctest::Approx(3.02655e38f));
    CHECK(modulus({3e-40f, 4e-40f}) == doctest::Approx(5e-40f));
    CHECK(modulus({nan, -inf}) == inf);
    CHECK(std::isnan(modulus({nan, 1})));
    CHECK(complex_unary(Op::Sign, {0, 0}) == Single(0, 0));
    CHECK(complex_unary(Op::Sigmoid, {-1000, 1}) == Single(0, 0));
    CHECK(complex_unary(Op::Sigmoid, {1000, 1}).real() == 1);
    CHECK(complex_binary(Op::Divide, {1e38f, 1e38f}, {1e38f, 1e38f}) == Single(1, 0));
    CHECK(complex_binary(Op::Divide, {1, 1}, {inf, 0}) == Single(0, 0));
    CHECK(complex_binary(Op::Divide, {1, 1}, {nan, inf}) == Single(0, 0));
    CHECK(std::isinf(complex_binary(Op::Divide, {1, 1}, {0, 0}).real()));
    CHECK(complex_binary(Op::Power, {0, 0}, {0, 0}) == Single(1, 0));
    CHECK(complex_binary(Op::Power, {0, 0}, {2, 1}) == Single(0, 0));
    CHECK(std::isnan(complex_binary(Op::Power, {0, 0}, {-1, 0}).real()));
    CHECK(std::isnan(complex_binary(Op::Maximum, {1, nan}, {9, 9}).imag()));
    CHECK(std::isnan(complex_binary(Op::Maximum, {9, 9}, {1, nan}).imag()));
    CHECK(std::isnan(complex_binary(Op::Minimum, {0, 0}, {nan, 1}).real()));
    CHECK(complex_binary(Op::LogAddExp, {-inf, 0}, {2, 1}) == Single(2, 1));
    // Near zero, where the plain formulas would lose all digits.
    Single small(1e-6f, 1e-6f);
    CHECK(complex_distance(complex_unary(Op::Expm1, small),
                           LongComplex(small) + LongComplex(small) * LongComplex(small) / Long(2)) <
          2);
    CHECK(complex_distance(complex_unary(Op::Log1p, small),
                           LongComplex(small) - LongComplex(small) * LongComplex(small) / Long(2)) <
          2);
  });
}
