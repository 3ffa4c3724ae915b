// What MLX puts before a custom kernel, and kernels rely on.
#include <cmath>

#include "jit/features/feature.h"

namespace holdfast::jit::testing {
namespace {

const std::string at = "uint i = thread_position_in_grid.x;\n";

template <class Value>
Feature row(const char* name, const std::string& body, Value value, std::string header = "",
            double ulp = 0) {
  return {name,
          at + body,
          {floats("x", {4, 5, 6}, 0, 4)},
          {zeros("y", float32)},
          [value](Arrays& a) {
            for (size_t i = 0; i < threads; ++i) a.out()[i] = static_cast<float>(value(a.in(), i));
          },
          {100, 1, 1},
          {64, 1, 1},
          std::move(header),
          {},
          ulp};
}

}  // namespace

Section helper_features() {
  return {
      "MLX's helpers",
      {
          row("Limits<T>::min, max, finite_min, finite_max",
              "float m = Limits<float>::min; m = max(m, x[i]); y[i] = m + "
              "(Limits<float>::finite_min < -3e38 ? 1 : 0) + (isinf(Limits<half>::max) ? 2 : 0) + "
              "float(Limits<uint8_t>::max) + (Limits<int>::min == INT_MIN ? 4 : 0);",
              [](const float* x, size_t i) { return x[i] + 1 + 2 + 255 + 4; }),
          row(
              "METAL_FUNC", "y[i] = twice(x[i]);",
              [](const float* x, size_t i) { return x[i] * 2; },
              "METAL_FUNC float twice(float v) { return v * 2; }"),
          row("elem_to_loc",
              "auto at = elem_to_loc(i, x_shape, x_strides, x_ndim); y[i] = x[at] + float(at);",
              [](const float* x, size_t i) { return x[i] + static_cast<float>(i); }),
          row("ceildiv", "y[i] = ceildiv(int(i), 3) + ceildiv(7u, 2);",
              [](const float*, size_t i) { return static_cast<float>((i + 2) / 3 + 4); }),
          row(
              "integral_constant, Int<n>",
              "Int<3> three; y[i] = float(three.value + integral_constant<int, 5>::value) + x[i];",
              [](const float* x, size_t i) { return 8 + x[i]; },
              "template <int v> using Int = integral_constant<int, v>;"),
          row(
              "log1p of float", "y[i] = log1p(x[i]);",
              [](const float* x, size_t i) { return std::log1p(static_cast<double>(x[i])); }, "",
              2),
          row("log1p of bfloat16_t and half",
              "y[i] = float(log1p(bfloat16_t(1))) + float(log1p(half(1)));",
              [](const float*, size_t) { return 0.69140625f + 0.693359375f; }),
          row("uint8_t, int8_t, …, uint64_t, float16_t, bfloat16_t, complex64_t by name",
              "uint8_t a = 250; int16_t b = -3; uint64_t c = 1; a += 10; complex64_t z(1, 2); y[i] "
              "= float(a) + b + float(c << 3) + z.imag;",
              [](const float*, size_t) { return 4.0f - 3 + 8 + 2; }),
      }};
}

}  // namespace holdfast::jit::testing
