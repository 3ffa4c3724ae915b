// Matrix products of every shape and layout, against three loops.
#include "ops/array_testing.h"

using namespace holdfast;
using namespace holdfast::testing;

namespace {

array pattern(const Shape& shape, Dtype dtype, int seed) {
  int size = 1;
  for (int dim : shape) size *= dim;
  return astype(reshape((arange(size) * 7 + seed) % 11 - 5, shape), dtype);
}

std::vector<std::complex<double>> wide(const array& a) {
  std::vector<std::complex<double>> result;
  dispatch_dtype(a.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (T value : values_of<T>(a)) {
      if constexpr (std::is_same_v<T, complex64_t>)
        result.push_back({value.real(), value.imag()});
      else
        result.push_back(static_cast<double>(value));
    }
  });
  return result;
}

// Both operands with two dimensions or more.
void check_product(const array& a, const array& b) {
  array out = matmul(a, b);
  Shape batch = broadcast_shapes(Shape(a.shape().begin(), a.shape().end() - 2),
                                 Shape(b.shape().begin(), b.shape().end() - 2));
  Shape full_a = batch, full_b = batch;
  size_t m = static_cast<size_t>(a.shape(-2)), k = static_cast<size_t>(a.shape(-1)),
         n = static_cast<size_t>(b.shape(-1));
  full_a.push_back(a.shape(-2));
  full_a.push_back(a.shape(-1));
  full_b.push_back(b.shape(-2));
  full_b.push_back(b.shape(-1));
  Shape shape = batch;
  shape.push_back(a.shape(-2));
  shape.push_back(b.shape(-1));
  CAPTURE(a.shape());
  CAPTURE(b.shape());
  REQUIRE(out.shape() == shape);
  auto left = wide(broadcast_to(a, full_a)), right = wide(broadcast_to(b, full_b)), got = wide(out);
  size_t products = 1;
  for (int dim : batch) products *= static_cast<size_t>(dim);
  REQUIRE(got.size() == products * m * n);
  double worst = 0;
  for (size_t p = 0; p < products; ++p) {
    for (size_t i = 0; i < m; ++i) {
      for (size_t j = 0; j < n; ++j) {
        std::complex<double> total = 0;
        for (size_t l = 0; l < k; ++l)
          total += left[(p * m + i) * k + l] * right[(p * k + l) * n + j];
        worst = std::max(worst, std::abs(total - got[(p * m + i) * n + j]));
      }
    }
  }
  // Small integers: exact but for the rounding of half types.
  CHECK(worst <= (out.itemsize() == 2 ? 4.0 : 0.0));
}

}  // namespace

TEST_CASE("products of all shapes, for every dtype") {
  for (Dtype dtype : taken_here({float32, float64, complex64, float16, bfloat16})) {
    CAPTURE(std::string(dtype_name(dtype)));
    for (auto [m, n, k] : {std::tuple{1, 1, 1},
                           {2, 3, 4},
                           {5, 1, 3},
                           {1, 5, 3},
                           {7, 6, 1},
                           {33, 17, 65},
                           {3, 2, 0},
                           {0, 2, 3},
                           {2, 0, 3}}) {
      check_product(pattern({m, k}, dtype, 1), pattern({k, n}, dtype, 2));
      check_product(transpose(pattern({k, m}, dtype, 1)), pattern({k, n}, dtype, 2));
      check_product(pattern({m, k}, dtype, 1), transpose(pattern({n, k}, dtype, 2)));
    }
    check_product(pattern({2, 1, 3, 4}, dtype, 1), pattern({5, 4, 2}, dtype, 2));
    check_product(pattern({3, 4}, dtype, 1), pattern({2, 3, 4, 2}, dtype, 2));
    check_product(pattern({2, 3, 4}, dtype, 1), pattern({4, 2}, dtype, 2));
    check_product(pattern({0, 3, 4}, dtype, 1), pattern({4, 2}, dtype, 2));
    // Steps, reversals and repeated rows.
    check_product(slice(pattern({6, 8}, dtype, 1), {0, 1}, {6, 8}, {2, 2}),
                  pattern({4, 3}, dtype, 2));
    check_product(slice(pattern({3, 4}, dtype, 1), {2, 3}, {-4, -5}, {-1, -1}),
                  pattern({4, 3}, dtype, 2));
    check_product(broadcast_to(pattern({4}, dtype, 1), {3, 4}),
                  broadcast_to(pattern({4, 1}, dtype, 2), {4, 3}));
    check_product(transpose(pattern({4, 2, 3}, dtype, 1), {1, 2, 0}), pattern({4, 5}, dtype, 2));
  }
  check_product(pattern({300, 200}, float32, 1), pattern({200, 500}, float32, 3));
}

TEST_CASE("vectors") {
  array v({1.0f, 2.0f, 3.0f}), m = reshape(arange(6.0), {3, 2});
  check_values<float>(matmul(v, v), {}, {14});
  check_values<float>(matmul(v, m), {2}, {16, 22});
  check_values<float>(matmul(transpose(m), v), {2}, {16, 22});
  CHECK(matmul(zeros({4, 2, 3}), v).shape() == Shape{4, 2});
  CHECK(matmul(v, zeros({4, 3, 2})).shape() == Shape{4, 2});
  check_values<float>(matmul(zeros({0}), zeros({0})), {}, {0});
}

TEST_CASE("dtypes and errors of matmul") {
  CHECK(matmul(zeros({2, 2}, float16), zeros({2, 2}, int32)).dtype() == float16);
  CHECK(matmul(zeros({2, 2}, float16), zeros({2, 2}, float32)).dtype() == float32);
  check_error<std::invalid_argument>("matmul",
                                     [] { matmul(zeros({2, 2}, int32), zeros({2, 2}, int32)); });
  check_error<std::invalid_argument>("matmul", [] { matmul(array(1.0f), zeros({2})); });
  check_error<std::invalid_argument>("matmul", [] { matmul(zeros({2, 3}), zeros({4, 5})); });
  check_error<std::invalid_argument>("matmul", [] { matmul(zeros({2, 3}), zeros({4})); });
  check_error<std::invalid_argument>("matmul", [] { matmul(zeros({2, 1, 3}), zeros({3, 3, 5})); });
  try {
    matmul(zeros({2, 3}), zeros({4, 5}));
  } catch (const std::invalid_argument& error) {
    CHECK(std::string(error.what()) ==
          "[matmul] last dimension of a (3) must match second-to-last of b (4): shapes (2,3) and "
          "(4,5)");
  }
}
