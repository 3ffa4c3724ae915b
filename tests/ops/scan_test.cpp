// Scans against a plain loop: every op and dtype, both directions, lines and columns, lines that
// are cut into chunks and batches of chunks.
#include <limits>
#include <random>

#include "ops/array_testing.h"

using namespace holdfast;
using namespace holdfast::testing;

namespace {

using ScanFunction = array (*)(const array&, int, bool, bool, StreamOrDevice);
array cumsum_(const array& a, int axis, bool reverse, bool inclusive, StreamOrDevice s) {
  return cumsum(a, axis, reverse, inclusive, s);
}
array cumprod_(const array& a, int axis, bool reverse, bool inclusive, StreamOrDevice s) {
  return cumprod(a, axis, reverse, inclusive, s);
}

struct Row {
  const char* name;
  ScanFunction run;
  double identity;
  double (*step)(double, double);
};
double infinity() { return std::numeric_limits<double>::infinity(); }
const Row rows[] = {
    {"cumsum", cumsum_, 0, [](double a, double b) { return a + b; }},
    {"cumprod", cumprod_, 1, [](double a, double b) { return a * b; }},
    {"cummax", cummax, -infinity(), [](double a, double b) { return std::max(a, b); }},
    {"cummin", cummin, infinity(), [](double a, double b) { return std::min(a, b); }},
    {"logcumsumexp", logcumsumexp, -infinity(),
     [](double a, double b) {
       double m = std::max(a, b);
       return m == -infinity() ? m : m + std::log(std::exp(a - m) + std::exp(b - m));
     }},
};

std::vector<double> doubles(const array& a) {
  return values_of<double>(astype(a, float64, Device::cpu));
}

// The scan of a row-major array, by the definition.
std::vector<double> reference(const Row& row, const array& a, int axis, bool reverse,
                              bool inclusive) {
  std::vector<double> x = doubles(a), out(x.size());
  size_t inner = 1, length = static_cast<size_t>(a.shape(axis));
  for (int i = axis + 1; i < static_cast<int>(a.ndim()); ++i)
    inner *= static_cast<size_t>(a.shape(i));
  for (size_t line = 0; length > 0 && line < x.size() / length; ++line) {
    size_t base = line / inner * inner * length + line % inner;
    double state = row.identity;
    for (size_t j = 0; j < length; ++j) {
      size_t at = base + (reverse ? length - 1 - j : j) * inner;
      double next = row.step(state, x[at]);
      out[at] = inclusive ? next : state;
      state = next;
    }
  }
  return out;
}

void check_scan(const Row& row, const array& a, int axis, bool reverse, bool inclusive,
                double tolerance) {
  array got = row.run(a, axis, reverse, inclusive, {});
  REQUIRE(got.shape() == a.shape());
  std::vector<double> expected = reference(row, a, axis, reverse, inclusive), values = doubles(got);
  bool right = true;
  for (size_t i = 0; i < values.size(); ++i) {
    double limit = tolerance * std::max(1.0, std::abs(expected[i]));
    bool is_close = values[i] == expected[i] || std::abs(values[i] - expected[i]) <= limit;
    // The identities of integers are their limits.
    bool is_limit = std::isinf(expected[i]) && !issubdtype(got.dtype(), inexact);
    right = right && (is_close || is_limit);
  }
  CHECK_MESSAGE(right, std::string(row.name));
}

}  // namespace

TEST_CASE("scans of every dtype, direction and axis") {
  for (Dtype dtype : all_dtypes()) {
    if (dtype == complex64) continue;
    for (const Row& row : rows) {
      INFO(std::string(row.name) << " of " << std::string(dtype_name(dtype)));
      bool is_product = row.step(3, 4) == 12;
      array small = astype(reshape(arange(3 * 4 * 5) % (is_product ? 2 : 5), {3, 4, 5}), dtype);
      array long_line = astype(arange(333) % 3 == array(0), dtype);
      double tolerance = dtype == bfloat16 ? 1e-2 : dtype == float16 ? 2e-3 : 1e-5;
      for (bool reverse : {false, true}) {
        for (bool inclusive : {false, true}) {
          for (int axis = 0; axis < 3; ++axis)
            check_scan(row, small, axis, reverse, inclusive, tolerance);
          check_scan(row, long_line, 0, reverse, inclusive, tolerance);
        }
      }
    }
  }
}

TEST_CASE("scans of random shapes") {
  std::mt19937 random(7);
  for (int round = 0; round < 60; ++round) {
    Shape shape;
    int ndim = 1 + static_cast<int>(random() % 4);
    for (int i = 0; i < ndim; ++i) shape.push_back(static_cast<int>(random() % 9));
    array a = random::normal(shape, random::key(static_cast<uint64_t>(round)));
    array view = transpose(random::normal(Shape(shape.rbegin(), shape.rend()), random::key(1)));
    int axis = static_cast<int>(random() % static_cast<unsigned>(ndim));
    for (const Row& row : rows) {
      check_scan(row, a, axis, random() % 2, random() % 2, 1e-5);
      check_scan(row, view, axis, random() % 2, random() % 2, 1e-5);
    }
  }
}

TEST_CASE("long lines and columns are cut into chunks") {
  for (const Shape& shape :
       {Shape{3, 2200003}, Shape{2, 700, 500}, Shape{70001, 7}, Shape{40, 9001}}) {
    int axis = shape.size() == 2 && shape[1] > shape[0] && shape[0] != 40 ? 1 : 0;
    if (shape.size() == 3) axis = 1;
    // Whole numbers: every order of adding gives the same sum.
    array a = astype(random::randint(-3, 4, shape, int32, random::key(3)), float32);
    a.eval();
    for (bool reverse : {false, true}) {
      for (bool inclusive : {false, true}) {
        check_scan(rows[0], a, axis, reverse, inclusive, 0);
        check_scan(rows[2], a, axis, reverse, inclusive, 0);
      }
    }
    check_scan(rows[0], astype(a, int64), axis, true, false, 0);
  }
}

TEST_CASE("NaN stays, infinities do not hide") {
  float nan = std::nanf(""), inf = INFINITY;
  for (int length : {5, 40, 3000}) {
    std::vector<float> values(static_cast<size_t>(length), 1.0f);
    values[1] = inf;
    values[3] = nan;
    array a(values.begin(), {length});
    for (array out : {cummax(a, 0), cummin(a, 0), cumsum(a, 0), logcumsumexp(a, 0)}) {
      std::vector<float> got = values_of<float>(out);
      CHECK(got[0] == 1.0f);
      bool stays = true;
      for (size_t i = 3; i < got.size(); ++i) stays = stays && std::isnan(got[i]);
      CHECK(stays);
    }
    CHECK(values_of<float>(cummax(a, 0))[2] == inf);
    CHECK(values_of<float>(cummin(a, 0))[2] == 1.0f);
  }
}

TEST_CASE("dtypes, overloads and errors of scans") {
  array a({1, 2, 3, 4}, {2, 2}, int32);
  check_values<int>(cumsum(a), {4}, {1, 3, 6, 10});
  check_values<int>(cumsum(a, true), {4}, {10, 9, 7, 4});
  check_values<int>(cumsum(a, false, false, Device::cpu), {4}, {0, 1, 3, 6});
  check_values<int>(cumsum(a, 1, true, false, Device::cpu), {2, 2}, {2, 0, 4, 0});
  check_values<int>(cumsum(array(5)), {1}, {5});
  check_values<float>(cumprod(a, 0, false, true, float32), {2, 2}, {1, 2, 3, 8});
  check_values<int>(cumsum(array({true, true, false})), {3}, {1, 2, 2});
  check_values<bool>(cumprod(array({true, true, false}), false, false), {3}, {true, true, true});
  check_values<bool>(cummin(array({true, false, true}), false, false), {3}, {true, true, false});
  check_values<int8_t>(cumsum(array({100, 100}, int8)), {2}, {100, -56});
  check_values<int8_t>(cummax(array({1, 5, 3}, int8), false, false), {3}, {-128, 1, 5});
  CHECK(logcumsumexp(a).dtype() == float32);
  CHECK(cumsum(zeros({0, 3}), 0).shape() == Shape{0, 3});
  check_values<complex64_t>(cumprod(array({complex64_t(1, 2), complex64_t(3, -1)})), {2},
                            {complex64_t(1, 2), complex64_t(5, 5)});
  check_error<std::out_of_range>("cumsum", [&] { cumsum(a, 2); });
  check_error<std::out_of_range>("logcumsumexp", [&] { logcumsumexp(array(1.0f), 0); });
  check_values<int>(diff(array({1, 4, 9, 16})), {3}, {3, 5, 7});
  check_values<int>(diff(array({1, 4, 9, 16}), 2), {2}, {2, 2});
  check_values<int>(diff(a, 1, 0), {1, 2}, {2, 2});
  CHECK(diff(a, 9, 1).shape() == Shape{2, 0});
  check_error<std::invalid_argument>("diff", [&] { diff(a, -1); });
  check_error<std::out_of_range>("diff", [&] { diff(array(1)); });
}
