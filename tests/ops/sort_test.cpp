// Sorting against std::sort, equal values in their order, and what is found by it.
#include <algorithm>
#include <numeric>
#include <random>

#include "ops/array_testing.h"

using namespace holdfast;
using namespace holdfast::testing;

namespace {

// NaN behind everything.
template <typename T>
bool is_before(T a, T b) {
  if constexpr (std::is_same_v<T, complex64_t>) {
    bool a_nan = a != a, b_nan = b != b;
    return a_nan || b_nan ? !a_nan && b_nan : a < b;
  } else {
    return a < b || (b != b && a == a);
  }
}

template <typename T>
void check_rows(const array& a) {
  std::vector<T> values = values_of<T>(a), sorted = values_of<T>(sort(a, -1));
  std::vector<uint32_t> indices = values_of<uint32_t>(argsort(a, -1));
  size_t length = static_cast<size_t>(a.shape(-1));
  bool right = true;
  for (size_t row = 0; length > 0 && row < values.size() / length; ++row) {
    auto x = [&](size_t i) -> T { return values[row * length + i]; };
    std::vector<uint32_t> expected(length);
    std::iota(expected.begin(), expected.end(), 0u);
    std::sort(expected.begin(), expected.end(), [&](uint32_t i, uint32_t j) {
      if (is_before<T>(x(i), x(j))) return true;
      return !is_before<T>(x(j), x(i)) && i < j;
    });
    for (size_t i = 0; i < length; ++i) {
      T wanted = x(expected[i]), got = sorted[row * length + i];
      right = right && (wanted == got || (wanted != wanted && got != got));
      right = right && indices[row * length + i] == expected[i];
    }
  }
  CHECK(right);
}

}  // namespace

TEST_CASE("rows of every dtype and length") {
  for (Dtype dtype : all_dtypes()) {
    INFO(std::string(dtype_name(dtype)));
    for (Shape shape : {Shape{3, 0}, Shape{5, 1}, Shape{4, 7}, Shape{3, 100}, Shape{2, 700},
                        Shape{20, 999}, Shape{2, 3, 40}}) {
      array a = random::normal(shape, random::key(5)) * 50.0f;
      if (dtype == complex64)
        a = astype(rint(a / 10.0f), complex64) * array(complex64_t(1, 1)) +
            astype(rint(random::normal(shape, random::key(6))), complex64);
      dispatch_dtype(dtype,
                     [&](auto tag) { check_rows<typename decltype(tag)::type>(astype(a, dtype)); });
    }
  }
}

TEST_CASE("long rows are sorted by several tasks") {
  array a = random::normal({300007}, random::key(1));
  check_rows<float>(a);
  check_rows<float16_t>(astype(a, float16));
  if (default_device() == Device::cpu) check_rows<double>(astype(a, float64));
  check_rows<int64_t>(astype(a * 1000.0f, int64));
  check_rows<uint8_t>(astype(random::bits({2, 200001}, 1, random::key(2)), uint8));
  check_rows<int>(zeros({200000}, int32));  // no byte differs
  check_rows<int>(arange(200000, 0, -1));   // two bytes do
  check_rows<bool>(arange(400000) % 7 > array(3));
}

TEST_CASE("NaN comes last, zeros are equal") {
  float nan = std::nanf(""), inf = INFINITY;
  for (int copies : {1, 200}) {
    std::vector<float> values;
    for (int i = 0; i < copies; ++i)
      for (float v : {nan, 0.0f, -0.0f, inf, -nan, -inf, 1.0f, -1.0f}) values.push_back(v);
    array a(values.begin(), {static_cast<int>(values.size())});
    check_rows<float>(a);
    check_rows<float16_t>(astype(a, float16));
    check_rows<bfloat16_t>(astype(a, bfloat16));
    if (default_device() == Device::cpu) check_rows<double>(astype(a, float64));
  }
  check_values<uint32_t>(argsort(array({0.0f, -0.0f, 0.0f})), {3}, {0, 1, 2});
  check_rows<complex64_t>(array({complex64_t(1, 2), complex64_t(nan, 0), complex64_t(1, -2),
                                 complex64_t(0, nan), complex64_t(0, 0)}));
}

TEST_CASE("other axes, views and the flattened array") {
  array a = reshape(arange(24) * 7 % 11, {2, 3, 4});
  for (int axis : {0, 1, 2, -2}) {
    std::vector<int> sorted = values_of<int>(swapaxes(sort(a, axis), axis, -1));
    std::vector<int> expected = values_of<int>(sort(contiguous(swapaxes(a, axis, -1)), -1));
    CHECK(sorted == expected);
  }
  CHECK(values_of<int>(sort(a)) == values_of<int>(sort(flatten(a), 0)));
  check_values<int>(sort(slice(array({5, 1, 4, 2, 3}), {4}, {-6}, {-2}), 0), {3}, {3, 4, 5});
  check_values<int>(sort(broadcast_to(array({2, 1}), {2, 2}), -1), {2, 2}, {1, 2, 1, 2});
  check_error<std::out_of_range>("sort", [] { sort(array(1), 0); });
  check_error<std::out_of_range>("argsort", [&] { argsort(a, 3); });
  check_values<int>(sort(array(4)), {1}, {4});
}

TEST_CASE(
    "partitions of long rows have no greater element before the place and no smaller behind") {
  for (Dtype dtype : {float32, float16, int32, uint8, int64}) {
    CAPTURE(dtype);
    array a = astype(random::normal({3, 5000}, random::key(1)) * array(50.0f), dtype);
    for (int kth : {0, 17, 2500, 4999}) {
      array sorted = sort(a, 1), parts = partition(a, kth, 1);
      auto column = [&](const array& x) { return slice(x, {0, kth}, {3, kth + 1}); };
      CHECK(array_equal(column(parts), column(sorted)).item<bool>());
      CHECK(array_equal(sort(parts, 1), sorted).item<bool>());
      array before = slice(parts, {0, 0}, {3, kth}), behind = slice(parts, {0, kth}, {3, 5000});
      CHECK(all(less_equal(before, column(parts))).item<bool>());
      CHECK(all(greater_equal(behind, column(parts))).item<bool>());
      array places = argpartition(a, kth, 1);
      CHECK(array_equal(take_along_axis(a, places, 1), parts).item<bool>());
    }
  }
  // Equal elements keep their order.
  array same = argpartition(zeros({200}), 100, 0);
  CHECK(array_equal(same, arange(200)).item<bool>());
}

TEST_CASE("partition and topk") {
  array a({5, 3, 9, 1, 2, 8}, {2, 3});
  for (int kth : {0, 1, 2, -1}) {
    std::vector<int> rows = values_of<int>(partition(a, kth, 1)),
                     sorted = values_of<int>(sort(a, 1));
    size_t at = static_cast<size_t>(kth < 0 ? kth + 3 : kth);
    for (size_t row : {size_t{0}, size_t{1}}) CHECK(rows[row * 3 + at] == sorted[row * 3 + at]);
  }
  CHECK(values_of<uint32_t>(argpartition(a, 0, 1))[0] == 1);
  CHECK(partition(a, 2).shape() == Shape{6});
  check_values<int>(sort(topk(a, 2, 1), 1), {2, 2}, {5, 9, 2, 8});
  check_values<int>(topk(a, 1, 0), {1, 3}, {5, 3, 9});
  check_values<int>(topk(a, 1), {1}, {9});
  CHECK(topk(a, 0, 1).shape() == Shape{2, 0});
  check_values<int>(topk(a, 3, 1), {2, 3}, {5, 3, 9, 1, 2, 8});
  check_error<std::invalid_argument>("topk", [&] { topk(a, 4, 1); });
  check_error<std::invalid_argument>("topk", [&] { topk(a, -1, 1); });
  check_error<std::invalid_argument>("partition", [&] { partition(a, 3, 1); });
  check_error<std::invalid_argument>("argpartition", [&] { argpartition(a, -4, 1); });
  check_error<std::out_of_range>("topk", [&] { topk(a, 1, 2); });
}

TEST_CASE("searchsorted") {
  for (Dtype dtype : taken_here({uint8, int32, int64, float16, float32, float64})) {
    array sorted({1, 2, 2, 2, 5, 9}, dtype), values({0, 1, 2, 3, 9, 10}, {2, 3}, dtype);
    check_values<uint32_t>(searchsorted(sorted, values), {2, 3}, {0, 0, 1, 4, 5, 6});
    check_values<uint32_t>(searchsorted(sorted, transpose(values), "right"), {3, 2},
                           {0, 4, 1, 6, 4, 6});
    check_values<uint32_t>(searchsorted(slice(sorted, {0}, {6}, {2}), values), {2, 3},
                           {0, 0, 1, 2, 3, 3});
  }
  float nan = std::nanf("");
  check_values<uint32_t>(searchsorted(array({1.0f, nan}), array({nan, 5.0f})), {2}, {1, 1});
  check_values<uint32_t>(searchsorted(array({1.0f, nan}), array({nan, 5.0f}), "right"), {2},
                         {2, 1});
  check_values<uint32_t>(searchsorted(array({1, 3}), array(2.5f)), {}, {1});
  check_values<uint32_t>(searchsorted(zeros({0}), array({2.5f})), {1}, {0});
  array many = random::permutation(100000, random::key(3));
  array places = searchsorted(sort(many, 0), many);
  CHECK(values_of<uint32_t>(places) == values_of<uint32_t>(argsort(argsort(many))));
  check_error<std::invalid_argument>("searchsorted", [&] { searchsorted(array(1), many); });
  check_error<std::invalid_argument>("searchsorted", [&] { searchsorted(many, many, "up"); });
}

TEST_CASE("median") {
  array a({1, 2, 9, 3, 4, 5}, {2, 3});
  check_values<float>(median(a, 1), {2}, {2, 4});
  check_values<float>(median(a, 0), {3}, {2, 3, 7});
  check_values<float>(median(a), {}, {3.5f});
  check_values<float>(median(a, true), {1, 1}, {3.5f});
  check_values<float>(median(reshape(arange(24), {2, 3, 4}), {0, 2}, true), {1, 3, 1},
                      {7.5f, 11.5f, 15.5f});
  CHECK(std::isnan(values_of<float>(median(array({1.0f, std::nanf(""), 3.0f, 2.0f})))[0]));
  CHECK(median(astype(a, float16)).dtype() == float16);
  check_values<float>(median(array(3)), {}, {3});
  check_values<float>(median(a, std::vector<int>{}), {2, 3}, {1, 2, 9, 3, 4, 5});
  check_error<std::invalid_argument>("median", [] { median(zeros({0})); });
  check_error<std::out_of_range>("median", [&] { median(a, 2); });
}
