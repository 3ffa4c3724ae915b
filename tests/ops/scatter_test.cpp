// gather, scatter, slice_update and their relatives: order of updates, donation, errors, large
// inputs. Their values for every dtype and layout are checked by the registry and against NumPy in
// tests/peers.
#include "ops/array_testing.h"

using namespace holdfast;
using namespace holdfast::testing;

TEST_CASE("gather picks slices at the places that all indices name") {
  array a = reshape(arange(24), {2, 3, 4});
  check_values<int>(gather(a, array({2, -3}), 1, {1, 1, 2}), {2, 1, 1, 2}, {8, 9, 0, 1});
  check_values<int>(gather(a, {array({0, 1}), array({3, -1})}, {0, 2}, {1, 3, 1}), {2, 1, 3, 1},
                    {3, 7, 11, 15, 19, 23});
  check_values<int>(gather(a, {array({0, 1}, {2, 1}), array({0, 3})}, {0, 2}, {1, 1, 1}),
                    {2, 2, 1, 1, 1}, {0, 3, 12, 15});
  check_values<int>(gather(a, {array(1, uint8), array(2, int64)}, {0, 1}, {1, 1, 4}), {1, 1, 4},
                    {20, 21, 22, 23});
  CHECK(gather(a, zeros({0}, int32), 0, {1, 3, 4}).shape() == Shape{0, 1, 3, 4});
  check_error<std::invalid_argument>("gather", [&] { gather(a, array({0.5f}), 0, {1, 1, 1}); });
  check_error<std::invalid_argument>("gather", [&] { gather(a, array({0}), 0, {1, 1}); });
  check_error<std::invalid_argument>("gather", [&] { gather(a, array({0}), 0, {3, 1, 1}); });
  check_error<std::invalid_argument>("gather", [&] { gather(a, {array({0})}, {0, 1}, {1, 1, 1}); });
  check_error<std::invalid_argument>(
      "gather", [&] { gather(a, {array({0}), array({0})}, {0, 0}, {1, 1, 1}); });
  for (int axis : {3, -1}) {
    check_error<std::invalid_argument>("gather", [&] { gather(a, array({0}), axis, {1, 1, 1}); });
  }
  // A slice must end inside the array.
  CHECK_THROWS_WITH_AS(gather(a, array({2}), 2, {1, 1, 3}).eval(),
                       doctest::Contains("[gather] index 2"), ExecutionError);
  CHECK_THROWS_AS(gather(a, array({-4}), 1, {1, 1, 3}).eval(), ExecutionError);
}

TEST_CASE("scatter takes updates in order") {
  array a = zeros({4}, int32);
  check_values<int>(scatter(a, array({1, 1, -1}), array({5, 6, 7}, {3, 1}), 0), {4}, {0, 6, 0, 7});
  check_values<int>(scatter_add(a, array({1, 1, -1}), array({5, 6, 7}, {3, 1}), 0), {4},
                    {0, 11, 0, 7});
  check_values<int>(scatter_prod(a + 2, array({1, 1}), array({5, 6}, {2, 1}), 0), {4},
                    {2, 60, 2, 2});
  check_values<int>(scatter_max(a, array({1, 1}), array({5, 4}, {2, 1}), 0), {4}, {0, 5, 0, 0});
  check_values<int>(scatter_min(a, array({1, 1}), array({5, -4}, {2, 1}), 0), {4}, {0, -4, 0, 0});
  // Slices that overlap without being the same.
  check_values<int>(scatter_add(a, array({0, 1, 2}), ones({3, 2}, int32), 0), {4}, {1, 2, 2, 1});
  check_values<int>(scatter(a, array({2, 1, 0}), array({1, 2, 3, 4, 5, 6}, {3, 2}), 0), {4},
                    {5, 6, 4, 2});
  std::vector<float> largest = values_of<float>(
      scatter_max(zeros({2}), {}, array({1.0f, std::nanf("")}), std::vector<int>{}));
  CHECK(largest[0] == 1.0f);
  CHECK(std::isnan(largest[1]));
  check_error<std::invalid_argument>("scatter", [&] { scatter(a, array({1}), array({5}), 0); });
  check_error<std::invalid_argument>("scatter_add",
                                     [&] { scatter_add(a, array({1}), zeros({1, 5}), 0); });
  check_error<std::invalid_argument>("scatter_max",
                                     [&] { scatter_max(a, array({1.0f}), zeros({1, 1}), 0); });
  for (int axis : {1, -1}) {
    check_error<std::invalid_argument>("scatter",
                                       [&] { scatter(a, array({1}), zeros({1, 1}), axis); });
  }
  CHECK_THROWS_WITH_AS(scatter(a, array({4}), zeros({1, 1}, int32), 0).eval(),
                       doctest::Contains("[scatter] index 4"), ExecutionError);
}

TEST_CASE("wide slices are shared by tasks, sums stay in order") {
  int rows = 50, width = 100000, count = 200;
  array places = random::randint(0, rows, {count}, int32, random::key(1));
  array updates = random::normal({count, 1, width}, random::key(2));
  array got = scatter_add(zeros({rows, width}), places, updates, 0);
  std::vector<int> at = values_of<int>(places);
  std::vector<float> values = values_of<float>(updates), out = values_of<float>(got);
  std::vector<float> expected(static_cast<size_t>(rows * width), 0.0f);
  for (size_t i = 0; i < at.size(); ++i) {
    for (size_t j = 0; j < static_cast<size_t>(width); ++j) {
      expected[static_cast<size_t>(at[i]) * static_cast<size_t>(width) + j] +=
          values[i * static_cast<size_t>(width) + j];
    }
  }
  CHECK(out == expected);  // bit by bit
}

TEST_CASE("put_along_axis and scatter_add_axis") {
  array a = reshape(arange(12), {3, 4});
  check_values<int>(put_along_axis(a, array({0, 1, -2}, {3, 1}), array(100), 1), {3, 4},
                    {100, 1, 2, 3, 4, 100, 6, 7, 8, 9, 100, 11});
  check_values<int>(put_along_axis(a, array({1, 1}, {1, 2}), array({7, 8}), -1), {3, 4},
                    {0, 8, 2, 3, 4, 8, 6, 7, 8, 8, 10, 11});
  check_values<int>(scatter_add_axis(a, array({1, 1}, {2, 1}, uint8), array(10), 0), {3, 4},
                    {0, 1, 2, 3, 24, 25, 26, 27, 8, 9, 10, 11});
  check_values<int>(scatter_add_axis(array({1, 2}), array({0, 0, 0}), array({1, 2, 3}), 0), {2},
                    {7, 2});
  check_error<std::invalid_argument>("put_along_axis",
                                     [&] { put_along_axis(a, array({0}), a, 1); });
  check_error<std::invalid_argument>("put_along_axis",
                                     [&] { put_along_axis(a, zeros({3, 1}), array(1), 1); });
  check_error<std::invalid_argument>(
      "scatter_add_axis", [&] { scatter_add_axis(a, zeros({2, 1}, int32), array(1), 1); });
  check_error<std::out_of_range>("put_along_axis", [&] { put_along_axis(a, a, a, 2); });
  CHECK_THROWS_WITH_AS(put_along_axis(a, array({4}, {1, 1}), array(1), 1).eval(),
                       doctest::Contains("[put_along_axis] index 4"), ExecutionError);
}

TEST_CASE("slice_update replaces a part, and nothing else") {
  array a = reshape(arange(12), {3, 4});
  check_values<int>(slice_update(a, array({-1, -2}), {0, 1}, {3, 3}), {3, 4},
                    {0, -1, -2, 3, 4, -1, -2, 7, 8, -1, -2, 11});
  check_values<int>(slice_update(a, array(9.7f), {0, 0}, {1, 4}, {1, 2}), {3, 4},
                    {9, 1, 9, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  check_values<int>(slice_update(a, array({1, 2, 3, 4}), {0, 3}, {1, -5}, {1, -1}), {3, 4},
                    {4, 3, 2, 1, 4, 5, 6, 7, 8, 9, 10, 11});
  check_values<int>(slice_update_add(a, array(10), {1, 0}, {2, 4}), {3, 4},
                    {0, 1, 2, 3, 14, 15, 16, 17, 8, 9, 10, 11});
  check_values<int>(slice_update(a, ones({0, 4}), {1, 0}, {1, 4}), {3, 4}, values_of<int>(a));
  check_values<int>(a, {3, 4}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  check_error<std::invalid_argument>("slice_update",
                                     [&] { slice_update(a, ones({3}), {0, 0}, {3, 4}); });
  check_error<std::invalid_argument>("slice_update", [&] { slice_update(a, array(1), {0}, {3}); });
  check_error<std::invalid_argument>(
      "slice_update_max", [&] { slice_update_max(a, array(1), {0, 0}, {3, 4}, {1, 0}); });
}

TEST_CASE_FIXTURE(OnCpu, "slice_update in the memory of an array that nobody else holds") {
  array cache = zeros({1000}, int32) + 1;
  cache.eval();
  const int* place = cache.data<int>();
  for (int i = 0; i < 5; ++i) {
    cache = slice_update(std::move(cache), array(i), Shape{i}, Shape{i + 1});
    cache.eval();
  }
  CHECK(cache.data<int>() == place);
  CHECK(values_of<int>(slice(cache, {0}, {6})) == std::vector<int>{0, 1, 2, 3, 4, 1});
}

TEST_CASE("slice_update with a start that is computed") {
  array a = reshape(arange(12), {3, 4});
  check_values<int>(slice_update(a, array({7, 8}, {1, 2}), array({1, 2}), {0, 1}), {3, 4},
                    {0, 1, 2, 3, 4, 5, 7, 8, 8, 9, 10, 11});
  check_values<int>(slice_update(a, array(9), array({1}), {0}), {3, 4},
                    {0, 1, 2, 3, 9, 9, 9, 9, 8, 9, 10, 11});
  // What is smaller than an axis without a start stands at its beginning.
  check_values<int>(slice_update(a, array({7, 8}), array({1}), {0}), {3, 4},
                    {0, 1, 2, 3, 7, 8, 6, 7, 8, 9, 10, 11});
  check_values<int>(slice_update(a, array({7}, {1, 1}), array({2}), {1}), {3, 4},
                    {0, 1, 7, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  check_values<int>(slice_update(a, array({7, 8}), array(2, uint8), {1}), {3, 4},
                    {0, 1, 7, 8, 4, 5, 7, 8, 8, 9, 7, 8});
  check_error<std::invalid_argument>("slice_update",
                                     [&] { slice_update(a, a, array({1.0f}), {0}); });
  check_error<std::invalid_argument>("slice_update",
                                     [&] { slice_update(a, a, array({1}), {0, 1}); });
  check_error<std::invalid_argument>("slice_update",
                                     [&] { slice_update(a, zeros({5, 4}), array({1}), {0}); });
  check_error<std::invalid_argument>("slice_update",
                                     [&] { slice_update(a, zeros({1, 1, 4}), array({1}), {0}); });
  for (int bad : {3, -1}) {
    CHECK_THROWS_WITH_AS(slice_update(a, array({9}), array({bad}), {0}).eval(),
                         doctest::Contains("[slice_update] start"), ExecutionError);
  }
}

TEST_CASE("masked_scatter") {
  array a = reshape(arange(6), {2, 3});
  check_values<int>(masked_scatter(a, a > 2, array({9, 8, 7, 6})), {2, 3}, {0, 1, 2, 9, 8, 7});
  check_values<int>(masked_scatter(a, array({false, true}), array({9, 8, 7})), {2, 3},
                    {0, 1, 2, 9, 8, 7});
  check_values<int>(masked_scatter(a, a > 2, array(5)), {2, 3}, {0, 1, 2, 5, 5, 5});
  array many = arange(100000), picked = many % 3 == array(0);
  array got = masked_scatter(zeros({100000}, int32), picked, many);
  check_values<bool>(all(where(picked, got * 3, many) == many), {}, {true});
  check_error<std::invalid_argument>("masked_scatter", [&] { masked_scatter(a, a, a); });
  check_error<std::invalid_argument>("masked_scatter",
                                     [&] { masked_scatter(a, zeros({3}, bool_), a); });
  CHECK_THROWS_WITH_AS(masked_scatter(a, a > 1, array({1, 2})).eval(),
                       doctest::Contains("[masked_scatter] the mask takes 4"), ExecutionError);
}
