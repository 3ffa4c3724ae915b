// take and take_along_axis.
#include "ops/array_testing.h"

using namespace holdfast;
using namespace holdfast::testing;

TEST_CASE("take along every axis, with every index type") {
  array a = reshape(arange(24), {2, 3, 4});
  for (Dtype dtype : {uint8, uint16, uint32, uint64, int8, int16, int32, int64}) {
    array indices = array({2, 0}, dtype);
    check_values<int>(take(a, indices, 1), {2, 2, 4},
                      {8, 9, 10, 11, 0, 1, 2, 3, 20, 21, 22, 23, 12, 13, 14, 15});
  }
  check_values<int>(take(a, array({-1, 1}, int32), 0), {2, 3, 4},
                    values_of<int>(a).size() == 24
                        ? std::vector<int>{12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23,
                                           12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23}
                        : std::vector<int>{});
  check_values<int>(take(a, array({3, -4}, {2, 1}, int32), 2), {2, 3, 2, 1},
                    {3, 0, 7, 4, 11, 8, 15, 12, 19, 16, 23, 20});
  check_values<int>(take(a, array(1, int32), -1), {2, 3}, {1, 5, 9, 13, 17, 21});
  check_values<int>(take(a, array({23, 0, -1}, int32)), {3}, {23, 0, 23});
  check_values<int>(take(transpose(a), array({1, 5}, int32)), {2}, {12, 20});
  check_values<int>(take(a, 2, 1), {2, 4}, {8, 9, 10, 11, 20, 21, 22, 23});
  check_values<int>(take(a, -1, 0), {3, 4}, {12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23});
  check_values<int>(take(a, 7), {}, {7});
  check_values<int>(take(array(5), array({0, 0}, int32)), {2}, {5, 5});
  CHECK(take(a, zeros({0}, int32), 1).shape() == Shape{2, 0, 4});
  CHECK(take(zeros({0, 3}), zeros({0}, int32), 0).shape() == Shape{0, 3});
}

TEST_CASE("take of every dtype and view") {
  for (Dtype dtype : all_dtypes()) {
    for (const NamedView& input : views_of(std::vector<int>{1, 0, 1, 1, 0}, dtype)) {
      if (input.view.size() == 0 || input.view.ndim() == 0) continue;
      CAPTURE(input.name);
      array out = take(input.view, array({3, 1, -4}, int32), 1);
      dispatch_dtype(dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
        std::vector<T> elements = values_of<T>(input.view), expected;
        for (size_t row = 0; row < 3; ++row) {
          for (size_t column : {size_t{3}, size_t{1}, size_t{0}})
            expected.push_back(elements[row * 4 + column]);
        }
        CHECK(values_of<T>(out) == expected);
      });
    }
  }
}

TEST_CASE("an index out of range is an error of the result, and only of it") {
  array a = arange(5);
  for (int64_t bad :
       {int64_t{5}, int64_t{-6}, int64_t{1} << 40, std::numeric_limits<int64_t>::min()}) {
    array out = take(a, array(&bad, {1}, int64), 0);
    CHECK_THROWS_WITH_AS(out.eval(), doctest::Contains("[take] index"), ExecutionError);
    CHECK_THROWS_AS((out + 1).eval(), ExecutionError);
  }
  uint64_t huge = std::numeric_limits<uint64_t>::max();
  array beyond = take(a, array(&huge, {1}, uint64), 0);
  CHECK_THROWS_AS(beyond.eval(), ExecutionError);
  check_values<int>(take(a, array({4}, int32)), {1}, {4});
  check_error<std::invalid_argument>("take", [&] { take(a, array({1.0f})); });
  check_error<std::invalid_argument>("take", [&] { take(a, array({true})); });
  check_error<std::invalid_argument>("take", [] { take(zeros({0}), array({0}, int32)); });
  check_error<std::invalid_argument>("take", [&] { take(a, 5, 0); });
  check_error<std::invalid_argument>("take", [&] { take(a, -6); });
  check_error<std::out_of_range>("take", [&] { take(a, array({0}, int32), 1); });
  check_error<std::out_of_range>("take", [] { take(array(1), array({0}, int32), 0); });
}

TEST_CASE("take_along_axis") {
  array a = reshape(arange(6), {2, 3});
  check_values<int>(take_along_axis(a, array({0, 2}, {2, 1}, int32), 1), {2, 1}, {0, 5});
  check_values<int>(take_along_axis(a, array({1, 0, -1}, {1, 3}, int64), 0), {1, 3}, {3, 1, 5});
  check_values<int>(take_along_axis(a, array({0, 1}, {1, 2}, uint8), 1), {2, 2}, {0, 1, 3, 4});
  check_values<int>(take_along_axis(transpose(a), array({2, 0}, {1, 2}, int32), 0), {1, 2}, {2, 3});
  CHECK(take_along_axis(a, zeros({2, 0}, int32), 1).shape() == Shape{2, 0});
  array bad = take_along_axis(a, array({3, 0}, {2, 1}, int32), 1);
  CHECK_THROWS_WITH_AS(bad.eval(), doctest::Contains("[take_along_axis] index 3"), ExecutionError);
  check_error<std::invalid_argument>("take_along_axis",
                                     [&] { take_along_axis(a, array({0}, int32), 1); });
  check_error<std::invalid_argument>("take_along_axis",
                                     [&] { take_along_axis(a, zeros({2, 1}), 1); });
  check_error<std::invalid_argument>("take_along_axis",
                                     [&] { take_along_axis(a, zeros({3, 1}, int32), 1); });
  check_error<std::out_of_range>("take_along_axis",
                                 [&] { take_along_axis(a, zeros({2, 1}, int32), 2); });
}
