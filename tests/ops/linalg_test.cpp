// Factorisations multiply back; everything else against hand-made values.
#include <holdfast/linalg.h>

#include "ops/numeric_testing.h"

using namespace holdfast;
using namespace holdfast::testing;

namespace {

bool close(const array& a, const array& b, double tolerance = 1e-3) {
  return a.shape() == b.shape() && allclose(a, b, tolerance, tolerance).item<bool>();
}
array flipped(const array& a) { return swapaxes(a, -1, -2); }

}  // namespace

// Factorisations are refused on a GPU, as in MLX.
TEST_CASE_FIXTURE(OnCpu, "factorisations multiply back") {
  RandomArrays random(81);
  for (Dtype dtype : {float32, float64}) {
    for (auto [m, n] : {std::pair{4, 4}, {6, 3}, {3, 6}, {1, 1}}) {
      array a = random.strided({2, m, n}, dtype);
      auto [q, r] = linalg::qr(a);
      CHECK(close(matmul(q, r), a));
      CHECK(close(matmul(flipped(q), q),
                  broadcast_to(eye(std::min(m, n), dtype), {2, std::min(m, n), std::min(m, n)})));
      CHECK(close(triu(r), r));
      std::vector<array> usv = linalg::svd(a);
      REQUIRE(usv[0].shape() == Shape{2, m, m});
      REQUIRE(usv[2].shape() == Shape{2, n, n});
      int k = std::min(m, n);
      array u = slice(usv[0], {0, 0, 0}, {2, m, k}), vt = slice(usv[2], {0, 0, 0}, {2, k, n});
      CHECK(close(matmul(u * expand_dims(usv[1], -2), vt), a));
      CHECK(close(linalg::svd(a, false, {})[0], usv[1]));
      std::vector<array> plu = linalg::lu(a);
      array rows = take_along_axis(plu[1], broadcast_to(expand_dims(plu[0], -1), {2, m, k}), 1);
      CHECK(close(matmul(rows, plu[2]), a));
      array p = linalg::pinv(a);
      CHECK(close(matmul(matmul(a, p), a), a));
    }
    array a = random.dense({3, 5, 5}, dtype), unit = broadcast_to(eye(5, dtype), {3, 5, 5});
    CHECK(close(matmul(linalg::inv(a), a), unit, 1e-2));
    array spd = matmul(a, flipped(a)) + unit;
    array lower = linalg::cholesky(spd), upper = linalg::cholesky(spd, true);
    CHECK(close(matmul(lower, flipped(lower)), spd));
    CHECK(close(matmul(flipped(upper), upper), spd));
    CHECK(close(matmul(linalg::cholesky_inv(lower), spd), unit));
    CHECK(close(matmul(linalg::cholesky_inv(upper, true), spd), unit));
    CHECK(close(matmul(linalg::tri_inv(lower), lower), unit));
    array b = random.strided({5, 2}, dtype);
    CHECK(close(matmul(spd, linalg::solve(spd, b)), broadcast_to(b, {3, 5, 2})));
    CHECK(close(matmul(lower, linalg::solve_triangular(lower, b)), broadcast_to(b, {3, 5, 2})));
    auto [values, vectors] = linalg::eigh(spd);
    CHECK(close(matmul(vectors * expand_dims(values, -2), flipped(vectors)), spd));
    CHECK(close(linalg::eigvalsh(tril(spd)), values));
    CHECK(close(linalg::eigvalsh(triu(spd), "U"), values));
    CHECK(close(linalg::det(spd), prod(values, -1), 1e-2));
    auto [sign, logarithm] = linalg::slogdet(spd);
    CHECK(close(logarithm, sum(log(values), -1)));
    CHECK(close(sign, ones({3}, dtype)));
    auto [numbers, columns] = linalg::eig(a);
    CHECK(numbers.dtype() == complex64);
    CHECK(close(matmul(astype(a, complex64), columns), columns * expand_dims(numbers, -2)));
    CHECK(linalg::eigvals(a).shape() == Shape{3, 5});
  }
  auto [lu, pivots] = linalg::lu_factor(array({4.0f, 3.0f, 6.0f, 3.0f}, {2, 2}));
  check_values<uint32_t>(pivots, {2}, {1, 1});
  CHECK(close(lu, array({6.0f, 3.0f, 2.0f / 3, 1.0f}, {2, 2})));
}

TEST_CASE_FIXTURE(OnCpu, "norms and cross products") {
  array a({3.0f, -4.0f, 0.0f, 12.0f}, {2, 2});
  auto value = [](array x) { return doctest::Approx(double(x.item<float>())); };
  CHECK(value(linalg::norm(a)) == 13.0);
  CHECK(value(linalg::norm(a, "fro")) == 13.0);
  CHECK(value(linalg::norm(reshape(a, {1, 2, 2}))) == 13.0);
  check_error<std::invalid_argument>(
      "norm", [&] { linalg::norm(reshape(a, {1, 2, 2}), std::vector<int>{0, 1, 2}); });
  CHECK(value(linalg::norm(a, 1.0)) == 16.0);
  CHECK(value(linalg::norm(a, -1.0)) == 3.0);
  CHECK(value(linalg::norm(a, INFINITY)) == 12.0);
  CHECK(close(linalg::norm(a, 1), array({5.0f, 12.0f})));
  CHECK(close(linalg::norm(a, 1.0, 0), array({3.0f, 16.0f})));
  CHECK(close(linalg::norm(a, 3.0, 1, true), array({4.497941f, 12.0f}, {2, 1})));
  CHECK(close(linalg::norm(a, 0.0, 1), array({2.0f, 1.0f})));
  array singular = linalg::svd(a, false, {})[0];
  CHECK(close(linalg::norm(a, 2.0), max(singular)));
  CHECK(close(linalg::norm(a, "nuc"), sum(singular)));
  check_values<float>(linalg::cross(array({1.0f, 0.0f, 0.0f}), array({0.0f, 1.0f, 0.0f})), {3},
                      {0, 0, 1});
  check_values<int>(linalg::cross(array({1, 2}), array({3, 4})), {3}, {0, 0, -2});
}

TEST_CASE_FIXTURE(OnCpu, "errors of linear algebra") {
  array square = ones({3, 3});
  auto fails = [](const char* op, const std::function<void()>& call) {
    check_error<std::invalid_argument>(op, call);
  };
  fails("inv", [&] { linalg::inv(ones({3, 2})); });
  fails("inv", [&] { linalg::inv(ones({3})); });
  fails("inv", [&] { linalg::inv(astype(square, float16)); });
  fails("eigh", [&] { linalg::eigh(square, "X"); });
  fails("solve", [&] { linalg::solve(square, ones({4})); });
  fails("norm", [&] { linalg::norm(ones({2, 2, 2}), 2.0); });
  fails("norm", [&] { linalg::norm(square, "other"); });
  fails("cross", [&] { linalg::cross(ones({4}), ones({4})); });
  CHECK_THROWS_AS(linalg::inv(zeros({2, 2})).eval(), std::runtime_error);
  CHECK_THROWS_AS(linalg::cholesky(-eye(2)).eval(), std::runtime_error);
  CHECK(linalg::inv(zeros({0, 3, 3})).shape() == Shape{0, 3, 3});
}
