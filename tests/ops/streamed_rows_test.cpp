// Softmax, norms and rope over rows: written past the cache or through it, with any length behind
// the last whole register, the results are the same; and rows that are hard to normalise.
#include <doctest/doctest.h>
#include <holdfast/holdfast.h>

#include <cmath>
#include <functional>
#include <limits>

#include "kernels/cpu/copy.h"

using namespace holdfast;

namespace {

bool same(const array& a, const array& b) { return all(equal(a, b)).item<bool>(); }

array rows_of(Dtype dtype, int length) {
  return random::normal({3, 2, 5, length}, dtype, random::key(7));
}

// Every result with all outputs past the cache, and with none.
void check_streaming(const array& x, const std::function<array(const array&)>& op) {
  array through = op(x);
  eval(through);
  kernels::cpu::force_stream_threshold(1);
  array past = op(x);
  eval(past);
  kernels::cpu::unforce_stream_threshold();
  CHECK(same(through, past));
}

}  // namespace

TEST_CASE("rows are the same written past the cache") {
  for (Dtype dtype : {float32, bfloat16, float16}) {
    for (int length : {32, 100, 128, 512}) {
      CAPTURE(length);
      array x = rows_of(dtype, length);
      array weight = random::normal({length}, dtype, random::key(1));
      array bias = random::normal({length}, dtype, random::key(2));
      eval(x, weight, bias);
      check_streaming(x, [](const array& a) { return softmax(a, -1); });
      check_streaming(x, [&](const array& a) { return fast::rms_norm(a, weight, 1e-5f); });
      check_streaming(x, [&](const array& a) { return fast::layer_norm(a, weight, bias, 1e-5f); });
      for (bool traditional : {false, true}) {
        check_streaming(x, [&](const array& a) {
          return fast::rope(a, length / 4 * 4, traditional, 10000.0f, 1.0f, 3);
        });
      }
    }
  }
}

TEST_CASE("rope gives each batch what it gives it alone") {
  array x = rows_of(bfloat16, 64);
  array together = fast::rope(x, 64, false, 10000.0f, 1.0f, 5);
  for (int batch = 0; batch < 3; ++batch) {
    array alone = fast::rope(take(x, array({batch}), 0), 64, false, 10000.0f, 1.0f, 5);
    CHECK(same(take(together, array({batch}), 0), alone));
  }
}

TEST_CASE("softmax of a row does not depend on the rows beside it") {
  for (Dtype dtype : {float32, bfloat16, float16}) {
    for (int length : {31, 64, 200}) {
      CAPTURE(length);
      // Another row's maximum would make exponentials of these overflow or vanish.
      array heights = array({0.0f, 9000.0f, -30000.0f, 400.0f, 400.0f, 60000.0f, -5.0f});
      array x = random::normal({7, length}, random::key(8)) + reshape(heights, {7, 1});
      x = astype(x, dtype);
      array together = softmax(x, -1);
      for (int row = 0; row < x.shape(0); ++row) {
        CAPTURE(row);
        CHECK(same(take(together, row, 0), softmax(take(x, row, 0), -1)));
      }
    }
  }
}

TEST_CASE("softmax of rows of half types: tails, infinities and NaN") {
  for (Dtype dtype : {bfloat16, float16}) {
    for (int length : {1, 31, 32, 33, 129}) {
      CAPTURE(length);
      array x = astype(random::normal({4, length}, random::key(3)) * 4.0f, dtype);
      array expected = softmax(astype(x, float32), -1);
      array error = max(abs(astype(softmax(x, -1), float32) - expected));
      CHECK(error.item<float>() <= (dtype == bfloat16 ? 0.5f / 256 : 0.5f / 2048) * 1.05f);
    }
    float infinity = std::numeric_limits<float>::infinity();
    array masked = astype(array({-infinity, 1.0f, -infinity, 1.0f}), dtype);
    CHECK(same(softmax(masked, -1), astype(array({0.0f, 0.5f, 0.0f, 0.5f}), dtype)));
    array negative_nan = astype(array({-std::nanf(""), 1.0f}), dtype);
    CHECK(all(isnan(softmax(negative_nan, -1))).item<bool>());
  }
}

TEST_CASE("layer_norm of a row whose first elements are far from the others") {
  array x = concatenate({full({64}, array(1e4f)), random::normal({4032}, random::key(4))}, 0);
  array result = fast::layer_norm(x, std::nullopt, std::nullopt, 1e-5f);
  StreamContext of_expected(Device::cpu);
  array wide = astype(x, float64);
  array expected = (wide - mean(wide)) / sqrt(var(wide) + array(1e-5, float64));
  CHECK(max(abs(astype(result, float64) - expected)).item<double>() < 1e-5);
}
