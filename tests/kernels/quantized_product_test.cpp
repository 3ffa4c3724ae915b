// Products with quantised weights by themselves.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "kernels/cpu/quantization.h"
#include "kernels/strided_test_support.h"

using namespace holdfast;
using namespace holdfast::kernels;
using namespace holdfast::kernels::cpu;
using namespace strided_test;

namespace {

// The same bits whether threads take many tasks at a time or one, and whatever x came before.
template <typename T>
void check_ranges(Random& random, Dtype::Val dtype, int64_t m, int64_t n, int64_t k,
                  bool transposed) {
  constexpr int64_t batch = 4, left_count = 3;
  QuantizedFormat format{QuantizationMode::affine, 4, 64};
  Aligned<uint8_t> codes(n * k / 2);
  Aligned<T> scales(n * k / 64), biases(n * k / 64), x(left_count * m * k);
  for (int64_t i = 0; i < n * k / 2; ++i) codes[i] = static_cast<uint8_t>(pick(random, 0, 255));
  auto fill = [&](Aligned<T>& values, int64_t count) {
    for (int64_t i = 0; i < count; ++i)
      values[i] = static_cast<T>(static_cast<float>(pick(random, -99, 99)) / 64);
  };
  fill(scales, n * k / 64);
  fill(biases, n * k / 64);
  fill(x, left_count * m * k);
  const uint32_t left[batch] = {2, 0, 0, 1}, right[batch] = {0, 0, 0, 0};
  QuantizedProductPlan plan(dtype, format, transposed, batch, m, n, k, left_count, 1);
  Aligned<char> scratch(static_cast<int64_t>(plan.task_scratch_bytes()));
  Aligned<char> prepared(left_count * plan.prepared_bytes());
  const void* from = plan.prepared_bytes() > 0 ? static_cast<void*>(prepared.get()) : x.get();
  if (plan.prepared_bytes() > 0) plan.prepare(0, left_count, x.get(), prepared.get());
  auto run = [&](int64_t length, Aligned<T>& out) {
    for (int64_t begin = 0; begin < plan.tasks(); begin += length) {
      plan.run(begin, std::min(plan.tasks(), begin + length), from,
               {codes.get(), scales.get(), biases.get()}, left, right, out.get(), scratch.get());
    }
  };
  Aligned<T> one(batch * m * n), some(batch * m * n), all(batch * m * n);
  run(1, one);
  run(5, some);
  run(plan.tasks(), all);
  CAPTURE(m);
  CHECK(plan.tasks() > 4);
  CHECK(one.same_bits(some));
  CHECK(one.same_bits(all));
}

// The products of each row with x: weights of even elements are 4 and 2 times 2^-20, of odd ones -5
// and -3 times.
template <typename T>
std::vector<float> products(Dtype::Val dtype, int64_t group, Aligned<T>& x, int64_t k) {
  constexpr int64_t n = 20;
  QuantizedFormat format{QuantizationMode::affine, 4, static_cast<int>(group)};
  Aligned<uint8_t> codes(n * k / 2);
  Aligned<T> scales(n * k / group), biases(n * k / group), out(n);
  for (int64_t i = 0; i < n * k / 2; ++i) codes[i] = static_cast<uint8_t>(i % 2 == 0 ? 0x3c : 0x5a);
  for (int64_t i = 0; i < n * k / group; ++i) {
    scales[i] = static_cast<T>(0x1p-20f);
    biases[i] = static_cast<T>(-0x1p-17f);
  }
  QuantizedProductPlan plan(dtype, format, true, 1, 1, n, k, 1, 1);
  Aligned<char> scratch(static_cast<int64_t>(plan.task_scratch_bytes()));
  Aligned<char> prepared(plan.prepared_bytes());
  plan.prepare(0, 1, x.get(), prepared.get());
  plan.run(0, plan.tasks(), prepared.get(), {codes.get(), scales.get(), biases.get()}, nullptr,
           nullptr, out.get(), scratch.get());
  std::vector<float> result;
  for (int64_t i = 0; i < n; ++i) result.push_back(static_cast<float>(out[i]));
  return result;
}

void check_large(int64_t group) {
  constexpr int64_t k = 384;
  Aligned<bfloat16_t> x(k);
  for (int64_t i = 0; i < k; ++i) x[i] = static_cast<bfloat16_t>(i % 2 == 0 ? 0x1p127f : -0x1p127f);
  for (float product : products(Dtype::Val::bfloat16, group, x, k)) {
    CHECK(product == 14 * (k / 4) * 0x1p107f);
  }
}

// Groups of x that lie `bits` apart: the sum of each is exact, and so is that of all in float32.
template <typename T>
void check_apart(Dtype::Val dtype, int64_t group, int bits, float largest) {
  constexpr int64_t k = 384;
  Aligned<T> x(k);
  double expected = 0;
  for (int64_t i = 0; i < k; ++i) {
    // Negative numbers, ones of every digit, and zeros.
    auto value = static_cast<float>((i * 37 % 97 - 48) * (i % 5 != 0));
    x[i] = static_cast<T>(std::ldexp(value * largest, i / group % 2 == 0 ? 0 : -bits));
    constexpr int weights[4] = {4, -5, 2, -3};
    expected += static_cast<double>(static_cast<float>(x[i])) * weights[i % 4] * 0x1p-20;
  }
  CAPTURE(bits);
  CAPTURE(largest);
  auto rounded = static_cast<float>(static_cast<T>(static_cast<float>(expected)));
  for (float product : products(dtype, group, x, k)) {
    CHECK(std::abs(product - rounded) <=
          std::abs(rounded) * (dtype == Dtype::Val::bfloat16 ? 0x1p-8f : 0x1p-10f) +
              (dtype == Dtype::Val::float16 ? 0x1p-24f : 0));
  }
}

// The products of x with weights of random codes are those in double, within the rounding of a
// result and what x loses (simd/quantized_digits.h): also where a carry runs through all digits.
void check_random(Random& random, int64_t group, int scale_exponent, int x_exponent) {
  constexpr int64_t k = 512, n = 14;
  QuantizedFormat format{QuantizationMode::affine, 4, static_cast<int>(group)};
  Aligned<uint8_t> codes(n * k / 2);
  Aligned<bfloat16_t> scales(n * k / group), biases(n * k / group), x(k), out(n);
  for (int64_t i = 0; i < n * k / 2; ++i) codes[i] = static_cast<uint8_t>(pick(random, 0, 255));
  auto number = [&](int exponent) {
    return static_cast<bfloat16_t>(
        std::ldexp(static_cast<float>(pick(random, -255, 255)), exponent));
  };
  for (int64_t i = 0; i < n * k / group; ++i) {
    // Weights that are zero meet the first group, whose elements are much larger.
    const bool is_first = i % (k / group) == 0;
    scales[i] = is_first ? bfloat16_t(0.0f) : number(scale_exponent);
    biases[i] = is_first ? bfloat16_t(0.0f) : number(scale_exponent + 2);
  }
  const int apart = static_cast<int>(pick(random, 0, 1)) * 50;
  for (int64_t i = 0; i < k; ++i) {
    x[i] = number(x_exponent + (i < group ? apart : 0) - static_cast<int>(pick(random, 0, 20)));
  }
  QuantizedProductPlan plan(Dtype::Val::bfloat16, format, true, 1, 1, n, k, 1, 1);
  Aligned<char> scratch(static_cast<int64_t>(plan.task_scratch_bytes()));
  Aligned<char> prepared(plan.prepared_bytes());
  plan.prepare(0, 1, x.get(), prepared.get());
  plan.run(0, plan.tasks(), prepared.get(), {codes.get(), scales.get(), biases.get()}, nullptr,
           nullptr, out.get(), scratch.get());
  for (int64_t row = 0; row < n; ++row) {
    double sum = 0, size = 0;
    for (int64_t i = 0; i < k; ++i) {
      const int64_t at = row * k + i;
      const int code = codes[at / 2] >> (at % 2 * 4) & 15;
      const double weight = code * static_cast<double>(static_cast<float>(scales[at / group])) +
                            static_cast<double>(static_cast<float>(biases[at / group]));
      const double product = static_cast<double>(static_cast<float>(x[i])) * weight;
      sum += product;
      size += std::abs(product);
    }
    const double got = static_cast<double>(static_cast<float>(out[row]));
    CHECK(std::abs(got - sum) <= std::abs(sum) * 0x1p-8 + size * 0x1p-19);
  }
}

template <typename T>
void check_infinite(Dtype::Val dtype, int64_t group) {
  constexpr int64_t k = 256;
  constexpr float infinity = std::numeric_limits<float>::infinity();
  for (int64_t place : {0, 1, 7, 64, 129, 255}) {
    Aligned<T> x(k);
    for (int64_t i = 0; i < k; ++i) x[i] = static_cast<T>(i == place ? infinity : 1.0f);
    for (float product : products(dtype, group, x, k)) {
      CHECK(product == (place % 2 == 0 ? infinity : -infinity));
    }
    x[3] = static_cast<T>(std::numeric_limits<float>::quiet_NaN());
    for (float product : products(dtype, group, x, k)) CHECK(std::isnan(product));
  }
}

}  // namespace

TEST_CASE("products with quantised weights are as finite as x") {
  on_each_product([](const char* name) {
    CAPTURE(name);
    for (int64_t group : {32, 64, 128}) {
      check_large(group);
      check_infinite<float16_t>(Dtype::Val::float16, group);
      check_infinite<bfloat16_t>(Dtype::Val::bfloat16, group);
    }
  });
}

TEST_CASE("products with quantised weights are exact for x of any size, also zero") {
  on_each_product([](const char* name) {
    CAPTURE(name);
    Random random(46);
    for (int64_t group : {32, 64, 128}) {
      CAPTURE(group);
      for (int bits : {0, 3, 13, 30, 45, 90}) {
        check_apart<bfloat16_t>(Dtype::Val::bfloat16, group, bits, 1);
        check_apart<bfloat16_t>(Dtype::Val::bfloat16, group, bits, 0x1p110f);
        check_apart<bfloat16_t>(Dtype::Val::bfloat16, group, bits, 0x1p-80f);
        check_apart<bfloat16_t>(Dtype::Val::bfloat16, group, bits, 0);
      }
      for (int bits : {0, 3, 10}) {
        check_apart<float16_t>(Dtype::Val::float16, group, bits, 64);
        check_apart<float16_t>(Dtype::Val::float16, group, bits, 0);
      }
      for (int i = 0; i < 20; ++i) {
        check_random(random, group, -8, 0);
        check_random(random, group, 100, -90);
        check_random(random, group, -90, 60);
        check_random(random, group, -110, 60);
        check_random(random, group, -100, -10);
      }
    }
  });
}

TEST_CASE("products with quantised weights do not depend on how tasks are shared") {
  on_each_product([](const char* name) {
    CAPTURE(name);
    Random random(45);
    for (int64_t m : {1, 3, 9}) {
      for (bool transposed : {true, false}) {
        check_ranges<bfloat16_t>(random, Dtype::Val::bfloat16, m, 704, 256, transposed);
        check_ranges<float16_t>(random, Dtype::Val::float16, m, 704, 128, transposed);
        check_ranges<float>(random, Dtype::Val::float32, m, 704, 64, transposed);
      }
    }
  });
}
