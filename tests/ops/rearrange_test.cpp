// flip, roll, pad, tile, repeat, diagonals and windows: forms, views and errors. The values for all
// dtypes and layouts are the registry's matter.
#include "ops/array_testing.h"

using namespace holdfast;
using namespace holdfast::testing;

TEST_CASE("flip is a view") {
  array a = reshape(arange(6), {2, 3});
  a.eval();
  check_values<int>(flip(a), {2, 3}, {5, 4, 3, 2, 1, 0});
  check_values<int>(flip(a, -1), {2, 3}, {2, 1, 0, 5, 4, 3});
  array view = flip(a, {0, 1});
  view.eval();
  CHECK(view.data_shared_ptr() == a.data_shared_ptr());
  CHECK(flip(array(1)).shape() == Shape{});
  check_error<std::out_of_range>("flip", [&] { flip(a, 2); });
  check_error<std::out_of_range>("flip", [&] { flip(a, {0, -3}); });
  CHECK(array_equal(flip(a, {0, -2}), flip(a, 0)).item<bool>());  // an axis may be named twice
}

TEST_CASE("roll in all its forms") {
  array a = reshape(arange(6), {2, 3});
  check_values<int>(roll(a, 1), {2, 3}, {5, 0, 1, 2, 3, 4});
  check_values<int>(roll(a, Shape{1, 1}), {2, 3}, {4, 5, 0, 1, 2, 3});
  check_values<int>(roll(a, -4, 1), {2, 3}, {1, 2, 0, 4, 5, 3});
  check_values<int>(roll(a, 1, {0, 1}), {2, 3}, {5, 3, 4, 2, 0, 1});
  check_values<int>(roll(a, {1, 1}, 1), {2, 3}, {1, 2, 0, 4, 5, 3});
  check_values<int>(roll(a, {1, 2}, {0, 1}), {2, 3}, {4, 5, 3, 1, 2, 0});
  check_values<int>(roll(array(3), 2), {}, {3});
  CHECK(roll(zeros({0, 2}), 1, 0).shape() == Shape{0, 2});
  check_error<std::out_of_range>("roll", [&] { roll(a, 1, 2); });
  check_error<std::invalid_argument>("roll", [&] { roll(a, Shape{1}, std::vector<int>{0, 1}); });
}

TEST_CASE("pad in all its forms") {
  array a({1, 2, 3}, {1, 3});
  check_values<int>(pad(a, 1), {3, 5}, {0, 0, 0, 0, 0, 0, 1, 2, 3, 0, 0, 0, 0, 0, 0});
  check_values<int>(pad(a, {1, 0}, array(7.9f)), {2, 4}, {7, 7, 7, 7, 7, 1, 2, 3});
  check_values<int>(pad(a, {{0, 0}, {0, 2}}), {1, 5}, {1, 2, 3, 0, 0});
  check_values<int>(pad(a, {1}, {2}, {0}, array(9)), {1, 5}, {9, 9, 1, 2, 3});
  check_values<int>(pad(a, {{0, 0}, {4, 4}}, array(0), "reflect"), {1, 11},
                    {1, 2, 3, 2, 1, 2, 3, 2, 1, 2, 3});
  check_values<int>(pad(a, {{0, 0}, {4, 1}}, array(0), "symmetric"), {1, 8},
                    {3, 3, 2, 1, 1, 2, 3, 3});
  check_values<int>(pad(a, {{1, 0}, {0, 1}}, array(0), "edge"), {2, 4}, {1, 2, 3, 3, 1, 2, 3, 3});
  check_values<int>(pad(array({5}), 2, array(0), "reflect"), {5}, {5, 5, 5, 5, 5});
  check_values<int>(pad(zeros({0, 2}, int32), 1, array(4)), {2, 4}, {4, 4, 4, 4, 4, 4, 4, 4});
  CHECK(pad(a, 0).id() == a.id());
  CHECK(pad(array(1), 3).shape() == Shape{});
  array large = random::normal({300, 400}, random::key(1));
  array padded = pad(large, {{3, 4}, {5, 6}});
  CHECK(values_of<float>(slice(padded, {3, 5}, {303, 405})) == values_of<float>(large));
  CHECK(values_of<float>(sum(abs(padded)))[0] ==
        doctest::Approx(values_of<float>(sum(abs(large)))[0]));
  check_error<std::invalid_argument>("pad", [&] { pad(a, -1); });
  check_error<std::invalid_argument>("pad", [&] { pad(a, {{1, 1}, {1, 1}, {1, 1}}); });
  check_error<std::invalid_argument>("pad", [&] { pad(a, 1, array(0), "wrap"); });
  check_error<std::invalid_argument>("pad", [&] { pad(a, std::vector<int>{0, 1}, {1}, {1}); });
  check_error<std::invalid_argument>("pad", [&] { pad(zeros({0}), 1, array(0), "edge"); });
  check_error<std::overflow_error>("pad", [&] { pad(a, 2147483647); });
}

TEST_CASE("tile and repeat") {
  array a({1, 2, 3, 4}, {2, 2});
  check_values<int>(tile(a, {2}), {2, 4}, {1, 2, 1, 2, 3, 4, 3, 4});
  check_values<int>(tile(a, {2, 1, 1}), {2, 2, 2}, {1, 2, 3, 4, 1, 2, 3, 4});
  CHECK(tile(a, {}).shape() == Shape{2, 2});
  check_values<int>(repeat(a, 2), {8}, {1, 1, 2, 2, 3, 3, 4, 4});
  check_values<int>(repeat(a, 2, 0), {4, 2}, {1, 2, 1, 2, 3, 4, 3, 4});
  check_values<int>(repeat(array(3), 2), {2}, {3, 3});
  check_error<std::invalid_argument>("tile", [&] { tile(a, {-1}); });
  check_error<std::invalid_argument>("repeat", [&] { repeat(a, -1, 0); });
  check_error<std::out_of_range>("repeat", [&] { repeat(a, 1, 2); });
  check_error<std::overflow_error>("repeat", [&] { repeat(a, 2147483647, 0); });
}

TEST_CASE("diagonals") {
  array a = reshape(arange(24), {2, 3, 4});
  a.eval();
  check_values<int>(diagonal(a), {4, 2}, {0, 16, 1, 17, 2, 18, 3, 19});
  check_values<int>(diagonal(a, -1, 1, 2), {2, 2}, {4, 9, 16, 21});
  array view = diagonal(a, 1, 2, 0);
  view.eval();
  CHECK(view.data_shared_ptr() == a.data_shared_ptr());
  CHECK(diagonal(a, 2147483647).shape() == Shape{4, 0});
  CHECK(diagonal(a, std::numeric_limits<int>::min()).shape() == Shape{4, 0});
  check_values<int>(diag(array({1, 2}), -1), {3, 3}, {0, 0, 0, 1, 0, 0, 0, 2, 0});
  check_values<int>(diag(array({1, 2}), 1), {3, 3}, {0, 1, 0, 0, 0, 2, 0, 0, 0});
  check_values<int>(trace(a), {4}, {16, 18, 20, 22});
  check_values<uint32_t>(trace(full({300, 300}, 255, uint8)), {}, {300 * 255});
  check_values<float>(trace(a, 0, 1, 2, float32), {2}, {15, 51});
  check_error<std::invalid_argument>("diagonal", [] { diagonal(array({1})); });
  check_error<std::invalid_argument>("diagonal", [&] { diagonal(a, 0, 1, -2); });
  check_error<std::out_of_range>("diagonal", [&] { diagonal(a, 0, 0, 3); });
  check_error<std::invalid_argument>("diag", [&] { diag(a); });
  check_error<std::invalid_argument>("trace", [] { trace(array({1})); });
}

TEST_CASE("windows") {
  check_values<float>(hanning(5), {5}, {0, 0.5f, 1, 0.5f, 0});
  check_values<float>(bartlett(5), {5}, {0, 0.5f, 1, 0.5f, 0});
  CHECK(values_of<float>(hamming(3))[0] == doctest::Approx(0.08));
  CHECK(values_of<float>(blackman(5))[1] == doctest::Approx(0.34));
  for (auto window : {hanning, hamming, bartlett, blackman}) {
    check_values<float>(window(1, {}), {1}, {1});
    CHECK(window(0, {}).shape() == Shape{0});
    CHECK(window(-3, {}).shape() == Shape{0});
  }
}
