// Slices as Python cuts them, splits, joins.
#include <numeric>

#include "ops/array_testing.h"

using namespace holdfast;
using namespace holdfast::testing;

namespace {
array counting(const Shape& shape) {
  int size = 1;
  for (int dim : shape) size *= dim;
  return reshape(arange(size), shape);
}
}  // namespace

TEST_CASE("slice agrees with Python for every start, stop and step") {
  constexpr int n = 5;
  array a = arange(n);
  for (int start = -7; start <= 7; ++start) {
    for (int stop = -7; stop <= 7; ++stop) {
      for (int step : {-3, -2, -1, 1, 2, 3}) {
        // Python's rule, written as a walk.
        int first = start < 0 ? start + n : start, last = stop < 0 ? stop + n : stop;
        std::vector<int> expected;
        if (step > 0) {
          for (int i = std::max(first, 0); i < std::min(last, n); i += step) expected.push_back(i);
        } else {
          for (int i = std::min(first, n - 1); i > std::max(last, -1); i += step)
            expected.push_back(i);
        }
        CAPTURE(start);
        CAPTURE(stop);
        CAPTURE(step);
        check_values<int>(slice(a, {start}, {stop}, {step}), {static_cast<int>(expected.size())},
                          expected);
      }
    }
  }
}

TEST_CASE("slice gives exact strides, flags and offsets") {
  array a = counting({4, 6});
  check_layout(slice(a, {1, 0}, {3, 6}), {6, 1}, true, true, false, 12);
  check_layout(slice(a, {0, 2}, {4, 4}), {6, 1}, false, false, false, 20);
  check_layout(slice(a, {0, 0}, {4, 6}, {2, 3}), {12, 3}, false, false, false, 16);
  check_layout(slice(a, {3, 5}, {-5, -7}, {-1, -1}), {-6, -1}, false, false, false, 24);
  check_layout(slice(a, {2, 3}, {3, 4}), {6, 1}, true, true, true, 1);
  check_layout(slice(a, {2, 3}, {2, 4}), {6, 1}, true, true, true, 0);
  array middle = slice(a, {1, 2}, {3, 4});
  middle.eval();
  CHECK(middle.offset() == 8 * 4);
  check_values<int>(middle, {2, 2}, {8, 9, 14, 15});
  check_values<int>(slice(transpose(a), {1, 1}, {3, 3}), {2, 2}, {7, 13, 8, 14});
  check_values<int>(slice(slice(a, {0, 5}, {4, -7}, {1, -1}), {0, 0}, {1, 6}, {1, 2}), {1, 3},
                    {5, 3, 1});
  CHECK(slice(a, {0, 0}, {4, 6}).id() == a.id());
  CHECK(slice(zeros({0, 3}), {0, 0}, {0, 2}).shape() == Shape{0, 2});
  check_error<std::invalid_argument>("slice", [&] { slice(a, {0}, {1}); });
  check_error<std::invalid_argument>("slice", [&] { slice(a, {0, 0}, {1, 1}, {0, 1}); });
}

TEST_CASE("slice with a start that is computed") {
  array a = counting({4, 6});
  check_values<int>(slice(a, array({1, 2}, int32), {0, 1}, {2, 3}), {2, 3}, {8, 9, 10, 14, 15, 16});
  check_values<int>(slice(a, array({3}, uint8), {1}, {2, 2}), {2, 2}, {3, 4, 9, 10});
  check_values<int>(slice(transpose(a), array(2, int64) + 1, {0}, {1, 4}), {1, 4}, {3, 9, 15, 21});
  check_values<int>(slice(a, array({1, 2}, int32), {-1, 0}, {1, 1}), {1, 1}, {13});
  for (int start : {-1, 3}) {
    array bad = slice(arange(4), array({start}, int32), {0}, {2});
    CHECK_THROWS_AS(bad.eval(), ExecutionError);
  }
  check_error<std::invalid_argument>("slice", [&] { slice(a, array({0.5f}), {0}, {1, 1}); });
  check_error<std::invalid_argument>("slice", [&] { slice(a, array({0, 1}, int32), {0}, {1, 1}); });
  check_error<std::invalid_argument>("slice", [&] { slice(a, array({0}, int32), {0}, {5, 1}); });
  check_error<std::out_of_range>("slice", [&] { slice(a, array({0}, int32), {2}, {1, 1}); });
}

TEST_CASE("split gives siblings that share the input's memory") {
  array a = counting({4, 6});
  a.eval();
  std::vector<array> parts = split(a, 3, 1);
  REQUIRE(parts.size() == 3);
  check_values<int>(parts[1], {4, 2}, {2, 3, 8, 9, 14, 15, 20, 21});
  check_layout(parts[2], {6, 1}, false, false, false, 20);
  CHECK(parts[2].data_shared_ptr() == a.data_shared_ptr());
  std::vector<array> uneven = split(arange(5), {1, -2});
  check_values<int>(uneven[0], {1}, {0});
  check_values<int>(uneven[1], {2}, {1, 2});
  check_values<int>(uneven[2], {2}, {3, 4});
  std::vector<array> crossed = split(arange(5), {3, 1});
  CHECK(crossed[1].size() == 0);
  check_values<int>(crossed[2], {4}, {1, 2, 3, 4});
  CHECK(split(arange(4), {7, 9})[2].size() == 0);
  CHECK(split(a, Shape{}, 0).size() == 1);
  check_error<std::invalid_argument>("split", [&] { split(a, 5, 1); });
  check_error<std::invalid_argument>("split", [&] { split(a, 0); });
  check_error<std::out_of_range>("split", [&] { split(a, 2, 2); });
  check_error<std::out_of_range>("split", [] { split(array(1), 1); });
  std::vector<array> rows = unstack(a);
  REQUIRE(rows.size() == 4);
  check_values<int>(rows[2], {6}, {12, 13, 14, 15, 16, 17});
  check_values<int>(unstack(a, -1)[5], {4}, {5, 11, 17, 23});
  CHECK(unstack(zeros({0, 2})).empty());
}

TEST_CASE("concatenate and stack: every axis, every kind of view") {
  for (int axis = 0; axis < 2; ++axis) {
    for (const NamedView& left : views_of(std::vector<int>{1, 2, 3, 4, 5}, int32)) {
      for (const NamedView& right : views_of(std::vector<int>{6, 7, 8, 9}, int32)) {
        if (left.view.ndim() != 2 || right.view.ndim() != 2) continue;
        if (axis == 1 && left.view.shape(0) != right.view.shape(0)) continue;
        CAPTURE(left.name);
        CAPTURE(right.name);
        std::vector<int> a = values_of<int>(left.view), b = values_of<int>(right.view), expected;
        int rows = left.view.shape(0);
        if (axis == 0) {
          expected = a;
          expected.insert(expected.end(), b.begin(), b.end());
        } else {
          for (int r = 0; r < rows; ++r) {
            expected.insert(expected.end(), a.begin() + 4 * r, a.begin() + 4 * r + 4);
            expected.insert(expected.end(), b.begin() + 4 * r, b.begin() + 4 * r + 4);
          }
        }
        array out = concatenate({left.view, right.view}, axis);
        CHECK(values_of<int>(out) == expected);
      }
    }
  }
  check_values<int>(stack({arange(3), arange(3, 6)}), {2, 3}, {0, 1, 2, 3, 4, 5});
  check_values<int>(stack({arange(3), arange(3, 6)}, -1), {3, 2}, {0, 3, 1, 4, 2, 5});
  check_values<int>(stack({array(1), array(2)}), {2}, {1, 2});
  check_values<int>(concatenate({counting({2, 2}), arange(2)}), {6}, {0, 1, 2, 3, 0, 1});
  CHECK(concatenate({zeros({2}, int8), zeros({2}, float16)}).dtype() == float16);
  // Long pieces in the middle of longer rows, cut into many tasks.
  array big = reshape(arange(200000), {2, 100000});
  std::vector<int> joined = values_of<int>(concatenate({big, big, big}, 1));
  REQUIRE(joined.size() == 600000);
  CHECK(joined[299999] == 99999);
  CHECK(joined[300000] == 100000);
  CHECK(joined[500001] == 100001);
  array narrow = reshape(arange(100000), {100000, 1});
  std::vector<int> paired = values_of<int>(concatenate({narrow, narrow + 1}, 1));
  bool right = true;
  for (int i = 0; i < 200000; ++i) right = right && paired[size_t(i)] == i / 2 + i % 2;
  CHECK(right);
  check_error<std::invalid_argument>("concatenate", [] { concatenate({}); });
  check_error<std::invalid_argument>("concatenate",
                                     [] { concatenate({zeros({2}), zeros({2, 2})}, 0); });
  check_error<std::invalid_argument>("concatenate",
                                     [] { concatenate({zeros({2, 3}), zeros({3, 2})}, 0); });
  check_error<std::out_of_range>("concatenate", [] { concatenate({zeros({2}), zeros({2})}, 1); });
  check_error<std::out_of_range>("concatenate", [] { concatenate({array(1), array(2)}, 0); });
  check_error<std::overflow_error>("concatenate", [] {
    array wide = broadcast_to(array(1, uint8), {2147483647});
    concatenate({wide, wide}, 0);
  });
  check_error<std::invalid_argument>("stack", [] { stack({zeros({2}), zeros({3})}); });
  check_error<std::invalid_argument>("stack", [] { stack({}); });
  check_error<std::out_of_range>("stack", [] { stack({zeros({2}), zeros({2})}, 2); });
}
