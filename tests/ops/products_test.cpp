// addmm, masked, gathered and segmented products, tensordot, einsum, kron.
#include <holdfast/einsum.h>

#include "ops/numeric_testing.h"

using namespace holdfast;
using namespace holdfast::testing;

namespace {

bool close(const array& a, const array& b) {
  return a.shape() == b.shape() && allclose(a, b, 1e-4, 1e-4).item<bool>();
}

// einsum by its definition: a loop over all letters.
std::vector<std::complex<double>> plain_einsum(const std::vector<std::string>& inputs,
                                               const std::string& output,
                                               const std::vector<array>& operands) {
  std::string letters = output;
  std::vector<int> sizes(256, 0);
  for (size_t i = 0; i < inputs.size(); ++i) {
    for (size_t d = 0; d < inputs[i].size(); ++d) {
      char c = inputs[i][d];
      if (letters.find(c) == letters.npos) letters += c;
      sizes[size_t(c)] = std::max(sizes[size_t(c)], operands[i].shape(int(d)));
    }
  }
  std::vector<std::vector<std::complex<double>>> values;
  for (const array& operand : operands) values.push_back(complexes_of(operand));
  size_t inner = 1, outer = 1;
  for (size_t i = 0; i < letters.size(); ++i) {
    (i < output.size() ? outer : inner) *= size_t(sizes[size_t(letters[i])]);
  }
  std::vector<std::complex<double>> result(outer, 0);
  for (size_t position = 0; position < outer * inner; ++position) {
    std::vector<int> index(256, 0);
    size_t rest = position;
    for (size_t i = letters.size(); i-- > 0;) {
      auto size = size_t(sizes[size_t(letters[i])]);
      index[size_t(letters[i])] = int(rest % size);
      rest /= size;
    }
    std::complex<double> term = 1;
    for (size_t i = 0; i < inputs.size(); ++i) {
      size_t at = 0;
      for (size_t d = 0; d < inputs[i].size(); ++d) {
        int size = operands[i].shape(int(d));
        at = at * size_t(size) + size_t(size == 1 ? 0 : index[size_t(inputs[i][d])]);
      }
      term *= values[i][at];
    }
    result[position / inner] += term;
  }
  return result;
}

void check_einsum(const std::vector<std::string>& inputs, const std::string& output,
                  const std::vector<array>& operands) {
  std::string subscripts;
  for (const std::string& in : inputs) subscripts += (subscripts.empty() ? "" : ",") + in;
  subscripts += "->" + output;
  CAPTURE(subscripts);
  auto got = complexes_of(einsum(subscripts, operands));
  auto expected = plain_einsum(inputs, output, operands);
  REQUIRE(got.size() == expected.size());
  double worst = 0, largest = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    worst = std::max(worst, std::abs(got[i] - expected[i]));
    largest = std::max(largest, std::abs(expected[i]));
  }
  CHECK(worst <= 1e-5 * (1 + largest));
}

}  // namespace

TEST_CASE("addmm") {
  RandomArrays random(51);
  array a = random.strided({3, 4}, float32), b = random.strided({4, 5}, float32);
  array c = random.strided({5}, float32);
  CHECK(close(addmm(c, a, b), matmul(a, b) + c));
  CHECK(close(addmm(c, a, b, 2.0f, -0.5f), matmul(a, b) * 2.0f + c * -0.5f));
  CHECK(addmm(c, astype(a, float16), astype(b, float16)).dtype() == float32);
  check_error<std::invalid_argument>("addmm", [&] { addmm(ones({2, 3, 5}), a, b); });
  check_error<std::invalid_argument>(
      "addmm", [&] { addmm(ones({5}, int32), ones({3, 4}, int32), ones({4, 5}, int32)); });
}

TEST_CASE("block_masked_mm") {
  RandomArrays random(52);
  array a = random.dense({2, 40, 70}, float32), b = random.dense({2, 70, 33}, float32);
  array mask_a = random.dense({2, 2, 3}, float32), mask_b = random.dense({2, 3, 2}, float32) > 0.0f;
  array mask_out = random.dense({2, 2, 2}, float32);
  auto expanded = [](const array& mask, int rows, int columns) {
    array down = take(mask, floor_divide(arange(rows), array(32)), 1);
    return take(down, floor_divide(arange(columns), array(32)), 2);
  };
  array expected = matmul(a * expanded(mask_a, 40, 70), b * expanded(mask_b, 70, 33)) *
                   expanded(mask_out, 40, 33);
  CHECK(close(block_masked_mm(a, b, 32, mask_out, mask_a, mask_b), expected));
  CHECK(close(block_masked_mm(a, b, 64), matmul(a, b)));
  check_error<std::invalid_argument>("block_masked_mm",
                                     [&] { block_masked_mm(a, b, 16, mask_out); });
  check_error<std::invalid_argument>("block_masked_mm",
                                     [&] { block_masked_mm(a, b, 64, mask_out); });
}

TEST_CASE("gathered and segmented products") {
  RandomArrays random(53);
  array a = random.dense({5, 2, 3}, float32), b = random.dense({4, 3, 6}, float32);
  array left({0, 4}, {2, 1}), right({3, 3, 1});
  CHECK(close(gather_mm(a, b, left, right), matmul(take(a, left, 0), take(b, right, 0))));
  CHECK(close(gather_mm(slice(a, {0, 0, 0}, {3, 2, 3}), b, std::nullopt, right),
              matmul(slice(a, {0, 0, 0}, {3, 2, 3}), take(b, right, 0))));
  check_error<std::invalid_argument>("gather_mm",
                                     [&] { gather_mm(a, b, array({0.5f}), std::nullopt); });

  array x = random.strided({7, 20}, float32), y = random.strided({20, 9}, float32);
  array got = segmented_mm(x, y, array({0, 5, 5, 5, 3, 20}, {3, 2}));
  REQUIRE(got.shape() == Shape{3, 7, 9});
  CHECK(close(take(got, 0, 0), matmul(slice(x, {0, 0}, {7, 5}), slice(y, {0, 0}, {5, 9}))));
  CHECK(close(take(got, 1, 0), zeros({7, 9})));
  CHECK(close(take(got, 2, 0), matmul(slice(x, {0, 3}, {7, 20}), slice(y, {3, 0}, {20, 9}))));
  CHECK_THROWS(segmented_mm(x, y, array({0, 21}, {1, 2})).eval());
  check_error<std::invalid_argument>("segmented_mm", [&] { segmented_mm(x, y, array({1, 2, 3})); });
}

TEST_CASE("tensordot, inner, outer, kron") {
  RandomArrays random(54);
  array a = random.strided({2, 3, 4}, float32), b = random.strided({3, 4, 5}, float32);
  CHECK(close(tensordot(a, b), reshape(matmul(reshape(a, {2, 12}), reshape(b, {12, 5})), {2, 5})));
  CHECK(close(tensordot(a, b, {2, 1}, {1, 0}), tensordot(a, b)));
  CHECK(tensordot(a, b, 0).shape() == Shape{2, 3, 4, 3, 4, 5});
  CHECK(inner(a, random.dense({6, 4}, float32)).shape() == Shape{2, 3, 6});
  CHECK(close(inner(array(2.0f), a), a * 2.0f));
  check_values<int>(outer(array({1, 2}), array({3, 4, 5})), {2, 3}, {3, 4, 5, 6, 8, 10});
  check_values<int>(kron(array({1, 2}), array({3, 4}, {2, 1})), {2, 2}, {3, 6, 4, 8});
  check_error<std::invalid_argument>("tensordot", [&] { tensordot(a, b, 4); });
  check_error<std::invalid_argument>("tensordot", [&] { tensordot(a, b, {0}, {0}); });
  check_error<std::invalid_argument>("inner", [&] { inner(a, b); });
}

TEST_CASE("einsum against a loop over all letters") {
  RandomArrays random(55);
  auto make = [&](Shape shape) { return random.strided(shape, float32); };
  check_einsum({"ij", "jk"}, "ik", {make({3, 4}), make({4, 5})});
  check_einsum({"ij", "jk"}, "ki", {make({3, 4}), make({4, 5})});
  check_einsum({"bij", "bjk"}, "bik", {make({2, 3, 4}), make({2, 4, 5})});
  check_einsum({"ij"}, "ji", {make({3, 4})});
  check_einsum({"ij"}, "", {make({3, 4})});
  check_einsum({"ii"}, "i", {make({4, 4})});
  check_einsum({"iij"}, "j", {make({3, 3, 4})});
  check_einsum({"i", "j"}, "ij", {make({3}), make({4})});
  check_einsum({"i", "i"}, "", {make({3}), make({3})});
  check_einsum({"ij", "kj", "kl"}, "il", {make({3, 4}), make({5, 4}), make({5, 2})});
  check_einsum({"ab", "bc", "cd", "de"}, "ae",
               {make({2, 9}), make({9, 3}), make({3, 8}), make({8, 4})});
  check_einsum({"ijk", "jil"}, "kl", {make({3, 4, 2}), make({4, 3, 5})});
  check_einsum({"ij", "jk"}, "ik", {make({3, 1}), make({4, 5})});
  check_einsum({"abc", "d"}, "db", {make({2, 3, 4}), make({5})});
  array a = make({2, 3, 4}), b = make({4, 5});
  CHECK(close(einsum("...ij,jk->...ik", {a, b}), matmul(a, b)));
  CHECK(close(einsum("ij,jk", {make({3, 4}), b}), zeros({3, 5})) == false);
  CHECK(einsum("ba", {make({3, 4})}).shape() == Shape{4, 3});
  check_values<int>(einsum("ij,j->i", {array({1, 2, 3, 4}, {2, 2}), array({5, 6})}), {2}, {17, 39});
  auto [path, report] =
      einsum_path("ij,jk,kl->il", {ones({2, 100}), ones({100, 3}), ones({3, 50})});
  CHECK(path == std::vector<std::vector<int>>{{0, 1}, {0, 1}});
  CHECK(report.find("ij,jk,kl->il") != report.npos);
  auto fails = [](const std::function<void()>& call) {
    check_error<std::invalid_argument>("einsum", call);
  };
  fails([&] { einsum("ij,jk->ik", {a}); });
  fails([&] { einsum("ij->ik", {b}); });
  fails([&] { einsum("i->i", {b}); });
  fails([&] { einsum("ij,jk->ik", {b, b}); });
  fails([&] { einsum("i1->i", {b}); });
  fails([&] { einsum("ij->ii", {b}); });
}
