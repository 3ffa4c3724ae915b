// hadamard_transform: what it multiplies with is a Hadamard matrix; MLX's, as tests/peers sees.
#include <cmath>

#include "ops/array_testing.h"

using namespace holdfast;
using namespace holdfast::testing;

TEST_CASE("hadamard_transform multiplies with a matrix of signs whose rows are orthogonal") {
  for (int n : {1, 2, 8, 12, 20, 24, 28, 80, 112, 8192, 12 * 1024}) {
    CAPTURE(n);
    int rows = std::min(n, 40);
    array matrix = hadamard_transform(slice(eye(n), {0, 0}, {rows, n}), 1.0f);
    CHECK(array_equal(abs(matrix), ones({rows, n})).item<bool>());
    array products = matmul(matrix, transpose(matrix));
    CHECK(array_equal(products, array(static_cast<float>(n)) * eye(rows)).item<bool>());
  }
}

TEST_CASE("hadamard_transform scales by the root of the size unless told") {
  array a = reshape(arange(48.0f), {2, 24});
  array sums = hadamard_transform(a, 1.0f);
  CHECK(allclose(hadamard_transform(a), sums / std::sqrt(24.0)).item<bool>());
  CHECK(array_equal(hadamard_transform(astype(a, int32), 1.0f), sums).item<bool>());
  array half = hadamard_transform(astype(a, float16), 1.0f);
  CHECK(half.dtype() == float16);
  CHECK(allclose(half, astype(sums, float16)).item<bool>());
}

TEST_CASE("hadamard_transform refuses what has no such matrix, but not a stack of no rows") {
  CHECK_THROWS_AS(hadamard_transform(ones({3, 6})), std::invalid_argument);
  CHECK_THROWS_AS(hadamard_transform(ones({3, 0})), std::invalid_argument);
  CHECK(hadamard_transform(ones({0, 4})).shape() == Shape{0, 4});
  CHECK_THROWS_AS(hadamard_transform(ones({4, 0})), std::invalid_argument);
  CHECK_THROWS_AS(hadamard_transform(ones({4}, float64)), std::invalid_argument);
  CHECK_THROWS_AS(hadamard_transform(ones({4}, complex64)), std::invalid_argument);
}
