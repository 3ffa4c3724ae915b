// Quantised weights: codes of known weights, round trips, and products against dequantised ones.
#include "ops/numeric_testing.h"
#include "ops/quantized.h"

using namespace holdfast;
using namespace holdfast::testing;

namespace {

struct Format {
  const char* mode;
  int bits, group;
};

std::vector<Format> all_formats() {
  std::vector<Format> formats{{"mxfp4", 4, 32}, {"mxfp8", 8, 32}, {"nvfp4", 4, 16}};
  for (int bits : {2, 3, 4, 5, 6, 8}) {
    for (int group : {32, 64, 128}) formats.push_back({"affine", bits, group});
  }
  return formats;
}

struct Weights {
  array codes, scales;
  std::optional<array> biases;
  array plain;  // float32
};

Weights weights_of(const Format& f, const array& w) {
  std::vector<array> parts = quantize(w, f.group, f.bits, f.mode);
  std::optional<array> biases;
  if (parts.size() > 2) biases = parts[2];
  array plain = dequantize(parts[0], parts[1], biases, f.group, f.bits, f.mode, std::nullopt,
                           std::optional<Dtype>(float32));
  return {parts[0], parts[1], biases, plain};
}

// Plain product of batches of matrices; `b` transposed.
std::vector<double> product(const std::vector<double>& a, const std::vector<double>& b, int m,
                            int n, int k, bool transposed) {
  std::vector<double> out;
  for (int i = 0; i < m; ++i) {
    for (int j = 0; j < n; ++j) {
      double sum = 0;
      for (int l = 0; l < k; ++l) {
        sum += a[size_t(i * k + l)] * b[size_t(transposed ? j * k + l : l * n + j)];
      }
      out.push_back(sum);
    }
  }
  return out;
}

}  // namespace

TEST_CASE("codes, scales and biases of known weights") {
  std::vector<float> w(32);
  for (int i = 0; i < 32; ++i) w[size_t(i)] = float(i % 16) - 8.0f;
  std::vector<array> parts = quantize(array(w.begin(), {1, 32}), 32, 4);
  check_values<float>(parts[1], {1, 1}, {1});
  check_values<float>(parts[2], {1, 1}, {-8});
  check_values<uint32_t>(parts[0], {1, 4}, {0x76543210, 0xfedcba98, 0x76543210, 0xfedcba98});
  // Three bits cross the borders of bytes: 8 codes 0..7 are the bits 0o76543210.
  for (int i = 0; i < 32; ++i) w[size_t(i)] = float(i % 8) - 8.0f;
  parts = quantize(array(w.begin(), {1, 32}), 32, 3);
  check_values<uint32_t>(parts[0], {1, 3},
                         {076543210u | 0210u << 24, 0x00fac688u >> 8 | 0xc688u << 16,
                          0x00fac688u >> 16 | 0xfac688u << 8});
  // Ties of 4-bit floats go down; negative zero is zero.
  for (int i = 0; i < 32; ++i) {
    constexpr float ties[] = {0.25f, 0.75f, 1.25f, 1.75f, 2.5f, 3.5f, 5.0f, -6.0f};
    w[size_t(i)] = i == 8 ? -0.2f : ties[i % 8];
  }
  parts = quantize(array(w.begin(), {1, 32}), std::nullopt, std::nullopt, "mxfp4");
  check_values<uint8_t>(parts[1], {1, 1}, {127});
  check_values<uint32_t>(parts[0], {1, 4}, {0xf6543210, 0xf6543210, 0xf6543210, 0xf6543210});
  parts = quantize(zeros({1, 32}), std::nullopt, std::nullopt, "mxfp8");
  check_values<uint8_t>(parts[1], {1, 1}, {127});
  parts = quantize(zeros({1, 32}), std::nullopt, std::nullopt, "nvfp4");
  check_values<uint8_t>(parts[1], {1, 2}, {0, 0});
}

TEST_CASE("8-bit floats") {
  constexpr float inf = INFINITY;
  check_values<uint8_t>(
      to_fp8(array({448.0f, 449.0f, 1e9f, inf, NAN, -inf, 0x1p-9f, 0x1p-10f, 0x1.8p-10f, 0.0f})),
      {10}, {126, 126, 126, 126, 126, 254, 1, 0, 1, 0});
  array codes = astype(arange(127), uint8);
  CHECK(array_equal(to_fp8(from_fp8(codes, float32)), codes).item<bool>());
  CHECK(from_fp8(array({56}, uint8), bfloat16).dtype() == bfloat16);
  check_values<float>(from_fp8(array({1, 8, 56, 126, 184}, uint8), float32), {5},
                      {0x1p-9f, 0x1p-6f, 1, 448, -1});
  check_error<std::invalid_argument>("to_fp8", [] { to_fp8(array(1)); });
  check_error<std::invalid_argument>("from_fp8", [] { from_fp8(array(1), float32); });
  check_error<std::invalid_argument>("from_fp8", [] { from_fp8(array({1}, uint8), int32); });
}

TEST_CASE("quantised weights stay close to the weights, in every format and layout") {
  RandomArrays random(41);
  for (const Format& f : all_formats()) {
    CAPTURE(std::string(f.mode));
    CAPTURE(f.bits);
    for (Dtype dtype : {float32, float16, bfloat16}) {
      array w = random.strided({3, 4, 256}, dtype);
      Weights q = weights_of(f, w);
      bool affine = q.biases.has_value();
      double step = affine ? 7.0 / ((1 << f.bits) - 1) : f.bits == 8 ? 0.3 : 1.2;
      check_close(q.plain, w.shape(), doubles_of(w), step / 2 + rounding_of(dtype) * 8);
    }
  }
  array w = random.dense({2, 64}, float32), global = array(3.0f);
  std::vector<array> parts = quantize(w, std::nullopt, std::nullopt, "nvfp4", global);
  check_close(dequantize(parts[0], parts[1], std::nullopt, std::nullopt, std::nullopt, "nvfp4",
                         global, std::optional<Dtype>(float32)),
              {2, 64}, doubles_of(w), 0.2);
}

TEST_CASE("products with quantised weights, few rows and many") {
  RandomArrays random(42);
  for (const Format& f : all_formats()) {
    CAPTURE(std::string(f.mode));
    CAPTURE(f.bits);
    CAPTURE(f.group);
    for (Dtype dtype : {float32, float16, bfloat16}) {
      CAPTURE(std::string(dtype_name(dtype)));
      for (int m : {1, 3, 20}) {
        CAPTURE(m);
        for (bool transposed : {true, false}) {
          CAPTURE(transposed);
          int rows = transposed ? 70 : 37;
          Weights q = weights_of(f, random.dense({rows, 256}, dtype));
          int k = transposed ? 256 : rows, n = transposed ? rows : 256;
          array x = random.strided({m, k}, dtype);
          check_close(
              quantized_matmul(x, q.codes, q.scales, q.biases, transposed, f.group, f.bits, f.mode),
              {m, n}, product(doubles_of(x), doubles_of(q.plain), m, n, k, transposed),
              3 * rounding_of(dtype));
        }
      }
    }
  }
  // Depths of one block, of several, and of an odd number of groups.
  for (int k : {64, 192, 448, 1024, 4096}) {
    for (int m : {1, 9}) {
      Weights q = weights_of({"affine", 4, 64}, random.dense({133, k}, bfloat16));
      array x = random.dense({m, k}, bfloat16);
      check_close(quantized_matmul(x, q.codes, q.scales, q.biases), {m, 133},
                  product(doubles_of(x), doubles_of(q.plain), m, 133, k, true), 0.02);
    }
  }
}

TEST_CASE("batches and gathered matrices") {
  RandomArrays random(43);
  Weights q = weights_of({"affine", 4, 64}, random.dense({4, 5, 64}, float32));
  array x = random.dense({3, 1, 2, 64}, float32);
  array got = quantized_matmul(x, q.codes, q.scales, q.biases);
  REQUIRE(got.shape() == Shape{3, 4, 2, 5});
  CHECK(allclose(got, matmul(x, swapaxes(q.plain, -1, -2)), 1e-4, 1e-4).item<bool>());
  array left({0, 2}, {2, 1}), right({3, 0, 1});
  array gathered = gather_qmm(reshape(x, {3, 2, 64}), q.codes, q.scales, q.biases, left, right);
  REQUIRE(gathered.shape() == Shape{2, 3, 2, 5});
  array lefts = take(reshape(x, {3, 1, 2, 64}), reshape(left, {2}), 0);
  array rights = swapaxes(take(q.plain, right, 0), -1, -2);
  CHECK(allclose(gathered, matmul(lefts, rights), 1e-4, 1e-4).item<bool>());
  CHECK(quantized_matmul(ones({64}), q.codes, q.scales, q.biases).shape() == Shape{4, 5});
  array bad = gather_qmm(ones({1, 2, 64}), q.codes, q.scales, q.biases, array({0}), array({9}));
  CHECK_THROWS(bad.eval());
}

TEST_CASE("gathered matrices with a global scale each") {
  RandomArrays random(45);
  array w = random.dense({3, 5, 32}, float32), x = random.dense({2, 4, 32}, float32);
  array global({2.0f, 6.0f, 12.0f}), right({2, 0});
  std::vector<array> q = quantize(w, {}, {}, "nvfp4");
  auto gathered = [&](const char* mode, const array& scale, const std::optional<array>& indices) {
    return quantized::gather_scaled_qmm(x, q[0], q[1], {}, {}, indices, true, {}, {}, mode, scale,
                                        false, {});
  };
  array got = gathered("nvfp4", global, right);
  for (int i : {0, 1}) {
    auto of = [](const array& a, int at) { return take(a, array(at), 0); };
    int matrix = i == 0 ? 2 : 0;
    array plain = dequantize(of(q[0], matrix), of(q[1], matrix), {}, {}, {}, "nvfp4",
                             of(global, matrix), std::optional<Dtype>(float32));
    CHECK(allclose(of(got, i), matmul(of(x, i), transpose(plain)), 1e-4, 1e-4).item<bool>());
  }
  for (const array& wrong : {array(2.0f), array({2.0f, 6.0f})}) {
    check_error<std::invalid_argument>("gather_qmm", [&] { gathered("nvfp4", wrong, right); });
  }
  std::vector<array> affine = quantize(w, 32);
  check_error<std::invalid_argument>("gather_qmm", [&] {
    quantized::gather_scaled_qmm(x, affine[0], affine[1], affine[2], {}, right, true, 32, {},
                                 "affine", global, false, {});
  });
}

TEST_CASE("both operands quantised") {
  RandomArrays random(44);
  for (const char* mode : {"mxfp4", "mxfp8", "nvfp4", "affine"}) {
    array x = random.dense({3, 128}, float32), w = random.dense({5, 128}, float32);
    auto back = [&](const array& a) {
      std::vector<array> p = quantize(a, std::nullopt, std::nullopt, mode);
      std::optional<array> biases;
      if (p.size() > 2) biases = p[2];
      return dequantize(p[0], p[1], biases, std::nullopt, std::nullopt, mode, std::nullopt,
                        std::optional<Dtype>(float32));
    };
    array expected = matmul(back(x), transpose(back(w)));
    CHECK(allclose(qqmm(x, w, std::nullopt, std::nullopt, std::nullopt, mode), expected, 1e-4, 1e-4)
              .item<bool>());
  }
}

TEST_CASE("errors of quantised ops") {
  auto fails = [](const char* op, const std::function<void()>& call) {
    check_error<std::invalid_argument>(op, call);
  };
  array w = ones({8, 256});
  fails("quantize", [&] { quantize(w, 64, 7); });
  fails("quantize", [&] { quantize(w, 16, 4); });
  fails("quantize", [&] { quantize(w, 64, 4, "mxfp4"); });
  fails("quantize", [&] { quantize(w, 64, 4, "other"); });
  fails("quantize", [&] { quantize(ones({8, 40})); });
  fails("quantize", [&] { quantize(ones({64})); });
  fails("quantize", [&] { quantize(ones({8, 64}, int32)); });
  fails("quantize", [&] { quantize(w, {}, {}, "affine", array(2.0f)); });
  std::vector<array> q = quantize(w);
  fails("dequantize", [&] { dequantize(q[0], q[1]); });
  fails("dequantize", [&] { dequantize(q[0], ones({8, 2}), q[2]); });
  fails("dequantize", [&] { dequantize(astype(q[0], int32), q[1], q[2]); });
  fails("quantized_matmul", [&] { quantized_matmul(ones({3, 8}), q[0], q[1], q[2]); });
  fails("quantized_matmul", [&] { quantized_matmul(ones({3, 256}), q[0], q[1]); });
  fails("gather_qmm", [&] { gather_qmm(ones({2, 3, 256}), q[0], q[1], q[2], array({0.5f})); });
  CHECK(quantized_matmul(ones({0, 256}), q[0], q[1], q[2]).shape() == Shape{0, 8});
}
