// fast::rms_norm, fast::layer_norm and fast::rope against their definitions.
#include "ops/numeric_testing.h"

using namespace holdfast;
using namespace holdfast::testing;

namespace {

std::vector<double> normalised(const array& x, const std::optional<array>& weight,
                               const std::optional<array>& bias, bool centred, double epsilon) {
  std::vector<double> values = doubles_of(x), w, b;
  if (weight) w = doubles_of(*weight);
  if (bias) b = doubles_of(*bias);
  auto length = static_cast<size_t>(x.shape(-1));
  for (size_t row = 0; row + length <= values.size() && length > 0; row += length) {
    double mean = 0, total = 0;
    for (size_t i = 0; i < length; ++i) mean += values[row + i] / static_cast<double>(length);
    if (!centred) mean = 0;
    for (size_t i = 0; i < length; ++i) total += std::pow(values[row + i] - mean, 2);
    double factor = 1 / std::sqrt(total / static_cast<double>(length) + epsilon);
    for (size_t i = 0; i < length; ++i) {
      double& value = values[row + i];
      value = (value - mean) * factor * (weight ? w[i] : 1) + (bias ? b[i] : 0);
    }
  }
  return values;
}

std::vector<double> rotated(const array& x, int dims, bool traditional,
                            const std::vector<double>& rates, double scale,
                            const std::vector<double>& offsets) {
  std::vector<double> in = doubles_of(x), out = in;
  size_t features = static_cast<size_t>(x.shape(-1)), positions = static_cast<size_t>(x.shape(-2));
  size_t batch_size = in.size() / std::max<size_t>(1, static_cast<size_t>(x.shape(0)));
  size_t pairs = static_cast<size_t>(dims) / 2;
  for (size_t row = 0; row * features < in.size(); ++row) {
    double offset = offsets[offsets.size() == 1 ? 0 : row * features / batch_size];
    double position = (static_cast<double>(row % positions) + offset) * scale;
    for (size_t i = 0; i < pairs; ++i) {
      size_t first = row * features + (traditional ? 2 * i : i);
      size_t second = traditional ? first + 1 : first + pairs;
      double c = std::cos(position * rates[i]), s = std::sin(position * rates[i]);
      out[first] = in[first] * c - in[second] * s;
      out[second] = in[first] * s + in[second] * c;
    }
  }
  return out;
}

std::vector<double> rates_of(double base, int dims) {
  std::vector<double> rates;
  for (int i = 0; i < dims / 2; ++i) rates.push_back(std::pow(base, -2.0 * i / dims));
  return rates;
}

}  // namespace

TEST_CASE("rms_norm and layer_norm over random shapes and layouts") {
  RandomArrays random(11);
  for (Dtype dtype : taken_here({float32, float16, bfloat16, float64})) {
    CAPTURE(std::string(dtype_name(dtype)));
    for (int round = 0; round < 60; ++round) {
      Shape shape;
      for (int d = random.pick(0, 2); d > 0; --d) shape.push_back(random.pick(1, 5));
      shape.push_back(round % 10 == 0 ? random.pick(1000, 3000) : random.pick(1, 100));
      CAPTURE(shape);
      array x = random.strided(shape, dtype);
      std::optional<array> weight, bias;
      if (random.flip()) weight = random.strided({shape.back()}, dtype);
      if (random.flip()) bias = random.strided({shape.back()}, dtype);
      double tolerance = 3 * rounding_of(dtype);
      check_close(fast::rms_norm(x, weight, 1e-5f), shape,
                  normalised(x, weight, std::nullopt, false, double(1e-5f)), tolerance);
      check_close(fast::layer_norm(x, weight, bias, 1e-3f), shape,
                  normalised(x, weight, bias, true, double(1e-3f)),
                  // A row of equal elements leaves the mean's rounding over the root of epsilon.
                  tolerance + 2e-6 * 40);
    }
  }
}

TEST_CASE("layer_norm of one value throughout is the bias") {
  for (int length : {1, 5, 64}) {
    array x = broadcast_to(array({7.1f, -1e4f, 0.0f}, {3, 1}), {3, length});
    array bias = full({length}, -0.4375f);
    check_values<float>(fast::layer_norm(x, std::nullopt, bias, 1e-5f), {3, length},
                        std::vector<float>(static_cast<size_t>(3 * length), -0.4375f));
  }
}

TEST_CASE("layer_norm of rows far from zero keeps its digits") {
  // The squares of these rows lose all digits of the variance, or overflow.
  for (float mean : {50.0f, -3000.0f, 2e19f}) {
    CAPTURE(mean);
    array x = (random::normal({5, 700}, random::key(3)) * 0.01f + 1.0f) * mean;
    check_close(fast::layer_norm(x, std::nullopt, std::nullopt, 0.0f), {5, 700},
                normalised(x, std::nullopt, std::nullopt, true, 0), 2e-4);
  }
}

TEST_CASE("a row is normalised to the same bits alone and among others") {
  for (Dtype dtype : taken_here({float32, float16, bfloat16, float64})) {
    CAPTURE(std::string(dtype_name(dtype)));
    for (int length : {1, 31, 128, 300, 1111}) {
      CAPTURE(length);
      array x = random::normal({7, length}, float32, random::key(4));
      x = astype(x + reshape(arange(0.0, 21.0, 3.0, float32), {7, 1}), dtype);
      array weight = astype(random::normal({length}, random::key(5)), dtype);
      array all = fast::layer_norm(x, weight, weight, 1e-5f);
      array all_rms = fast::rms_norm(x, weight, 1e-5f);
      for (int row = 0; row < 7; ++row) {
        CAPTURE(row);
        array one = slice(x, {row, 0}, {row + 1, length});
        auto same = [&](const array& a, const array& b) {
          return array_equal(slice(a, {row, 0}, {row + 1, length}), b).item<bool>();
        };
        CHECK(same(all, fast::layer_norm(one, weight, weight, 1e-5f)));
        CHECK(same(all_rms, fast::rms_norm(one, weight, 1e-5f)));
      }
    }
  }
}

TEST_CASE("a norm may take over its input's memory, and rows beyond the cache are right") {
  RandomArrays random(12);
  array x = random.dense({64, 40}, float32);
  std::vector<double> expected = normalised(x + x, std::nullopt, std::nullopt, true, 0);
  check_close(fast::layer_norm(x + x, std::nullopt, std::nullopt, 0.0f), {64, 40}, expected, 1e-5);
  // Larger than the last-level cache: written past it, here to rows that start anywhere in a line.
  array large = random::normal({20000, 1003}, random::key(1));
  array got = fast::rms_norm(large, std::nullopt, 1e-6f);
  array want = large * rsqrt(mean(large * large, -1, true) + 1e-6f);
  CHECK(allclose(got, want, 1e-5, 1e-5).item<bool>());
}

TEST_CASE("dtypes, empty arrays and errors of norms") {
  CHECK(fast::rms_norm(ones({2, 8}, float16), ones({8}), 1e-5f).dtype() == float32);
  CHECK(fast::layer_norm(ones({2, 8}, float16), std::nullopt, ones({8}), 0).dtype() == float16);
  CHECK(values_of<float>(fast::rms_norm(ones({0, 8}), std::nullopt, 0)).empty());
  CHECK(values_of<float>(fast::layer_norm(ones({3, 0}), ones({0}), std::nullopt, 0)).empty());
  check_error<std::invalid_argument>("rms_norm",
                                     [] { fast::rms_norm(array(1.0f), std::nullopt, 0); });
  check_error<std::invalid_argument>("rms_norm",
                                     [] { fast::rms_norm(ones({3}, int32), std::nullopt, 0); });
  check_error<std::invalid_argument>("rms_norm",
                                     [] { fast::rms_norm(ones({3}, complex64), std::nullopt, 0); });
  check_error<std::invalid_argument>("rms_norm", [] { fast::rms_norm(ones({3}), ones({4}), 0); });
  check_error<std::invalid_argument>(
      "layer_norm", [] { fast::layer_norm(ones({3}), ones({1, 3}), std::nullopt, 0); });
  check_error<std::invalid_argument>(
      "layer_norm", [] { fast::layer_norm(ones({3}), std::nullopt, ones({2}), 0); });
}

TEST_CASE("rope over random shapes, layouts and settings") {
  RandomArrays random(13);
  for (Dtype dtype : {float32, float16, bfloat16}) {
    CAPTURE(std::string(dtype_name(dtype)));
    for (int round = 0; round < 80; ++round) {
      Shape shape{random.pick(1, 3)};
      for (int d = random.pick(0, 2); d > 0; --d) shape.push_back(random.pick(1, 4));
      shape.push_back(random.pick(1, 40));
      shape.push_back(random.pick(2, 70));
      CAPTURE(shape);
      int dims = random.pick(1, shape.back() / 2) * 2;
      bool traditional = random.flip();
      float scale = random.flip() ? 1.0f : 0.25f;
      array x = random.strided(shape, dtype);
      double tolerance = rounding_of(dtype);
      std::vector<double> base_rates = rates_of(100, dims);
      check_close(fast::rope(x, dims, traditional, 100.0f, scale, 7), shape,
                  rotated(x, dims, traditional, base_rates, double(scale), {7.0}), tolerance);
      std::vector<int> starts;
      for (int b = 0; b < shape[0]; ++b) starts.push_back(random.pick(-5, 1000));
      check_close(
          fast::rope(x, dims, traditional, 100.0f, scale, array(starts.begin(), {shape[0]})), shape,
          rotated(x, dims, traditional, base_rates, double(scale),
                  std::vector<double>(starts.begin(), starts.end())),
          tolerance);
      array freqs = abs(random.strided({dims / 2}, float32)) + 0.5f;
      std::vector<double> given_rates;
      for (double f : doubles_of(freqs)) given_rates.push_back(1 / f);
      check_close(fast::rope(x, dims, traditional, std::nullopt, scale, array(3), freqs), shape,
                  rotated(x, dims, traditional, given_rates, double(scale), {3.0}), tolerance);
    }
  }
  // Far positions: a float32 angle would be off by more than 0.01.
  array x = random.dense({1, 1, 2, 64}, float32);
  check_close(fast::rope(x, 64, false, 10000.0f, 1.0f, 1000000), {1, 1, 2, 64},
              rotated(x, 64, false, rates_of(10000, 64), 1, {1e6}), 2e-6);
}

TEST_CASE("empty arrays and errors of rope") {
  CHECK(values_of<float>(fast::rope(ones({2, 0, 8}), 8, false, 10.0f, 1, 0)).empty());
  auto fails = [](const std::function<void()>& call) {
    check_error<std::invalid_argument>("rope", call);
  };
  array x = ones({2, 3, 4, 8});
  fails([&] { fast::rope(ones({4, 8}), 8, false, 10.0f, 1, 0); });
  fails([&] { fast::rope(ones({2, 4, 8}, int32), 8, false, 10.0f, 1, 0); });
  fails([&] { fast::rope(x, 7, false, 10.0f, 1, 0); });
  fails([&] { fast::rope(x, 10, false, 10.0f, 1, 0); });
  fails([&] { fast::rope(x, -2, false, 10.0f, 1, 0); });
  fails([&] { fast::rope(x, 8, false, std::nullopt, 1, 0); });
  fails([&] { fast::rope(x, 8, false, 10.0f, 1, 0, ones({4})); });
  fails([&] { fast::rope(x, 8, false, std::nullopt, 1, 0, ones({3})); });
  fails([&] { fast::rope(x, 8, false, 10.0f, 1, array({1, 2, 3})); });
  fails([&] { fast::rope(x, 8, false, 10.0f, 1, array(1.5f)); });
}
