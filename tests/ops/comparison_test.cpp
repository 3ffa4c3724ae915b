// array_equal, isclose, allclose.
#include "ops/array_testing.h"

using namespace holdfast;
using namespace holdfast::testing;

namespace {
bool truth(array a) {
  CHECK(a.dtype() == bool_);
  return a.item<bool>();
}
}  // namespace

TEST_CASE("array_equal compares shapes, then promoted values") {
  array a({1.0f, 2.0f}), n({1.0f, std::nanf("")});
  CHECK(truth(array_equal(a, a)));
  CHECK(truth(array_equal(a, array({1, 2}, int32))));
  CHECK_FALSE(truth(array_equal(a, array({1.0f, 2.5f}))));
  CHECK_FALSE(truth(array_equal(a, reshape(a, {1, 2}))));
  CHECK_FALSE(truth(array_equal(n, n)));
  CHECK(truth(array_equal(n, n, true)));
  CHECK_FALSE(truth(array_equal(n, a, true)));
  CHECK(truth(array_equal(zeros({0, 2}), zeros({0, 2}, int8))));
  CHECK(
      truth(array_equal(transpose(reshape(arange(6), {2, 3})), array({0, 3, 1, 4, 2, 5}, {3, 2}))));
}

TEST_CASE("isclose and allclose: tolerances, infinities, NaN") {
  float infinity = INFINITY, nan = std::nanf("");
  array a({1.0f, infinity, -infinity, infinity, nan, 100.0f});
  array b({1.0f + 5e-6f, infinity, infinity, 3.0f, nan, 101.0f});
  check_values<bool>(isclose(a, b), {6}, {true, true, false, false, false, false});
  check_values<bool>(isclose(a, b, 0.01, 0.0, true), {6}, {true, true, false, false, true, true});
  check_values<bool>(isclose(array({1, 2}, int32), array({1, 3}, int32)), {2}, {true, false});
  CHECK(truth(allclose(zeros({2}), zeros({1, 2}))));
  CHECK_FALSE(truth(allclose(a, b)));
  CHECK(truth(allclose(array({complex64_t(1, 1)}), array({complex64_t(1, 1.000001f)}))));
  check_error<std::invalid_argument>("subtract", [] { isclose(zeros({2}), zeros({3})); });
}
