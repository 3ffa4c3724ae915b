// Arrays from nothing.
#include "ops/array_testing.h"

using namespace holdfast;
using namespace holdfast::testing;

TEST_CASE("arange: dtypes, steps, lengths") {
  check_values<int>(arange(5), {5}, {0, 1, 2, 3, 4});
  check_values<int>(arange(5, 0, -2), {3}, {5, 3, 1});
  check_values<float>(arange(3.0), {3}, {0, 1, 2});
  check_values<float>(arange(0.0, 1.0, 0.25), {4}, {0, 0.25, 0.5, 0.75});
  check_values<int8_t>(arange(-2.0, 2.0, int8), {4}, {-2, -1, 0, 1});
  // Of integers the first two say what the step is.
  check_values<int>(arange(0.5, 5.0, 1.5, int32), {3}, {0, 2, 4});
  check_values<int>(arange(-1.0, 1.0, 0.5, int32), {4}, {-1, 0, 1, 2});
  check_values<uint8_t>(arange(0.0, 2.0, 0.5, uint8), {4}, {0, 0, 0, 0});
  CHECK(arange(0, 5, -1).size() == 0);
  CHECK(arange(0.0, 10.0, std::numeric_limits<double>::infinity()).size() == 1);
  CHECK(values_of<float>(arange(0.0, 10.0, std::numeric_limits<double>::infinity()))[0] == 0.0f);
  // Each value is rounded once: no error adds up.
  std::vector<float> tenths = values_of<float>(arange(0.0, 1000.0, 0.1));
  CHECK(tenths[9999] == static_cast<float>(9999 * 0.1));
  std::vector<int> many = values_of<int>(arange(100000));
  CHECK(many[99999] == 99999);
  check_error<std::invalid_argument>("arange", [] { arange(0.0, 1.0, 0.0); });
  check_error<std::invalid_argument>("arange", [] { arange(std::nan("")); });
  check_error<std::invalid_argument>("arange",
                                     [] { arange(0.0, std::numeric_limits<double>::infinity()); });
  check_error<std::invalid_argument>("arange", [] { arange(0.0, 1.0, std::nan("")); });
  check_error<std::invalid_argument>("arange", [] { arange(3.0, bool_); });
  check_error<std::invalid_argument>("arange", [] { arange(1e12); });
}

TEST_CASE("linspace") {
  check_values<float>(linspace(0, 10, 5), {5}, {0, 2.5, 5, 7.5, 10});
  check_values<int>(linspace(0, 10, 5, int32), {5}, {0, 2, 5, 7, 10});
  check_values<float>(linspace(0, 1, 4, false), {4}, {0, 0.25, 0.5, 0.75});
  check_values<float>(linspace(3, 4, 1), {1}, {3});
  CHECK(linspace(0, 1, 0).size() == 0);
  CHECK(linspace(0, 1).shape() == Shape{50});
  CHECK(values_of<float>(linspace(0.1, 7.3, 50))[49] == 7.3f);
  check_error<std::invalid_argument>("linspace", [] { linspace(0, 1, -1); });
}

TEST_CASE("full, zeros, ones and their likes, for every dtype") {
  for (Dtype dtype : all_dtypes()) {
    CAPTURE(std::string(dtype_name(dtype)));
    CHECK(values_of<bool>(all(equal(zeros({3, 2}, dtype), array(0, dtype))))[0]);
    CHECK(values_of<bool>(all(equal(ones({3, 2}, dtype), array(1, dtype))))[0]);
    CHECK(ones_like(zeros({3}, dtype)).dtype() == dtype);
    CHECK(zeros({0, 3}, dtype).shape() == Shape{0, 3});
  }
  CHECK(zeros({2}).dtype() == float32);
  check_values<float>(full({2, 2}, 1.5f), {2, 2}, {1.5, 1.5, 1.5, 1.5});
  check_values<int>(full({2, 3}, array({1, 2, 3}, int32)), {2, 3}, {1, 2, 3, 1, 2, 3});
  check_values<int>(full({2, 2}, array({1, 2}, {2, 1})), {2, 2}, {1, 1, 2, 2});
  check_values<int8_t>(full({2}, 7.9f, int8), {2}, {7, 7});
  check_values<int>(full({}, 7), {}, {7});
  check_values<int>(full_like(zeros({2}, int32), 3.7f), {2}, {3, 3});
  array row = full({2, 3}, array({1, 2, 3}, int32));
  check_layout(row, {3, 1}, true, true, false, 6);
  CHECK(values_of<uint8_t>(full({3000000}, 9, uint8))[2999999] == 9);
  check_error<std::invalid_argument>("full", [] { zeros({-1}); });
  check_error<std::invalid_argument>("full", [] { full({2}, array({1, 2, 3}, int32)); });
  check_error<std::invalid_argument>("full", [] { full({}, array({1, 2, 3}, int32)); });
  check_error<std::overflow_error>("full", [] { zeros({2147483647, 2147483647, 4}); });
}

TEST_CASE("eye, identity, tri, tril, triu") {
  check_values<float>(eye(2), {2, 2}, {1, 0, 0, 1});
  check_values<float>(eye(2, 3, 1), {2, 3}, {0, 1, 0, 0, 0, 1});
  check_values<float>(eye(3, 2, -1), {3, 2}, {0, 0, 1, 0, 0, 1});
  check_values<bool>(identity(2, bool_), {2, 2}, {true, false, false, true});
  CHECK(eye(3, float16).dtype() == float16);
  CHECK(eye(0).shape() == Shape{0, 0});
  CHECK(values_of<float>(sum(eye(2, 2, std::numeric_limits<int>::max())))[0] == 0);
  // Diagonals at the corners, just outside, and far outside.
  constexpr int far = std::numeric_limits<int>::max();
  for (int k : {-far, -4, -3, -2, -1, 0, 1, 3, 4, 5, far}) {
    std::vector<float> lower, diagonal;
    for (int64_t row = 0; row < 3; ++row) {
      for (int64_t column = 0; column < 4; ++column) {
        lower.push_back(row + k >= column ? 1.0f : 0.0f);
        diagonal.push_back(row + k == column ? 1.0f : 0.0f);
      }
    }
    CAPTURE(k);
    check_values<float>(tri(3, 4, k, float32), {3, 4}, lower);
    check_values<float>(eye(3, 4, k), {3, 4}, diagonal);
  }
  check_values<float>(tri(2, 3, 1, float32), {2, 3}, {1, 1, 0, 1, 1, 1});
  array a = reshape(arange(6), {2, 3});
  check_values<int>(tril(a), {2, 3}, {0, 0, 0, 3, 4, 0});
  check_values<int>(triu(a), {2, 3}, {0, 1, 2, 0, 4, 5});
  check_values<int>(triu(a, 1), {2, 3}, {0, 1, 2, 0, 0, 5});
  check_values<int>(triu(a, std::numeric_limits<int>::min()), {2, 3}, {0, 1, 2, 3, 4, 5});
  CHECK(tril(zeros({4, 2, 3})).shape() == Shape{4, 2, 3});
  check_error<std::invalid_argument>("eye", [] { eye(-1); });
  check_error<std::invalid_argument>("eye", [] { eye(2, -1); });
  check_error<std::invalid_argument>("tri", [] { tri(-1, float32); });
  check_error<std::invalid_argument>("tril", [] { tril(zeros({2})); });
  check_error<std::invalid_argument>("triu", [] { triu(array(1)); });
}

TEST_CASE("meshgrid") {
  std::vector<array> xy = meshgrid({arange(2), arange(3)});
  check_values<int>(xy[0], {3, 2}, {0, 1, 0, 1, 0, 1});
  check_values<int>(xy[1], {3, 2}, {0, 0, 1, 1, 2, 2});
  std::vector<array> ij = meshgrid({arange(2), arange(3)}, true, "ij");
  CHECK(ij[0].shape() == Shape{2, 1});
  CHECK(ij[1].shape() == Shape{1, 3});
  CHECK(meshgrid({arange(2), arange(3), zeros({0})})[0].shape() == Shape{3, 2, 0});
  check_error<std::invalid_argument>("meshgrid", [] { meshgrid({arange(2)}, false, "ji"); });
}
