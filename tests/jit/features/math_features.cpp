// Functions of numbers. C++ computes in double; how far the result may be is said by each row.
#include <bit>
#include <cmath>
#include <limits>

#include <holdfast/types.h>

#include "jit/features/feature.h"

namespace holdfast::jit::testing {
namespace {

const std::string at = "uint i = thread_position_in_grid.x; float v = x[i], w = x[i + 1];\n";
constexpr double accurate = 2;  // what metal_stdlib promises; see tests/msl/math_accuracy_test.cpp
constexpr double half_step = 8192, bfloat_step = 65536;  // of a float

// Numbers, and those that are special.
Argument samples(float low, float high) {
  Argument x = floats("x", {128}, low, high);
  auto* v = reinterpret_cast<float*>(x.bytes.data());
  const float inf = std::numeric_limits<float>::infinity();
  const float special[] = {0.0f, -0.0f, inf, -inf, std::nanf(""), 1.0f, -1.0f, 0.5f};
  for (size_t k = 0; k < std::size(special); ++k) v[3 + 7 * k] = special[k];
  return x;
}

using Function = std::function<double(double, double)>;  // of x[i] and x[i + 1]

Feature math(const char* name, const std::string& expression, Function truth, double ulp = accurate,
             float low = -20, float high = 20) {
  return {name,
          at + "y[i] = " + expression + ";",
          {samples(low, high)},
          {zeros("y", float32)},
          [truth](Arrays& a) {
            for (size_t i = 0; i < threads; ++i)
              a.out()[i] = static_cast<float>(truth(a.in()[i], a.in()[i + 1]));
          },
          {100, 1, 1},
          {64, 1, 1},
          {},
          {},
          ulp};
}

// Functions of integers: value(a, b) in C++.
template <class Value>
Feature integer(const char* name, const std::string& expression, Value value) {
  return {
      name,
      "uint i = thread_position_in_grid.x; int v = x[i], w = x[i + 1];\ny[i] = " + expression + ";",
      {integers("x", int32, {101}, -1000, 1000)},
      {zeros("y", int32)},
      [value](Arrays& a) {
        for (size_t i = 0; i < threads; ++i)
          a.out<int32_t>()[i] =
              static_cast<int32_t>(value(a.in<int32_t>()[i], a.in<int32_t>()[i + 1]));
      }};
}

double clamped(double v, double low, double high) { return std::fmin(std::fmax(v, low), high); }
double half_of(double v) {
  return static_cast<double>(static_cast<float>(static_cast<_Float16>(static_cast<float>(v))));
}
double bfloat_of(double v) {
  return static_cast<double>(static_cast<float>(bfloat16_t(static_cast<float>(v))));
}

}  // namespace

Section math_features() {
  return {
      "Math",
      {
          math("exp", "exp(v)", [](double v, double) { return std::exp(v); }),
          math(
              "max", "max(v, w)", [](double v, double w) { return std::fmax(v, w); }, 0),
          math(
              "abs", "abs(v)", [](double v, double) { return std::fabs(v); }, 0),
          math(
              "tanh", "tanh(v)", [](double v, double) { return std::tanh(v); }, accurate, -4, 4),
          math(
              "min", "min(v, w)", [](double v, double w) { return std::fmin(v, w); }, 0),
          math(
              "rsqrt", "rsqrt(v)", [](double v, double) { return 1 / std::sqrt(v); }, accurate, 0,
              100),
          {"fma",
           at + "y[i] = fma(v, w, 0.1);",
           {samples(-2, 2)},
           {zeros("y", float32)},
           [](Arrays& a) {
             for (size_t i = 0; i < threads; ++i)
               a.out()[i] = std::fma(a.in()[i], a.in()[i + 1], 0.1f);
           }},
          math(
              "rint: halves to even", "rint(v * 0.5)",
              [](double v, double) { return std::nearbyint(v * 0.5); }, 0),
          math(
              "sqrt", "sqrt(v)", [](double v, double) { return std::sqrt(v); }, 0, 0, 100),
          {"dot",
           at + "y[i] = dot(float3(v, w, 2), float3(w, 1, v)) + float(dot(float2(v, 1), float2(2, "
                "w)));",
           {floats("x", {128})},
           {zeros("y", float32)},
           [](Arrays& a) {
             for (size_t i = 0; i < threads; ++i) {
               const float v = a.in()[i], w = a.in()[i + 1];
               a.out()[i] = (v * w + w * 1 + 2 * v) + (v * 2 + 1 * w);
             }
           },
           {100, 1, 1},
           {64, 1, 1},
           {},
           {},
           4},
          math(
              "clamp", "clamp(v, -1.0, 3.0)", [](double v, double) { return clamped(v, -1, 3); },
              0),
          math(
              "log", "log(v)", [](double v, double) { return std::log(v); }, accurate, 0, 100),
          math(
              "pow", "pow(v, w)", [](double v, double w) { return std::pow(v, w); }, accurate, 0,
              8),
          math(
              "ldexp", "ldexp(v, int(i % 9) - 4) * 0 + ldexp(v, 3)",
              [](double v, double) { return v * 0 + std::ldexp(v, 3); }, 0),
          math(
              "floor", "floor(v)", [](double v, double) { return std::floor(v); }, 0),
          math(
              "copysign", "copysign(v, w)", [](double v, double w) { return std::copysign(v, w); },
              0),
          math(
              "fmax, fmin", "fmax(v, w) - fmin(v, 3.0)",
              [](double v, double w) {
                return static_cast<float>(std::fmax(v, w)) - static_cast<float>(std::fmin(v, 3));
              },
              0),
          math(
              "select", "select(v, w, v < w)", [](double v, double w) { return v < w ? w : v; }, 0),
          math(
              "sin", "sin(v)", [](double v, double) { return std::sin(v); }, accurate, -100, 100),
          math(
              "cos", "cos(v)", [](double v, double) { return std::cos(v); }, accurate, -100, 100),
          math(
              "isinf", "isinf(v) ? 1 : 0", [](double v, double) { return std::isinf(v); }, 0),
          math(
              "isnan", "isnan(v) ? 1 : 0", [](double v, double) { return std::isnan(v); }, 0),
          math(
              "fabs", "fabs(v)", [](double v, double) { return std::fabs(v); }, 0),
          {"cross",
           at + "float3 c = cross(float3(v, w, 2), float3(1, v, w)); y[i] = c.x + 2 * c.y + 3 * "
                "c.z;",
           {floats("x", {128})},
           {zeros("y", float32)},
           [](Arrays& a) {
             for (size_t i = 0; i < threads; ++i) {
               const float v = a.in()[i], w = a.in()[i + 1];
               a.out()[i] = (w * w - 2 * v) + 2 * (2 * 1 - v * w) + 3 * (v * v - w * 1);
             }
           }},
          math(
              "any, all", "(any(float2(v, w) > 10.0) ? 1 : 0) + (all(float2(v, w) > 0.0) ? 2 : 0)",
              [](double v, double w) {
                return (v > 10 || w > 10 ? 1 : 0) + (v > 0 && w > 0 ? 2 : 0);
              },
              0),
          math(
              "isfinite, isnormal, signbit",
              "(isfinite(v) ? 1 : 0) + (isnormal(v) ? 2 : 0) + (isnan(v) ? 0 : signbit(v) ? 4 : 0)",
              [](double v, double) {
                return std::isfinite(v) + 2 * std::isnormal(v) +
                       (std::isnan(v) ? 0 : 4 * std::signbit(v));
              },
              0),
          math("exp2", "exp2(v)", [](double v, double) { return std::exp2(v); }),
          math(
              "length", "length(float2(v, w))",
              [](double v, double w) { return std::sqrt(v * v + w * w); }, 4, -2, 2),
          math(
              "distance, normalize",
              "distance(float2(v, 1), float2(1, w)) + normalize(float2(3, 4)).y",
              [](double v, double w) {
                return std::sqrt((v - 1) * (v - 1) + (1 - w) * (1 - w)) + 0.8;
              },
              8, -2, 2),
          math(
              "round: halves away from zero", "round(v * 0.5)",
              [](double v, double) { return std::round(v * 0.5); }, 0),
          math(
              "frexp, modf",
              "0; int e; float m = frexp(v, e); float whole; float rest = modf(v, whole); y[i] = "
              "isfinite(v) ? m * 4 + float(e) + rest - whole : 0",
              [](double v, double) {
                if (!std::isfinite(v)) return 0.0f;
                int e;
                double whole;
                const auto m = static_cast<float>(std::frexp(v, &e));
                const auto rest = static_cast<float>(std::modf(v, &whole));
                return m * 4 + static_cast<float>(e) + rest - static_cast<float>(whole);
              },
              0),
          math(
              "acos", "acos(v)", [](double v, double) { return std::acos(v); }, accurate, -1, 1),
          math(
              "asin", "asin(v)", [](double v, double) { return std::asin(v); }, accurate, -1, 1),
          math("atan", "atan(v)", [](double v, double) { return std::atan(v); }),
          math("atan2", "atan2(v, w)", [](double v, double w) { return std::atan2(v, w); }),
          math(
              "ceil, trunc", "ceil(v) + trunc(v) * 0.5",
              [](double v, double) { return std::ceil(v) + std::trunc(v) * 0.5; }, 0),
          math(
              "fract", "isfinite(v) ? fract(v) : 0",
              [](double v, double) {
                return std::isfinite(v) ? std::fmin(v - std::floor(v), 0x1.fffffep-1) : 0;
              },
              0),
          math("exp10", "exp10(v)", [](double v, double) { return std::pow(10.0, v); }),
          math(
              "log2", "log2(v)", [](double v, double) { return std::log2(v); }, accurate, 0, 100),
          math(
              "log10", "log10(v)", [](double v, double) { return std::log10(v); }, accurate, 0,
              100),
          math("sinh", "sinh(v)", [](double v, double) { return std::sinh(v); }),
          math("cosh", "cosh(v)", [](double v, double) { return std::cosh(v); }),
          math("asinh", "asinh(v)", [](double v, double) { return std::asinh(v); }),
          math(
              "acosh", "acosh(v)", [](double v, double) { return std::acosh(v); }, accurate, 1, 20),
          math(
              "atanh", "atanh(v)", [](double v, double) { return std::atanh(v); }, accurate, -1, 1),
          math(
              "tan", "tan(v)", [](double v, double) { return std::tan(v); }, accurate, -20, 20),
          math(
              "fmod", "fmod(v, 3.0)", [](double v, double) { return std::fmod(v, 3.0); }, 0),
          math(
              "sign, step, saturate",
              "(isnan(v) ? 0 : sign(v)) + step(1.0, w) * 2 + saturate(v) * 4",
              [](double v, double w) {
                const double sign = std::isnan(v) ? 0 : v > 0 ? 1 : v < 0 ? -1 : 0;
                return sign + (w < 1 ? 0 : 2) + static_cast<float>(clamped(v, 0, 1)) * 4;
              },
              0),
          math(
              "mix", "mix(v, w, 0.25)",
              [](double v, double w) {
                return static_cast<float>(v) +
                       (static_cast<float>(w) - static_cast<float>(v)) * 0.25f;
              },
              1),
          math(
              "smoothstep", "smoothstep(-2.0, 6.0, v)",
              [](double v, double) {
                const double t = clamped((v + 2) / 8, 0, 1);
                return t * t * (3 - 2 * t);
              },
              4),
          math(
              "fast::f, metal::fast::f", "metal::fast::exp(v) + fast::rsqrt(1 + abs(v))",
              [](double v, double) { return std::exp(v) + 1 / std::sqrt(1 + std::fabs(v)); }, 16,
              -4, 4),
          math(
              "precise::f, metal::precise::f",
              "precise::exp(v) + metal::precise::tanh(v) + precise::sin(v)",
              [](double v, double) { return std::exp(v) + std::tanh(v) + std::sin(v); }, 8, 0, 3),
          math(
              "INFINITY, NAN, M_PI_F, FLT_MAX, MAXFLOAT, HUGE_VALF",
              "v > 3 ? INFINITY : v < -3 ? NAN : v * M_PI_F + (MAXFLOAT == FLT_MAX && HUGE_VALF == "
              "INFINITY ? 1 : 0)",
              [](double v, double) {
                if (v > 3) return std::numeric_limits<float>::infinity();
                if (v < -3) return std::nanf("");
                return static_cast<float>(v) * 3.14159274f + 1;
              },
              0),
          math(
              "metal::numeric_limits<T>",
              "metal::numeric_limits<float>::max() > 1e38 && numeric_limits<half>::max() == "
              "65504.0h && numeric_limits<int>::lowest() < 0 ? numeric_limits<float>::epsilon() * "
              "v : 0",
              [](double v, double) {
                return static_cast<float>(v) * std::numeric_limits<float>::epsilon();
              },
              0),
          {"`#pragma clang fp contract(off)`, `#pragma METAL fp`: nothing is fused unless written",
           "#pragma clang fp contract(off)\nuint i = thread_position_in_grid.x; float a = x[i] * "
           "x[i + 1] + x[i + 2];\n"
           "{\n#pragma METAL fp math_mode(safe)\ny[i] = a * a + x[i]; }",
           {floats("x", {128})},
           {zeros("y", float32)},
           [](Arrays& a) {
             for (size_t i = 0; i < threads; ++i) {
               const float* x = a.in() + i;
               const float v = x[0] * x[1] + x[2];
               a.out()[i] = v * v + x[0];
             }
           }},
          math(
              "functions of half: the result is half", "float(exp(half(v)))",
              [](double v, double) { return half_of(std::exp(half_of(v))); }, half_step, -4, 4),
          math(
              "functions of bfloat: the result is bfloat",
              "float(exp(bfloat(v))) + float(abs(bfloat(w)))",
              [](double v, double w) {
                return bfloat_of(std::exp(bfloat_of(v))) + std::fabs(bfloat_of(w));
              },
              2 * bfloat_step, -4, 4),
          math(
              "functions of vectors, one component at a time",
              "exp(float4(v, w, 1, 2)).y + sqrt(abs(float2(v, w))).x",
              [](double v, double w) { return std::exp(w) + std::sqrt(std::fabs(v)); }, 4, -4, 4),
          integer("max, min, abs, clamp of integers, mixed calls",
                  "max(v, w) + min(v, 3) + abs(w) + clamp(v, -5, 5) + max(0, (int(w) * 32) / 7) + "
                  "int(max(float(v), 0.5))",
                  [](int v, int w) {
                    return std::max(v, w) + std::min(v, 3) + std::abs(w) + std::clamp(v, -5, 5) +
                           std::max(0, w * 32 / 7) +
                           static_cast<int>(std::fmax(static_cast<float>(v), 0.5f));
                  }),
          integer("popcount, clz, ctz, rotate, mulhi, extract_bits, insert_bits, reverse_bits",
                  "int(popcount(uint(v)) + clz(uint(w)) * 100 + ctz(v | 1024) * 1000 + "
                  "rotate(uint(v), 5u) + mulhi(uint(v), uint(w)) + extract_bits(uint(v), 3, 6) + "
                  "insert_bits(0u, uint(w), 4, 8) + reverse_bits(uint(v)))",
                  [](int a, int b) {
                    const auto v = static_cast<uint32_t>(a), w = static_cast<uint32_t>(b);
                    uint32_t reversed = 0;
                    for (int k = 0; k < 32; ++k) reversed |= ((v >> k) & 1) << (31 - k);
                    return static_cast<int32_t>(
                        static_cast<uint32_t>(std::popcount(v)) +
                        static_cast<uint32_t>(std::countl_zero(w)) * 100 +
                        static_cast<uint32_t>(std::countr_zero(v | 1024)) * 1000 + std::rotl(v, 5) +
                        static_cast<uint32_t>((uint64_t{v} * w) >> 32) + ((v >> 3) & 63) +
                        ((w & 255) << 4) + reversed);
                  }),
      }};
}

}  // namespace holdfast::jit::testing
