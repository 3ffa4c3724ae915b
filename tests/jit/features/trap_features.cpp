// What real kernels rely on and a port gets wrong, and what is not there.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include <holdfast/types.h>

#include "jit/features/feature.h"

namespace holdfast::jit::testing {
namespace {

const std::string at = "uint i = thread_position_in_grid.x;\n";

template <class T = float, class Value>
std::function<void(Arrays&)> each(Value value) {
  return [value](Arrays& a) {
    for (size_t i = 0; i < threads; ++i) a.out<T>()[i] = static_cast<T>(value(a, i));
  };
}

// Which address space a body's argument has.
Feature address_space(const char* name, int32_t elements, float space) {
  return {name,
          at + "y[i] = where_is(v) + x[i];",
          {floats("x"), floats("v", {elements})},
          {zeros("y", float32)},
          each([space](Arrays& a, size_t i) { return space + a.in()[i]; }),
          {100, 1, 1},
          {64, 1, 1},
          "template <typename P> struct Space; template <typename U> struct Space<const device U*> "
          "{ static constant constexpr float value = 1; };\n"
          "template <typename U> struct Space<const constant U*> { static constant constexpr float "
          "value = 2; };\n"
          "template <typename P> float where_is(P) { return Space<P>::value; }"};
}

// One body of 125 KB, as an emulator has: a chain of cases over 64-bit integers, one thread.
constexpr int cases = 60, steps_of_case = 40;
std::string large_body() {
  std::string body =
      "if (thread_position_in_grid.x != 0) return;\nulong a = 1, b = 2; uint pc = 0;\n"
      "for (int step = 0; step < 500; ++step) {\nuint op = code[pc % 64]; pc += 1;\n";
  for (int k = 0; k < cases; ++k) {
    body += std::string(k ? "else if" : "if") + " (op == " + std::to_string(k) + ") {\n";
    for (int s = 0; s < steps_of_case; ++s)
      body += "  a = a * " + std::to_string(2 * k + s + 3) + "ul + (b >> " +
              std::to_string((k + s) % 61) + "); b ^= a;\n";
    body += "  if (a & 1) pc += " + std::to_string(k % 5) + ";\n}\n";
  }
  while (body.size() < 125000) body += "// Nothing here, as in the comments of such a source.\n";
  return body + "}\ny[0] = a; y[1] = b; y[2] = pc;";
}

// Quotients and remainders of T by what may be 0 or -1, in lanes that do it and lanes that do not.
// In C++: x / 0 is 0, x % 0 is x, the least number / -1 is itself.
template <class T>
Feature division(const char* name, Dtype dtype, const char* type) {
  const int64_t least = std::is_signed_v<T> ? std::numeric_limits<T>::min() : 0;
  const int64_t greatest = sizeof(T) == 8 && !std::is_signed_v<T>
                               ? -1
                               : static_cast<int64_t>(std::numeric_limits<T>::max());
  std::vector<T> above(threads), below(threads);
  const Argument some = integers("some", dtype, {threads}, least, greatest);
  std::memcpy(above.data(), some.bytes.data(), some.bytes.size());
  for (size_t i = 0; i < above.size(); ++i) {
    if (i % 5 == 0) above[i] = std::numeric_limits<T>::min();
    below[i] = static_cast<T>(i % 3 == 0 ? 0 : i % 3 == 1 ? -1 : static_cast<int>(i));
  }
  return {name,
          at + "y[i] = " + type + "(x[i] / d[i]); z[i] = " + type + "(x[i] % d[i]);\n" +
              "w[i] = 0; if (i % 7 == 3) w[i] = " + type + "(x[i] / d[i] + x[i] % d[i]);",
          {values<T>("x", dtype, above), values<T>("d", dtype, below)},
          {zeros("y", dtype), zeros("z", dtype), zeros("w", dtype)},
          [](Arrays& a) {
            for (size_t i = 0; i < threads; ++i) {
              const T x = a.in<T>(0)[i], d = a.in<T>(1)[i];
              const bool overflows = std::is_signed_v<T> && x == std::numeric_limits<T>::min() &&
                                     d == static_cast<T>(-1);
              const T quotient = d == 0 ? T(0) : overflows ? x : static_cast<T>(x / d);
              const T rest = d == 0 ? x : overflows ? T(0) : static_cast<T>(x % d);
              a.out<T>(0)[i] = quotient;
              a.out<T>(1)[i] = rest;
              if (i % 7 == 3)
                a.out<T>(2)[i] =
                    static_cast<T>(static_cast<uint64_t>(quotient) + static_cast<uint64_t>(rest));
            }
          }};
}

}  // namespace

Section trap_features() {
  return {
      "Traps: what kernels rely on",
      {
          {"1. a barrier with `mem_none` orders memory, too, as mlx-lm's losses need it",
           "uint i = thread_position_in_grid.x; threadgroup float s[2]; float v = simd_max(x[i]);\n"
           "if (thread_index_in_simdgroup == 0) s[simdgroup_index_in_threadgroup] = v; "
           "threadgroup_barrier(mem_flags::mem_none);\n"
           "float m = s[0]; for (uint k = 1; k < simdgroups_per_threadgroup; ++k) m = max(m, "
           "s[k]); threadgroup_barrier(mem_flags::mem_none);\n"
           "v = simd_sum(x[i] - m); if (thread_index_in_simdgroup == 0) "
           "s[simdgroup_index_in_threadgroup] = v; threadgroup_barrier(mem_flags::mem_none);\n"
           "y[i] = s[0] + s[1];",
           {floats("x")},
           {zeros("y", float32)},
           [](Arrays& a) {
             for (size_t first : {0, 64}) {
               const size_t n = first ? 36 : 64;
               float m = -INFINITY, sums[2], centred[64];
               for (size_t t = 0; t < n; ++t) m = std::fmax(m, a.in()[first + t]);
               for (size_t t = 0; t < n; ++t) centred[t] = a.in()[first + t] - m;
               for (size_t k = 0; k < 2; ++k)
                 sums[k] = butterfly(centred + 32 * k, std::min<size_t>(32, n - 32 * k), 0,
                                     [](float p, float q) { return p + q; });
               for (size_t t = 0; t < n; ++t) a.out()[first + t] = sums[0] + sums[1];
             }
           }},
          {"2. literals are float; `1 / half` stays half",
           at + "y[i] = 0.5 * x[i] + 0.1; z[i] = float(1 / h[i]);",
           {floats("x"), as(float16, floats("h", {threads}, 1, 50))},
           {zeros("y", float32), zeros("z", float32)},
           [](Arrays& a) {
             for (size_t i = 0; i < threads; ++i) {
               a.out(0)[i] = 0.5f * a.in()[i] + 0.1f;
               a.out(1)[i] = static_cast<float>(
                   static_cast<_Float16>(1 / static_cast<float>(a.in<_Float16>(1)[i])));
             }
           }},
          {"3. int op half is half, half op float is float, bfloat op float is float; float is "
           "stored to half and bfloat outputs",
           at + "static_assert(is_same_v<decltype(3 * h[i]), half> && is_same_v<decltype(h[i] * "
                "2.0f), float> && is_same_v<decltype(b[i] + 1.0f), float>, \"\");\n"
                "y[i] = 3 * h[i] + 1; z[i] = h[i] * x[i] + b[i] * x[i]; w[i] = x[i] * 1.7;",
           {floats("x"), as(float16, floats("h")), as(bfloat16, floats("b"))},
           {zeros("y", float32), zeros("z", float16), zeros("w", bfloat16)},
           [](Arrays& a) {
             for (size_t i = 0; i < threads; ++i) {
               const float x = a.in()[i], h = static_cast<float>(a.in<_Float16>(1)[i]),
                           b = a.in<bfloat16_t>(2)[i];
               a.out(0)[i] = static_cast<float>(
                   static_cast<_Float16>(static_cast<float>(static_cast<_Float16>(3 * h)) + 1));
               a.out<_Float16>(1)[i] = static_cast<_Float16>(h * x + b * x);
               a.out<bfloat16_t>(2)[i] = bfloat16_t(x * 1.7f);
             }
           }},
          {"4. `char` is signed",
           at + "char c = q[i]; y[i] = float(c) + (c < 0 ? 1000 : 0) + float(c >> 2);",
           {integers("q", uint8, {threads}, 0, 255)},
           {zeros("y", float32)},
           each([](Arrays& a, size_t i) {
             const int8_t c = a.in<int8_t>()[i];
             return static_cast<float>(c) + (c < 0 ? 1000 : 0) + static_cast<float>(c >> 2);
           })},
          {"5. a threadgroup that is larger than the grid, as in lstm: (256, 1, 1) on a grid of "
           "(5, 3, 1)",
           "uint e = thread_position_in_grid.x + 5 * thread_position_in_grid.y; y[e] = "
           "simd_sum(x[e]) + float(threads_per_threadgroup.x);",
           {floats("x", {15})},
           {zeros("y", float32, {15})},
           [](Arrays& a) {
             for (size_t row = 0; row < 3; ++row)
               for (size_t k = 0; k < 5; ++k)
                 a.out()[5 * row + k] =
                     butterfly(a.in() + 5 * row, 5, 0, [](float p, float q) { return p + q; }) + 5;
           },
           {5, 3, 1},
           {256, 1, 1}},
          address_space("6. a small array is `constant`: templates keyed on address spaces see it "
                        "(7 elements)",
                        7, 2),
          address_space("6. and a larger one `device` (8 elements)", 8, 1),
          {"7. reads beside an array whose result is not used",
           at + "float left = x[int(i) - 1], right = x[i + 1]; y[i] = (i == 0 ? 0.0 : left) + (i "
                "== 99 ? 0.0 : right);",
           {floats("x")},
           {zeros("y", float32)},
           each([](Arrays& a, size_t i) {
             return (i == 0 ? 0 : a.in()[i - 1]) + (i == 99 ? 0 : a.in()[i + 1]);
           })},
          {"8. shifts by the width or more count modulo the width, on every lane",
           at + "uint s = i; y[i] = (1u << s) + (x[i] >> s) + uint(int(x[i]) >> s) + uint(1ul << "
                "(s * 3));",
           {integers("x", uint32, {threads}, 0, 0xFFFFFFFF)},
           {zeros("y", uint32)},
           each<uint32_t>([](Arrays& a, size_t i) {
             const uint32_t x = a.in<uint32_t>()[i];
             return (1u << (i % 32)) + (x >> (i % 32)) +
                    static_cast<uint32_t>(static_cast<int32_t>(x) >> (i % 32)) +
                    static_cast<uint32_t>(uint64_t{1} << (i * 3 % 64));
           })},
          {"8. threadgroup memory that nobody wrote is some value, not a fault",
           at + "threadgroup uint s[64]; uint v = s[thread_index_in_threadgroup]; y[i] = (v | 1) "
                "!= 0 ? 5 : 6;",
           {},
           {zeros("y", uint32)},
           each<uint32_t>([](Arrays&, size_t) { return 5; })},
          division<int32_t>("division by zero and INT_MIN / -1 are values: int", int32, "int"),
          division<uint32_t>("division by zero is a value: uint", uint32, "uint"),
          division<int64_t>("division by zero and LONG_MIN / -1 are values: long", int64, "long"),
          division<uint64_t>("division by zero is a value: ulong", uint64, "ulong"),
          division<int16_t>("division by zero: short", int16, "short"),
          division<uint8_t>("division by zero: uchar", uint8, "uchar"),
          {"9. inputs named `grid`, `input`, `output`, `signs`, `T`, `half_`, `time`, `linux`",
           at + "result[i] = InT(float(grid[i]) + input[i] + output[i] * signs[i] + float(T) + "
                "half_[i] + time[i] + linux[i]);",
           {integers("grid", int8, {threads}, -100, 100), floats("input"), floats("output"),
            floats("signs"), scalar("T", int32, 7), floats("half_"), floats("time"),
            floats("linux")},
           {zeros("result", float32)},
           each([](Arrays& a, size_t i) {
             return static_cast<float>(a.in<int8_t>(0)[i]) + a.in(1)[i] + a.in(2)[i] * a.in(3)[i] +
                    7.0f + a.in(5)[i] + a.in(6)[i] + a.in(7)[i];
           }),
           {100, 1, 1},
           {64, 1, 1},
           {},
           {{"InT", float32}}},
          {"9. inputs named as functions and macros of C and CUDA: `index`, `y0`, `min`, `exp`, "
           "`unix`, `NULL_`, `threadIdx`, `blockDim`, `warpSize`, `assert`",
           at + "result[i] = index[i] + y0[i] + exp[i] + unix[i] + NULL_[i] + threadIdx[i] + "
                "blockDim[i] + warpSize[i] + metal::min(min[i], 0.5f) + assert[i];",
           {floats("index"), floats("y0"), floats("min"), floats("exp"), floats("unix"),
            floats("NULL_"), floats("threadIdx"), floats("blockDim"), floats("warpSize"),
            floats("assert")},
           {zeros("result", float32)},
           each([](Arrays& a, size_t i) {
             return a.in(0)[i] + a.in(1)[i] + a.in(3)[i] + a.in(4)[i] + a.in(5)[i] + a.in(6)[i] +
                    a.in(7)[i] + a.in(8)[i] + std::fmin(a.in(2)[i], 0.5f) + a.in(9)[i];
           })},
          {"10. some lanes return, the others sum: active lanes only",
           at + "if (i % 3 == 1) { y[i] = -1; return; } y[i] = simd_sum(x[i]) + simd_max(x[i]);",
           {floats("x")},
           {zeros("y", float32)},
           [](Arrays& a) {
             each_simdgroup([&](size_t first, size_t count) {
               float added[32], compared[32];
               for (size_t l = 0; l < count; ++l) {
                 const bool is_gone = (first + l) % 3 == 1;
                 added[l] = is_gone ? 0 : a.in()[first + l];
                 compared[l] = is_gone ? -INFINITY : a.in()[first + l];
               }
               const float sum = butterfly(added, count, 0, [](float p, float q) { return p + q; });
               const float top = butterfly(compared, count, -INFINITY,
                                           [](float p, float q) { return std::fmax(p, q); });
               for (size_t l = 0; l < count; ++l)
                 a.out()[first + l] = (first + l) % 3 == 1 ? -1 : sum + top;
             });
           }},
          {"12. numbers that change with every call come in a small array, not as template values",
           at + "uint count = params[0], repeat = params[1]; constant uint* rest = params + 2; "
                "y[i] = i < count ? i / repeat + rest[1] : 0;",
           {values<uint32_t>("params", uint32, {77, 3, 5, 11})},
           {zeros("y", uint32)},
           each<uint32_t>([](Arrays&, size_t i) { return i < 77 ? i / 3 + 11 : 0; })},
          {"14. a body of 125 KB",
           large_body(),
           {integers("code", uint32, {64}, 0, cases + 5)},
           {zeros("y", uint64, {8})},
           [](Arrays& a) {
             uint64_t u = 1, b = 2;
             uint32_t pc = 0;
             for (int step = 0; step < 500; ++step) {
               const uint32_t k = a.in<uint32_t>()[pc % 64];
               pc += 1;
               if (k >= cases) continue;
               for (uint32_t s = 0; s < steps_of_case; ++s) {
                 u = u * (2 * k + s + 3) + (b >> ((k + s) % 61));
                 b ^= u;
               }
               if (u & 1) pc += k % 5;
             }
             a.out<uint64_t>()[0] = u;
             a.out<uint64_t>()[1] = b;
             a.out<uint64_t>()[2] = pc;
           },
           {1, 1, 1},
           {1, 1, 1}},
          {"15. attributes on parameters of helpers are accepted and ignored",
           at + "short2 c = coordinates(ushort(thread_index_in_simdgroup), 3); y[i] = float(c.x * "
                "8 + c.y);",
           {},
           {zeros("y", float32)},
           [](Arrays& a) {
             each_simdgroup([&](size_t first, size_t count) {
               for (size_t l = 0; l < count; ++l)
                 a.out()[first + l] = static_cast<float>(l / 4 * 8 + l % 4 + 3);
             });
           },
           {100, 1, 1},
           {64, 1, 1},
           "METAL_FUNC short2 coordinates(ushort lane [[thread_index_in_simdgroup]], uint more "
           "[[simdgroup_index_in_threadgroup]]) { return short2(lane / 4, lane % 4 + more); }"},
          {"16. online softmax: exp(-INFINITY) is 0, max(-INFINITY, v) is v",
           at + "float m = -INFINITY, l = 0; for (uint k = 0; k < 5; ++k) { float s = k == 1 ? "
                "-INFINITY : x[(i + k * 17) % 100]; float n = max(m, s);\n"
                "l = l * exp(m - n) + exp(s - n); m = n; } y[i] = l; z[i] = m;",
           {floats("x")},
           {zeros("y", float32), zeros("z", float32)},
           [](Arrays& a) {
             for (size_t i = 0; i < threads; ++i) {
               double m = -INFINITY, l = 0;
               for (size_t k = 0; k < 5; ++k) {
                 const double s = k == 1 ? -INFINITY : a.in()[(i + k * 17) % 100];
                 const double n = std::max(m, s);
                 l = l * std::exp(m - n) + std::exp(s - n);
                 m = n;
               }
               a.out(0)[i] = static_cast<float>(l);
               a.out(1)[i] = static_cast<float>(m);
             }
           },
           {100, 1, 1},
           {64, 1, 1},
           {},
           {},
           16},
      }};
}

std::vector<Refusal> refusals() {
  return {
      {"MetalPerformancePrimitives",
       "#include <MetalPerformancePrimitives/MetalPerformancePrimitives.h>\n",
       "constexpr mpp::tensor_ops::matmul2d_descriptor d(16, 32, 16); mpp::tensor_ops::m"
       "atmul2d<d, metal::execution_simdgroup> p; auto a = p.get_left_input_cooperative_"
       "tensor<float, float, float>(); p.run(a, a, a); y[0] = a[0];",
       "MetalPerformancePrimitives"},
      {"`mpp::tensor_ops`", "", "mpp::tensor_ops::matmul2d_descriptor d(8, 8, 8); y[0] = 1;",
       "MetalPerformancePrimitives"},
      {"textures", "float f(texture2d<float> t) { return 1; }", "y[0] = 1;", "textures"},
      {"samplers", "", "constexpr sampler s(filter::linear); y[0] = 1;", "samplers"},
      {"double", "", "double d = 1; y[0] = float(d);", "double"},
      {"inline assembly", "", "asm volatile(\"nop\"); y[0] = 1;", "assembly"},
      {"recursion", "float f(int n) { return n == 0 ? 1.0 : f(n - 1); }", "y[0] = f(int(x[0]));",
       "recursion"},
      {"more than 32 KiB of threadgroup memory", "",
       "threadgroup float s[9000]; s[int(x[0])] = 1.0; "
       "threadgroup_barrier(mem_flags::mem_threadgroup); y[0] = s[int(x[1])];",
       "32768"},
  };
}

}  // namespace holdfast::jit::testing
