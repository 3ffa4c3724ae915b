// Helpers of utils.h: shape and dtype rules, limits, text.
#include <doctest/doctest.h>

#include <limits>
#include <sstream>
#include <thread>

#include <holdfast/ops.h>
#include <holdfast/utils.h>

using namespace holdfast;

namespace {
template <typename T>
std::string text_of(const T& value) {
  std::ostringstream stream;
  stream << value;
  return stream.str();
}
}  // namespace

TEST_CASE("broadcast_shapes and result_type") {
  CHECK(broadcast_shapes({2, 1, 3}, {4, 1}) == Shape{2, 4, 3});
  CHECK(broadcast_shapes({}, {2, 0}) == Shape{2, 0});
  CHECK(broadcast_shapes({1}, {0}) == Shape{0});
  CHECK_THROWS_AS(broadcast_shapes({2}, {3}), std::invalid_argument);
  CHECK_THROWS_AS(broadcast_shapes({2}, {0}), std::invalid_argument);
  CHECK(result_type(array(1, int8), array(1, uint8)) == int16);
  CHECK(result_type(array(1, int8), array(1, uint8), array(1, float16)) == float16);
  CHECK(result_type({array(1, bool_)}) == bool_);
  CHECK(result_type({array(1, float16), array(1, bfloat16), array(true)}) == float32);
}

TEST_CASE("axes, sizes and powers of two") {
  CHECK(normalize_axis_index(-1, 3) == 2);
  CHECK(normalize_axis_index(0, 3) == 0);
  CHECK_THROWS_WITH_AS(normalize_axis_index(3, 3, "[op] "), doctest::Contains("[op] axis 3"),
                       std::invalid_argument);
  CHECK_THROWS_AS(normalize_axis_index(-4, 3), std::invalid_argument);
  CHECK(safe_cast(int64_t{2147483647}) == 2147483647);
  CHECK(safe_cast(int64_t{-2147483648}) == -2147483647 - 1);
  CHECK_THROWS_WITH_AS(safe_cast(int64_t{2147483648}, "op"), doctest::Contains("[op]"),
                       std::overflow_error);
  CHECK_THROWS_AS(safe_cast(uint64_t{1} << 40), std::overflow_error);
  CHECK(is_power_of_2(64));
  CHECK_FALSE(is_power_of_2(0));
  CHECK_FALSE(is_power_of_2(48));
  CHECK(next_power_of_2(33) == 64);
  CHECK(next_power_of_2(32) == 32);
  CHECK(next_power_of_2(0) == 1);
  CHECK(next_power_of_2(1 << 30) == 1 << 30);
  CHECK_THROWS_AS(next_power_of_2((1 << 30) + 1), std::overflow_error);
  CHECK(is_main_thread());
  std::thread([] { CHECK_FALSE(is_main_thread()); }).join();
}

TEST_CASE("finfo and iinfo") {
  CHECK(finfo(float16).max == 65504.0);
  CHECK(finfo(float16).min == -65504.0);
  CHECK(finfo(float16).eps == 0.0009765625);
  CHECK(finfo(float16).smallest_normal == 6.103515625e-05);
  CHECK(finfo(bfloat16).eps == 0.0078125);
  CHECK(finfo(bfloat16).bits == 16);
  CHECK(finfo(float32).max == double(std::numeric_limits<float>::max()));
  CHECK(finfo(float32).eps == double(std::numeric_limits<float>::epsilon()));
  CHECK(finfo(float32).smallest_normal == double(std::numeric_limits<float>::min()));
  CHECK(finfo(float64).max == std::numeric_limits<double>::max());
  CHECK(finfo(float64).smallest_normal == std::numeric_limits<double>::min());
  CHECK(finfo(complex64).dtype == float32);
  CHECK_THROWS_AS(finfo{int32}, std::invalid_argument);
  CHECK(iinfo(int8).min == -128);
  CHECK(iinfo(int8).max == 127);
  CHECK(iinfo(uint16).min == 0);
  CHECK(iinfo(uint16).max == 65535);
  CHECK(iinfo(int64).min == std::numeric_limits<int64_t>::min());
  CHECK(iinfo(uint64).max == std::numeric_limits<uint64_t>::max());
  CHECK_THROWS_AS(iinfo{float32}, std::invalid_argument);
  CHECK_THROWS_AS(iinfo{bool_}, std::invalid_argument);
}

TEST_CASE("text forms of arrays") {
  CHECK(text_of(array({1, 2, 3}, int32)) == "array([1, 2, 3], dtype=int32)");
  CHECK(text_of(array(1.5f)) == "array(1.5, dtype=float32)");
  CHECK(text_of(array({true, false})) == "array([true, false], dtype=bool)");
  CHECK(text_of(array({200, 7}, uint8)) == "array([200, 7], dtype=uint8)");
  CHECK(text_of(array({-100}, int8)) == "array([-100], dtype=int8)");
  CHECK(text_of(array({0.1f}, bfloat16)) == "array([0.100098], dtype=bfloat16)");
  CHECK(text_of(array({1e10f, 1e-5f, std::nanf(""), -INFINITY})) ==
        "array([1e+10, 1e-05, nan, -inf], dtype=float32)");
  CHECK(text_of(array({complex64_t(1, -2), complex64_t(3.5f, 1e-9f)})) ==
        "array([1-2j, 3.5+1e-09j], dtype=complex64)");
  CHECK(text_of(zeros({0, 3})) == "array([], dtype=float32)");
  CHECK(text_of(zeros({2, 0})) == "array([[],\n       []], dtype=float32)");
  CHECK(text_of(transpose(reshape(arange(4), {2, 2}))) ==
        "array([[0, 2],\n       [1, 3]], dtype=int32)");
  CHECK(text_of(reshape(arange(8), {2, 2, 2})) ==
        "array([[[0, 1],\n        [2, 3]],\n       [[4, 5],\n        [6, 7]]], dtype=int32)");
  CHECK(text_of(arange(6)) == "array([0, 1, 2, 3, 4, 5], dtype=int32)");
  CHECK(text_of(arange(7)) == "array([0, 1, 2, ..., 4, 5, 6], dtype=int32)");
  CHECK(text_of(reshape(arange(14), {7, 2})) ==
        "array([[0, 1],\n       [2, 3],\n       [4, 5],\n       ...,\n       [8, 9],\n       [10, "
        "11],\n       "
        "[12, 13]], dtype=int32)");
}

TEST_CASE("print options and scalars") {
  set_printoptions({3});
  CHECK(text_of(array({1.23456f, 3.0f})) == "array([1.235, 3.000], dtype=float32)");
  CHECK(text_of(array({7}, int32)) == "array([7], dtype=int32)");
  // No double has more digits behind the point: a precision of billions does not print them.
  set_printoptions({std::numeric_limits<int>::max()});
  CHECK(text_of(array(0.5f)) == "array(0.5" + std::string(1073, '0') + ", dtype=float32)");
  set_printoptions({-1});
  CHECK(text_of(array({1.23456f})) == "array([1.23456], dtype=float32)");
  get_global_formatter().capitalize_bool = true;
  CHECK(text_of(array(true)) == "array(True, dtype=bool)");
  get_global_formatter().capitalize_bool = false;
  CHECK(text_of(complex64_t(1, -0.5f)) == "1-0.5j");
  CHECK(text_of(float16_t(1.5f)) == "1.5");
  CHECK(text_of(bfloat16_t(-2.0f)) == "-2");
  CHECK(text_of(Device(Device::gpu, 0)) == "Device(gpu, 0)");
  CHECK(text_of(Stream(1, Device::cpu)) == "Stream(Device(cpu, 0), 1)");
  CHECK(text_of(Shape{1, 2}) == "(1,2)");
}
