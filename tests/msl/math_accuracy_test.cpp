// How far the functions of floats in our metal_stdlib are from the truth, in units in the last
// place. The headers are compiled as plain C++ here; the truth is libm's function of doubles.
#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cfenv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>

#include "msl/include/holdfast/math_exact.h"

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float largest = std::numeric_limits<float>::max();
constexpr float smallest = std::numeric_limits<float>::denorm_min();

// The distance of `value` from `truth` in steps of floats around `truth`; 0 when both are NaN, or
// the same infinity.
double ulps(float value, double truth) {
  if (std::isnan(truth)) return std::isnan(value) ? 0 : infinity;
  float rounded = static_cast<float>(truth);
  if (std::isinf(rounded))
    return value == rounded || (std::isinf(truth) ? false : std::abs(value) == largest) ? 0
                                                                                        : infinity;
  if (!std::isfinite(value)) return std::abs(truth) > largest ? 0 : infinity;
  int exponent = std::max(std::ilogb(rounded), -126);
  if (rounded == 0) exponent = -126;
  return std::abs(static_cast<double>(value) - truth) / std::ldexp(1.0, exponent - 23);
}

struct Worst {
  double error = 0;
  float x = 0, y = 0;
  void see(double e, float at, float and_at = 0) {
    if (e > error) *this = {e, at, and_at};
  }
};

// Floats in order: an integer for each, from -infinity to infinity.
int32_t order(float x) {
  int32_t bits = std::bit_cast<int32_t>(x);
  return bits >= 0 ? bits : std::numeric_limits<int32_t>::min() - bits;
}
float from_order(int32_t k) {
  return std::bit_cast<float>(k >= 0 ? k : std::numeric_limits<int32_t>::min() - k);
}

// Every `step`th float of [low, high], and the ends.
template <class Function, class Truth>
Worst sweep(Function function, Truth truth, float low, float high, int64_t step = 997) {
  Worst worst;
  for (int64_t k = order(low); k <= order(high); k += step) {
    float x = from_order(static_cast<int32_t>(k));
    worst.see(ulps(function(x), truth(static_cast<double>(x))), x);
  }
  worst.see(ulps(function(high), truth(static_cast<double>(high))), high);
  return worst;
}

void report(const char* name, Worst worst, double bound) {
  MESSAGE(std::string(name), ": ", worst.error, " ulp at ", worst.x, " ", worst.y);
  CHECK_MESSAGE(worst.error <= bound, std::string(name));
}

#define SWEEP(name, low, high, bound)                                                             \
  report(#name,                                                                                   \
         sweep([](float x) { return __hf::name(x); }, [](double x) { return std::name(x); }, low, \
               high),                                                                             \
         bound)
#define SWEEP_FAST(name, low, high, bound)                                                         \
  report("fast::" #name,                                                                           \
         sweep([](float x) { return __hf::fast::name(x); }, [](double x) { return std::name(x); }, \
               low, high),                                                                         \
         bound)

double exp10_of(double x) { return std::pow(10.0, x); }

TEST_CASE("msl math: exponentials and logarithms are within two units in the last place") {
  SWEEP(exp, -infinity, infinity, 1.5);
  SWEEP(exp2, -infinity, infinity, 1.5);
  report("exp10", sweep([](float x) { return __hf::exp10(x); }, exp10_of, -infinity, infinity), 2);
  SWEEP(log, -1.0f, infinity, 1.5);
  SWEEP(log2, -1.0f, infinity, 2);
  SWEEP(log10, -1.0f, infinity, 2);
  SWEEP(log1p, -2.0f, infinity, 2);
}

TEST_CASE("msl math: hyperbolic functions") {
  SWEEP(tanh, -infinity, infinity, 2);
  SWEEP(sinh, -infinity, infinity, 2);
  SWEEP(cosh, -infinity, infinity, 2);
  SWEEP(asinh, -infinity, infinity, 2);
  SWEEP(acosh, 0.0f, infinity, 2);
  SWEEP(atanh, -1.5f, 1.5f, 2);
}

TEST_CASE("msl math: trigonometric functions, up to the largest angles") {
  SWEEP(sin, -infinity, infinity, 2);
  SWEEP(cos, -infinity, infinity, 2);
  SWEEP(tan, -infinity, infinity, 2);
  SWEEP(asin, -1.5f, 1.5f, 2);
  SWEEP(acos, -1.5f, 1.5f, 2);
  SWEEP(atan, -infinity, infinity, 2);
  // Exact at multiples of a quarter turn, and no cancellation elsewhere.
  auto sin_of_pi = [](double x) {
    double r = std::remainder(x, 2.0);
    r = r > 0.5 ? 1.0 - r : r < -0.5 ? -1.0 - r : r;
    return std::sin(M_PI * r);
  };
  auto cos_of_pi = [](double x) {
    return std::sin(M_PI * (0.5 - std::abs(std::remainder(x, 2.0))));
  };
  auto tan_of_pi = [=](double x) { return sin_of_pi(x) / cos_of_pi(x); };
  report("sinpi", sweep([](float x) { return __hf::sinpi(x); }, sin_of_pi, -8388607.5f, 8388607.5f),
         4);
  report("cospi", sweep([](float x) { return __hf::cospi(x); }, cos_of_pi, -8388607.5f, 8388607.5f),
         4);
  report("tanpi", sweep([](float x) { return __hf::tanpi(x); }, tan_of_pi, -0.49f, 0.49f), 2);
}

TEST_CASE("msl math: pow and atan2") {
  Worst pow, atan2;
  uint64_t state = 7;
  auto random = [&state](float low, float high) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return low + (high - low) * static_cast<float>(state >> 40) * 0x1p-24f;
  };
  for (int i = 0; i < 1000000; ++i) {
    float x = std::exp(random(-80, 80)), y = random(-88, 88) / std::log(x);
    pow.see(ulps(__hf::pow(x, y), std::pow(static_cast<double>(x), y)), x, y);
    x = random(0.9f, 1.1f), y = random(-1000, 1000);
    pow.see(ulps(__hf::pow(x, y), std::pow(static_cast<double>(x), y)), x, y);
    x = random(-20, 20), y = std::round(random(-20, 20));
    pow.see(ulps(__hf::pow(x, y), std::pow(static_cast<double>(x), y)), x, y);
    x = random(-4, 4), y = random(-4, 4);
    atan2.see(ulps(__hf::atan2(y, x), std::atan2(static_cast<double>(y), x)), x, y);
  }
  report("pow", pow, 2);
  report("atan2", atan2, 2);
}

TEST_CASE("msl math: the values at limits are exactly C's") {
  const float values[] = {0.0f,    -0.0f,    1.0f,        -1.0f,        2.0f,     -2.0f,
                          3.0f,    -3.0f,    0.5f,        -0.5f,        1.5f,     -2.5f,
                          0x1p24f, -0x1p24f, 16777215.0f, -16777215.0f, infinity, -infinity,
                          NAN,     largest,  -largest,    smallest,     -smallest};
  auto same = [](float a, float b) {
    return (std::isnan(a) && std::isnan(b)) ||
           std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b);
  };
  for (float x : values)
    for (float y : values) {
      INFO("x = ", x, ", y = ", y);
      CHECK(ulps(__hf::pow(x, y), std::pow(static_cast<double>(x), y)) <= 1.0);
      CHECK(std::signbit(__hf::pow(x, y)) ==
            std::signbit(std::isnan(std::pow(x, y)) ? __hf::pow(x, y) : std::pow(x, y)));
      CHECK(ulps(__hf::atan2(x, y), std::atan2(static_cast<double>(x), y)) <= 1.5);
      if (!std::isnan(x) && !std::isnan(y))
        CHECK(std::signbit(__hf::atan2(x, y)) == std::signbit(x));
    }
  for (float zero : {0.0f, -0.0f}) {
    CHECK(same(__hf::sin(zero), zero));
    CHECK(same(__hf::tan(zero), zero));
    CHECK(same(__hf::asin(zero), zero));
    CHECK(same(__hf::atan(zero), zero));
    CHECK(same(__hf::sinh(zero), zero));
    CHECK(same(__hf::tanh(zero), zero));
    CHECK(same(__hf::asinh(zero), zero));
    CHECK(same(__hf::atanh(zero), zero));
    CHECK(same(__hf::log1p(zero), zero));
    CHECK(same(__hf::sinpi(zero), zero));
    CHECK(same(__hf::log(zero), -infinity));
  }
  CHECK(same(__hf::exp(-infinity), 0.0f));
  CHECK(same(__hf::exp(0.0f), 1.0f));
  CHECK(same(__hf::exp2(10.0f), 1024.0f));
  CHECK(same(__hf::exp2(-149.0f), smallest));
  CHECK(same(__hf::log(1.0f), 0.0f));
  CHECK(same(__hf::log2(8.0f), 3.0f));
  CHECK(same(__hf::cospi(0.5f), 0.0f));
  CHECK(same(__hf::sinpi(3.0f), 0.0f));
  CHECK(same(__hf::sinpi(0x1p23f + 1), 0.0f));
  CHECK(same(__hf::cospi(0x1p23f + 1), -1.0f));
  CHECK(same(__hf::sinpi(4194304.5f), 1.0f));
}

TEST_CASE("msl math: fmod, ldexp, frexp, nextafter and fract are exact") {
  auto same = [](float a, float b) {
    return (std::isnan(a) && std::isnan(b)) ||
           std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b);
  };
  uint64_t state = 11;
  auto random_bits = [&state] {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<uint32_t>(state >> 32);
  };
  const float values[] = {0.0f, -0.0f,   1.0f,     -1.5f,    3.0f,      infinity,        -infinity,
                          NAN,  largest, -largest, smallest, 0x1p-126f, 0x1.fffffep-127f};
  int wrong = 0;
  auto check = [&](float x, float y, int k) {
    int exponent = 0, expected_exponent = 0;
    wrong += !same(__hf::fmod(x, y), std::fmod(x, y));
    wrong += !same(__hf::ldexp(x, k), std::ldexp(x, k));
    wrong += !same(__hf::nextafter(x, y), std::nextafter(x, y));
    wrong += !same(__hf::fdim(x, y), std::fdim(x, y));
    wrong += !same(__hf::frexp(x, exponent), std::frexp(x, &expected_exponent));
    if (std::isfinite(x)) wrong += exponent != expected_exponent;
    wrong += std::isfinite(x) && !(__hf::fract(x) >= 0.0f && __hf::fract(x) < 1.0f);
    if (wrong > 0) FAIL("x = ", x, ", y = ", y, ", k = ", k);
  };
  for (float x : values)
    for (float y : values)
      for (int k : {0, 1, -1, 127, 128, 300, 1000, -126, -127, -149, -150, -300, -1000})
        check(x, y, k);
  for (int i = 0; i < 500000; ++i) {
    float x = std::bit_cast<float>(random_bits()), y = std::bit_cast<float>(random_bits());
    check(x, y, static_cast<int>(random_bits() % 601) - 300);
    // Quotients of every size.
    float close = std::ldexp(x, -static_cast<int>(random_bits() % 40));
    check(x, close * 1.37f, 0);
  }
  CHECK(__hf::ilogb(0.0f) == std::numeric_limits<int>::min());
  CHECK(__hf::ilogb(8.5f) == 3);
  CHECK(__hf::ilogb(smallest) == -149);
  CHECK(__hf::ilogb(-infinity) == std::numeric_limits<int>::max());
}

TEST_CASE("msl math: fast functions are close where they are used, and right at infinity") {
  SWEEP_FAST(exp, -86.9f, 88.7f, 4);
  SWEEP_FAST(exp2, -125.0f, 127.9f, 4);
  SWEEP_FAST(log, 2.0f, largest, 4);
  SWEEP_FAST(log2, 2.0f, largest, 4);
  SWEEP_FAST(log10, 2.0f, largest, 4);
  auto absolute_error = [](auto function, auto truth, float bound) {
    double worst = 0;
    for (float x = -bound; x <= bound; x += 0.001f)
      worst = std::max(worst, std::abs(function(x) - truth(static_cast<double>(x))));
    return worst;
  };
  CHECK(absolute_error([](float x) { return __hf::fast::sin(x); },
                       [](double x) { return std::sin(x); }, 1000) < 1e-6);
  CHECK(absolute_error([](float x) { return __hf::fast::cos(x); },
                       [](double x) { return std::cos(x); }, 1000) < 1e-6);
  CHECK(__hf::fast::exp(-infinity) == 0.0f);
  CHECK(__hf::fast::exp(infinity) == infinity);
  CHECK(__hf::fast::exp2(-infinity) == 0.0f);
  CHECK(__hf::fast::exp2(infinity) == infinity);
  CHECK(std::isnan(__hf::fast::exp(NAN)));
  CHECK(__hf::fast::log(0.0f) == -infinity);
  CHECK(__hf::fast::log(infinity) == infinity);
  CHECK(std::isnan(__hf::fast::log(-1.0f)));
  CHECK(__hf::fast::pow(2.0f, 10.0f) == doctest::Approx(1024.0f));
  CHECK(__hf::fast::pow(-2.0f, 3.0f) == doctest::Approx(-8.0f));
  CHECK(__hf::fast::pow(0.0f, 2.0f) == 0.0f);
}

}  // namespace
