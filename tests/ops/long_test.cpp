// More than 2^31 elements, of one byte each. HOLDFAST_TEST_LONG=1 runs this; it needs about 9 GB.
#include <unistd.h>

#include "ops/array_testing.h"

using namespace holdfast;
using namespace holdfast::testing;

namespace {

constexpr int rows = 3;
constexpr int columns = 1 << 30;
constexpr int64_t size = int64_t{rows} * columns;

bool has_memory(double gigabytes) {
  double available = double(sysconf(_SC_AVPHYS_PAGES)) * double(sysconf(_SC_PAGESIZE));
  if (available >= gigabytes * 1e9) return true;
  MESSAGE("skipped: needs " << gigabytes << " GB of free memory, has " << available / 1e9);
  return false;
}

template <typename T>
T at(const array& a, int row, int column) {
  return a.data<T>()[int64_t{row} * columns + column];
}

}  // namespace

TEST_CASE("[long] more than 2^31 elements") {
  // Asked once: doctest runs the case again for each subcase, and what is cached then is ours.
  static const bool has_enough = has_memory(9.5);
  if (!has_enough) return;
  clear_cache();
  array a = full({rows, columns}, array({1, 2, 3}, {rows, 1}, uint8));
  a.eval();
  REQUIRE(a.size() == static_cast<size_t>(size));
  CHECK(at<uint8_t>(a, 2, columns - 1) == 3);

  SUBCASE("add and astype") {
    array b = a + broadcast_to(array(4, uint8), {rows, columns});
    b.eval();
    CHECK(at<uint8_t>(b, 0, 0) == 5);
    CHECK(at<uint8_t>(b, 2, columns - 1) == 7);
    array c = astype(a > array(1, uint8), int8);
    c.eval();
    CHECK(at<int8_t>(c, 0, columns - 1) == 0);
    CHECK(at<int8_t>(c, 2, columns - 1) == 1);
  }
  SUBCASE("sum, max, any, argmax") {
    // Beyond uint32: wraps, as in 32-bit arithmetic.
    CHECK(sum(a).item<uint32_t>() == static_cast<uint32_t>(int64_t{6} * columns));
    check_values<uint32_t>(sum(a, 1), {rows},
                           {uint32_t(columns), 2u * columns, uint32_t(3u * uint32_t(columns))});
    CHECK(max(a).item<uint8_t>() == 3);
    CHECK(argmax(a).item<uint32_t>() == 2u * uint32_t(columns));
    CHECK(any(a == array(3, uint8)).item<bool>());
    array by_column = sum(a, 0);
    by_column.eval();
    CHECK(by_column.data<uint32_t>()[columns - 1] == 6);
  }
  SUBCASE("slice, transpose, copy, concatenate") {
    array tail = copy(slice(a, {2, columns - 2}, {3, columns}));
    check_values<uint8_t>(tail, {1, 2}, {3, 3});
    array every = copy(slice(a, {2, columns - 1}, {-4, -columns - 1}, {-1, -(1 << 28)}));
    check_values<uint8_t>(every, {3, 4}, {3, 3, 3, 3, 2, 2, 2, 2, 1, 1, 1, 1});
    array joined = concatenate({slice(a, {0, 0}, {1, columns}), slice(a, {2, 0}, {3, columns}),
                                slice(a, {1, 0}, {2, columns})},
                               0);
    joined.eval();
    CHECK(at<uint8_t>(joined, 1, columns - 1) == 3);
    CHECK(at<uint8_t>(joined, 2, columns - 1) == 2);
  }
  SUBCASE("take") {
    check_values<uint8_t>(take(a, array({columns - 1, 0}, int32), 1), {rows, 2},
                          {1, 1, 2, 2, 3, 3});
    array swapped = take(a, array({2, 0, 1}, int32), 0);
    swapped.eval();
    CHECK(at<uint8_t>(swapped, 0, columns - 1) == 3);
    CHECK(at<uint8_t>(swapped, 2, columns - 1) == 2);
  }
  SUBCASE("scans and sort") {
    array c = cumsum(a, 1);
    c.eval();
    CHECK(at<uint8_t>(c, 1, 100) == 202);
    CHECK(at<uint8_t>(c, 2, columns - 2) == 253);  // -3 modulo 256
    CHECK(at<uint8_t>(c, 2, columns - 1) == 0);
    c = array(0);
    array up = cummax(a, 0, true);
    up.eval();
    CHECK(at<uint8_t>(up, 0, columns - 1) == 3);
    up = array(0);
    array sorted = sort(flip(a, 0), 0);
    sorted.eval();
    CHECK(at<uint8_t>(sorted, 0, columns - 1) == 1);
    CHECK(at<uint8_t>(sorted, 2, columns - 1) == 3);
  }
  SUBCASE("updates of the last element") {
    array b = slice_update(a, array({9}, {1, 1}, uint8), {2, columns - 1}, {3, columns});
    b.eval();
    CHECK(at<uint8_t>(b, 2, columns - 1) == 9);
    CHECK(at<uint8_t>(b, 2, columns - 2) == 3);
    CHECK(at<uint8_t>(a, 2, columns - 1) == 3);
    b = put_along_axis(a, full({rows, 1}, -1, int32), array(7, uint8), 1);
    b.eval();
    CHECK(at<uint8_t>(b, 0, columns - 1) == 7);
    CHECK(at<uint8_t>(b, 2, columns - 1) == 7);
    b = scatter_add(a, array({2}, int32), full({1, 1, columns}, 5, uint8), 0);
    b.eval();
    CHECK(at<uint8_t>(b, 1, columns - 1) == 2);
    CHECK(at<uint8_t>(b, 2, columns - 1) == 8);
  }
  SUBCASE("flip, roll, where") {
    array b = copy(flip(a, {0, 1}));
    b.eval();
    CHECK(at<uint8_t>(b, 0, columns - 1) == 3);
    b = roll(a, 1, 0);
    b.eval();
    CHECK(at<uint8_t>(b, 0, columns - 1) == 3);
    CHECK(at<uint8_t>(b, 2, columns - 1) == 2);
    b = where(a == array(2, uint8), array(4, uint8), a);
    b.eval();
    CHECK(at<uint8_t>(b, 1, columns - 1) == 4);
    CHECK(at<uint8_t>(b, 2, columns - 1) == 3);
  }
  SUBCASE("random bytes") {
    array bytes = random::bits({rows, columns}, 1, random::key(3));
    bytes.eval();
    // The last million: mean and spread of uniform bytes.
    double sum = 0, squares = 0;
    constexpr int count = 1 << 20;
    for (int i = 1; i <= count; ++i) {
      double value = at<uint8_t>(bytes, rows - 1, columns - i);
      sum += value;
      squares += value * value;
    }
    double mean = sum / count, variance = squares / count - mean * mean;
    CHECK(mean == doctest::Approx(127.5).epsilon(0.01));
    CHECK(variance == doctest::Approx(5461.25).epsilon(0.01));
  }
  SUBCASE("bool: logical ops and all") {
    array b = a > array(0, uint8);
    CHECK(all(b).item<bool>());
    CHECK_FALSE(any(logical_not(b)).item<bool>());
  }
}

TEST_CASE("[long] rows of 2^30 elements: products and norms") {
  static const bool has_enough = has_memory(14);
  if (!has_enough) return;
  clear_cache();
  // Small enough that sums of all fit float16.
  array a = full({rows, columns}, array({0x1p-15f, 0x1p-14f, -0x1p-15f}, {rows, 1}), float16);
  a.eval();
  SUBCASE("matmul") {
    array ones_column = ones({columns, 1}, float16);
    array product = astype(matmul(a, ones_column), float32);
    product.eval();
    CHECK(product.data<float>()[0] == 32768.0f);
    CHECK(product.data<float>()[2] == -32768.0f);
  }
  SUBCASE("rms_norm") {
    array out = fast::rms_norm(std::move(a), std::nullopt, 0.0f);
    out.eval();
    CHECK(static_cast<float>(at<float16_t>(out, 2, columns - 1)) == -1.0f);
    CHECK(static_cast<float>(at<float16_t>(out, 1, 0)) == 1.0f);
  }
}
