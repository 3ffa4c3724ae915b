// Reductions over every subset of axes, for every dtype and kind of view, against plain loops.
#include <algorithm>
#include <numeric>

#include "ops/array_testing.h"

using namespace holdfast;
using namespace holdfast::testing;

namespace {

using Function = array (*)(const array&, const std::vector<int>&, bool, StreamOrDevice);
struct Row {
  const char* name;
  Function function;
  // What a loop over doubles gives, starting from `first`.
  double first;
  double (*step)(double, double);
  bool has_identity;
};
const Row rows[] = {
    {"sum", sum, 0, [](double a, double b) { return a + b; }, true},
    {"prod", prod, 1, [](double a, double b) { return a * b; }, true},
    {"min", min, INFINITY, [](double a, double b) { return std::min(a, b); }, false},
    {"max", max, -INFINITY, [](double a, double b) { return std::max(a, b); }, false},
    {"all", all, 1, [](double a, double b) { return double(a != 0 && b != 0); }, true},
    {"any", any, 0, [](double a, double b) { return double(a != 0 || b != 0); }, true},
};

// The elements as doubles (complex: the real parts).
std::vector<double> doubles_of(const array& a) {
  std::vector<double> result;
  dispatch_dtype(a.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (T value : values_of<T>(a)) result.push_back(convert_element<double>(value));
  });
  return result;
}

std::vector<int> subset(int mask, int count) {
  std::vector<int> axes;
  for (int i = 0; i < count; ++i) {
    if (mask >> i & 1) axes.push_back(i);
  }
  return axes;
}

// Where each element of `shape` goes when `axes` are reduced.
std::vector<size_t> targets(const Shape& shape, const std::vector<int>& axes) {
  size_t size = 1;
  for (int dim : shape) size *= static_cast<size_t>(dim);
  std::vector<size_t> result;
  for (size_t i = 0; i < size; ++i) {
    size_t rest = i, place = 0, stride = 1;
    for (int d = static_cast<int>(shape.size()) - 1; d >= 0; --d) {
      size_t dim = static_cast<size_t>(shape[static_cast<size_t>(d)]);
      if (std::find(axes.begin(), axes.end(), d) == axes.end()) {
        place += rest % dim * stride;
        stride *= dim;
      }
      rest /= dim;
    }
    result.push_back(place);
  }
  return result;
}

void check_reduction(const Row& row, const array& a, const std::vector<int>& axes) {
  for (bool keepdims : {false, true}) {
    Shape shape;
    size_t outputs = 1, reduced = 1;
    for (int d = 0; d < static_cast<int>(a.ndim()); ++d) {
      bool is_reduced = std::find(axes.begin(), axes.end(), d) != axes.end();
      (is_reduced ? reduced : outputs) *= static_cast<size_t>(a.shape(d));
      if (!is_reduced)
        shape.push_back(a.shape(d));
      else if (keepdims)
        shape.push_back(1);
    }
    CAPTURE(row.name);
    CAPTURE(axes);
    CAPTURE(a.shape());
    if (reduced == 0 && outputs > 0 && !row.has_identity) {
      check_error<std::invalid_argument>(row.name, [&] { row.function(a, axes, keepdims, {}); });
      continue;
    }
    array out = row.function(a, axes, keepdims, {});
    REQUIRE(out.shape() == shape);
    std::vector<double> elements = doubles_of(a), expected(outputs, row.first);
    std::vector<size_t> places = targets(a.shape(), axes);
    for (size_t i = 0; i < elements.size(); ++i)
      expected[places[i]] = row.step(expected[places[i]], elements[i]);
    std::vector<double> got = doubles_of(out);
    REQUIRE(got.size() == outputs);
    bool right = true;
    for (size_t i = 0; i < got.size(); ++i) {
      bool is_close =
          std::abs(got[i] - expected[i]) <= 1e-5 * std::abs(expected[i]) || got[i] == expected[i];
      right = right && is_close;
    }
    CHECK(right);
  }
}

}  // namespace

TEST_CASE("all subsets of axes of a 4-d shape") {
  array a = reshape(arange(2 * 3 * 4 * 5) % 7 - 3, {2, 3, 4, 5});
  array permuted = transpose(reshape(arange(2 * 3 * 4 * 5) % 7 - 3, {5, 3, 2, 4}), {2, 1, 3, 0});
  array steps = slice(reshape(arange(480) % 5 - 2, {2, 3, 8, 10}), {0, 0, 7, 0}, {2, 3, -9, 10},
                      {1, 1, -2, 2});
  array repeated = broadcast_to(reshape(arange(15) - 7, {3, 1, 5}), {2, 3, 4, 5});
  for (const Row& row : rows) {
    for (int mask = 0; mask < 16; ++mask) {
      for (const array& view : {a, permuted, steps, repeated})
        check_reduction(row, astype(view, float32), subset(mask, 4));
      check_reduction(row, a, subset(mask, 4) /* int32 */);
    }
  }
}

TEST_CASE("empty arrays and 0-d arrays") {
  for (const Row& row : rows) {
    for (int mask = 0; mask < 8; ++mask) {
      check_reduction(row, zeros({2, 0, 3}), subset(mask, 3));
    }
    check_reduction(row, array(2.0f), {});
  }
  CHECK(argmax(array(2.0f)).shape() == Shape{});
  CHECK(values_of<uint32_t>(argmax(array(2.0f)))[0] == 0);
}

TEST_CASE("every dtype: result dtypes and values") {
  for (Dtype dtype : all_dtypes()) {
    CAPTURE(std::string(dtype_name(dtype)));
    array a({1, 0, 1, 1, 0, 1}, {2, 3}, dtype);
    Dtype widened = dtype;
    if (dtype == bool_ || dtype == int8 || dtype == int16) widened = int32;
    if (dtype == uint8 || dtype == uint16) widened = uint32;
    CHECK(sum(a).dtype() == widened);
    CHECK(prod(a).dtype() == widened);
    CHECK(max(a).dtype() == dtype);
    CHECK(all(a).dtype() == bool_);
    CHECK(argmin(a).dtype() == uint32);
    for (const Row& row : rows) {
      for (int mask = 0; mask < 4; ++mask) check_reduction(row, a, subset(mask, 2));
    }
    CHECK(values_of<uint32_t>(argmax(a, 1)) == std::vector<uint32_t>{0, 0});
    CHECK(values_of<uint32_t>(argmin(a, 1)) == std::vector<uint32_t>{1, 1});
    CHECK(doubles_of(mean(a))[0] == doctest::Approx(4.0 / 6).epsilon(0.01));
    CHECK(mean(a).dtype() == (issubdtype(dtype, inexact) ? dtype : float32));
  }
  CHECK(values_of<uint32_t>(sum(full({300}, 255, uint8)))[0] == 300 * 255);
}

TEST_CASE("overloads") {
  array a = reshape(arange(6.0), {2, 3});
  CHECK(sum(a).shape() == Shape{});
  CHECK(sum(a, true).shape() == Shape{1, 1});
  CHECK(sum(a, -1).shape() == Shape{2});
  CHECK(sum(a, {0, 1}, true).shape() == Shape{1, 1});
  CHECK(sum(a, 0, true).shape() == Shape{1, 3});
  array over_none = sum(a, std::vector<int>{});
  check_values<float>(over_none, {2, 3}, {0, 1, 2, 3, 4, 5});
  for (auto call : {+[](const array& x) { sum(x, 2); }, +[](const array& x) { mean(x, -3); },
                    +[](const array& x) { argmax(x, 2); }, +[](const array& x) { softmax(x, 5); },
                    +[](const array& x) { var(x, 2); }, +[](const array& x) { logsumexp(x, 2); }}) {
    CHECK_THROWS_AS(call(a), std::out_of_range);
  }
  check_error<std::invalid_argument>("sum", [&] { sum(a, {0, -2}); });
}

TEST_CASE("argmin and argmax find the first, and NaN") {
  array a({3.0f, 1.0f, 1.0f, 5.0f, 5.0f, 0.0f}, {2, 3});
  check_values<uint32_t>(argmin(a, 1), {2}, {1, 2});
  check_values<uint32_t>(argmax(a, 1), {2}, {0, 0});
  check_values<uint32_t>(argmax(a, 0, true), {1, 3}, {1, 1, 0});
  check_values<uint32_t>(argmax(a), {}, {3});
  check_values<uint32_t>(argmin(transpose(a)), {}, {5});
  check_values<uint32_t>(argmax(a, true), {1, 1}, {3});
  check_values<uint32_t>(argmax(array({1.0f, std::nanf(""), 7.0f})), {}, {1});
  CHECK(argmax(zeros({3, 0}), 0).shape() == Shape{0});
  check_error<std::invalid_argument>("argmax", [] { argmax(zeros({0, 3}), 0); });
  CHECK(std::isnan(values_of<float>(max(array({1.0f, std::nanf(""), 7.0f})))[0]));
  // A complex number is NaN where one part is, though the other could be compared.
  array halves(
      {complex64_t(1, 1), complex64_t(2, std::nanf("")), complex64_t(7, 0), complex64_t(-7, 0)});
  for (const array& b : {halves, repeat(expand_dims(halves, 1), 2, 1)}) {
    for (uint32_t index : values_of<uint32_t>(argmax(b, 0))) CHECK(index == 1);
    for (uint32_t index : values_of<uint32_t>(argmin(b, 0))) CHECK(index == 1);
    for (complex64_t most : values_of<complex64_t>(max(b, 0))) CHECK(std::isnan(most.imag()));
    for (complex64_t least : values_of<complex64_t>(min(b, 0))) CHECK(std::isnan(least.imag()));
  }
}

TEST_CASE("mean, var, std, count_nonzero, logsumexp") {
  array a({1.0f, 2.0f, 3.0f, 4.0f, 6.0f, 8.0f}, {2, 3});
  check_values<float>(mean(a, 1), {2}, {2, 6});
  check_values<float>(var(a, 1, false, 1), {2}, {1, 4});
  check_values<float>(holdfast::std(a, std::vector<int>{1}, true, 1), {2, 1}, {1, 2});
  CHECK(values_of<float>(var(array({1.0f, 2.0f, 3.0f})))[0] == doctest::Approx(2.0 / 3));
  CHECK(values_of<float>(var(array({complex64_t(1, 1), complex64_t(2, 0)})))[0] ==
        doctest::Approx(0.5));
  CHECK(std::isnan(values_of<float>(mean(zeros({0})))[0]));
  CHECK(std::isnan(values_of<float>(var(array({1.0f}), false, 1))[0]));
  // Sums beyond the range of float16 have a mean inside it.
  CHECK(values_of<float16_t>(mean(full({4}, 60000.0f, float16)))[0] == float16_t(60000.0f));
  check_values<int>(count_nonzero(array({1, 0, 2, 0, 0, 3}, {2, 3}), 1), {2}, {2, 1});
  check_values<int>(count_nonzero(array({1.0f, 0.0f, std::nanf("")})), {}, {2});
  float infinity = INFINITY;
  CHECK(values_of<float>(logsumexp(array({1.0f, 2.0f})))[0] == doctest::Approx(2.3132617));
  CHECK(values_of<float>(logsumexp(array({1000.0f, 1000.0f})))[0] == doctest::Approx(1000.6931));
  CHECK(values_of<float>(logsumexp(array({-infinity, -infinity})))[0] == -infinity);
  CHECK(values_of<float>(logsumexp(array({1.0f, infinity})))[0] == infinity);
  CHECK(logsumexp(zeros({2, 3, 4}), {0, 2}, true).shape() == Shape{1, 3, 1});
  CHECK(logsumexp(zeros({2, 3, 4}), {0, 2}).shape() == Shape{3});
  check_error<std::invalid_argument>("logsumexp", [] { logsumexp(zeros({0})); });
}

TEST_CASE("softmax over any axes, of any view") {
  for (Dtype dtype : taken_here({float16, bfloat16, float32, float64})) {
    for (const NamedView& input : views_of(std::vector<float>{1, 2, 3, -1, 0.5f, 4, -2}, dtype)) {
      CAPTURE(input.name);
      int ndim = static_cast<int>(input.view.ndim());
      for (int mask = 0; mask < 1 << ndim; ++mask) {
        std::vector<int> axes = subset(mask, ndim);
        array out = softmax(input.view, axes);
        CHECK(out.dtype() == dtype);
        REQUIRE(out.shape() == input.view.shape());
        std::vector<double> elements = doubles_of(input.view), got = doubles_of(out);
        std::vector<size_t> places = targets(input.view.shape(), axes);
        std::vector<double> totals(elements.size() + 1, 0.0);
        for (size_t i = 0; i < elements.size(); ++i) totals[places[i]] += std::exp(elements[i]);
        bool right = true;
        for (size_t i = 0; i < got.size(); ++i) {
          right = right && std::abs(got[i] - std::exp(elements[i]) / totals[places[i]]) <
                               (dtype.size() == 2 ? 4e-3 : 1e-6);
        }
        CHECK(right);
      }
    }
  }
  check_values<float>(softmax(array({0, 0}, int32)), {2}, {0.5, 0.5});
  CHECK(values_of<float>(softmax(array({1000.0f, 1000.0f})))[0] == 0.5f);
  check_values<float>(softmax(zeros({4}) * 2.0f), {4},
                      {0.25, 0.25, 0.25, 0.25});  // may take its input's memory
  check_error<std::invalid_argument>("softmax", [] { softmax(array(complex64_t(1, 1))); });
}

TEST_CASE("large sums are exact to the last digits") {
  array a = full({1 << 22}, 0.1f);
  CHECK(values_of<float>(sum(a))[0] == doctest::Approx(0.1f * (1 << 22)).epsilon(1e-6));
  array b = reshape(arange(1 << 20), {1 << 10, 1 << 10});
  std::vector<int> columns = values_of<int>(sum(b % 3, 0));
  CHECK(std::accumulate(columns.begin(), columns.end(), 0LL) == ((1 << 20) - 1));
}

TEST_CASE("vecdot") {
  array a({1, 2, 3, 4, 5, 6}, {2, 3});
  check_values<int>(vecdot(a, a), {2}, {14, 77});
  check_values<int>(vecdot(a, a, 0), {3}, {17, 29, 45});
  check_values<int>(vecdot(a, array({1, 0, 2})), {2}, {7, 16});
  check_values<complex64_t>(vecdot(array({complex64_t(1, 2)}), array({complex64_t(3, 4)})), {},
                            {complex64_t(11, -2)});
  check_error<std::invalid_argument>("vecdot", [&] { vecdot(a, ones({2, 1})); });
  check_error<std::invalid_argument>("vecdot", [&] { vecdot(a, array({1, 2, 3}), 0); });
  check_error<std::invalid_argument>("vecdot", [] { vecdot(array(1), array(1)); });
  check_error<std::out_of_range>("vecdot", [&] { vecdot(a, a, 2); });
}

TEST_CASE("the mean of a half type is summed in float32, along any axis and with a gradient") {
  for (Dtype dtype : {float16, bfloat16}) {
    CAPTURE(std::string(dtype_name(dtype)));
    // A sum of 16 million, far beyond the range of float16.
    array x = full({300, 500}, array(100.0f), dtype) + astype(arange(500), dtype) % array(8, dtype);
    array wide = astype(x, float32);
    for (std::vector<int> axes : {std::vector<int>{0}, {1}, {0, 1}}) {
      array got = mean(x, axes, true);
      CHECK(got.dtype() == dtype);
      CHECK(array_equal(got, astype(mean(wide, axes, true), dtype)).item<bool>());
    }
    CHECK(mean(x, std::vector<int>{}).dtype() == dtype);
    array slope = grad([](const array& a) { return mean(a); })(x);
    CHECK(slope.dtype() == dtype);
    CHECK(array_equal(slope, full({300, 500}, array(1.0f / 150000), dtype)).item<bool>());
    auto twice_mean = [](const std::vector<array>& a) {
      return std::vector<array>{mean(a[0], 1) * array(2, a[0].dtype())};
    };
    CHECK(array_equal(compile(twice_mean)({x})[0], twice_mean({x})[0]).item<bool>());
  }
}
