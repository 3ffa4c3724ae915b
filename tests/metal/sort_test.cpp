#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "metal/comparison.h"

using namespace holdfast;
using namespace holdfast::testing;

namespace {

// Few different values, so that the order of equal ones shows in indices.
array with_equal_ones(Case& c) {
  return c.dtype == bool_ ? c.input(c.shape) : c.integers(c.shape, c.dtype, 0, 20);
}
std::vector<array> sorts(Case& c) {
  return {sort(c.input(c.shape), -1), argsort(with_equal_ones(c), -1),
          argsort(c.input(c.shape), 0)};
}

// What a partition promises: the element at the position, and the elements on both sides of it.
std::vector<array> parts(const array& x, int kth) {
  Shape start(x.ndim(), 0), stop = x.shape(), middle = x.shape(), next(x.ndim(), 0);
  middle.back() = kth;
  next.back() = kth;
  return {sort(slice(x, start, middle), -1), sort(slice(x, next, stop), -1), take(x, kth, -1)};
}
std::vector<array> partitions(Case& c) {
  array x = c.input(c.shape);
  const int kth = c.shape.back() / 3;
  std::vector<array> results = parts(partition(x, kth, -1), kth);
  array indices = argpartition(x, kth, -1);
  for (array& part : parts(take_along_axis(x, indices, -1), kth)) results.push_back(part);
  results.push_back(sort(topk(x, kth + 1, -1), -1));
  return results;
}

// NaN, infinities, both zeros and the smallest numbers.
std::vector<array> special_values(Case& c) {
  const float infinity = std::numeric_limits<float>::infinity();
  const float values[] = {0.0f, -0.0f, NAN, -NAN, infinity, -infinity, 1e-7f, -1e-7f, 3.0f, -3.0f};
  array table = astype(array(values, {10}), c.dtype);
  array x = take(table, c.integers(c.shape, int32, 0, 10));
  if (c.dtype == complex64) {
    array other = take(array(values, {10}), c.integers(c.shape, int32, 0, 10));
    x = add(x, multiply(array(complex64_t(0, 1)), other));
  }
  return {sort(x, -1), argsort(x, -1), max(x, -1), min(x, -1), argmax(x, -1), argmin(x, -1)};
}

std::vector<array> searches(Case& c) {
  array sorted = sort(c.input({c.dtype == bool_ ? 3 : 500}), 0);
  array backwards = sort(c.integers({40}, c.dtype == bool_ ? int8 : c.dtype, 0, 20), 0);
  array values = c.input(c.shape);
  return {
      searchsorted(sorted, values, "left"), searchsorted(sorted, values, "right"),
      searchsorted(backwards, astype(c.integers(c.shape, int32, 0, 20), backwards.dtype()), "left"),
      searchsorted(zeros({0}, c.dtype), values, "right")};
}

const std::vector<Layout> few_layouts_of_rows = {Layout::dense, Layout::shifted, Layout::transposed,
                                                 Layout::broadcast};

const Row sort_rows[] = {
    {.name = "sort, argsort",
     .entries = {"sort_rows_1", "sort_rows_arg_2", "sort_rows_half", "sort_rows_arg_complex",
                 "sort_move_uint", "sort_move_ulong", "sort_move_arg_uint", "sort_move_arg_ulong"},
     .dtypes = metal_dtypes,
     .shapes = {{0}, {3, 0, 2}, {1}, {7}, {33, 70}, {5, 1, 9}, {3, 2048}, {2, 2049}, {10001}},
     .layouts = few_layouts_of_rows,
     .build = sorts},
    {.name = "partitions",
     .entries = {"sort_rows_4", "sort_rows_arg_float"},
     .dtypes = metal_dtypes,
     .shapes = {{1}, {33, 70}, {2, 5000}},
     .layouts = {Layout::dense},
     .build = partitions},
    {.name = "order of special values",
     .entries = {"sort_rows_half", "sort_rows_float", "sort_rows_complex"},
     .dtypes = {float16, bfloat16, float32, complex64},
     .shapes = {{4, 300}, {2, 3000}},
     .layouts = {Layout::dense},
     .build = special_values},
    {.name = "searches",
     .entries = {"search_sorted_1", "search_sorted_2", "search_sorted_4", "search_sorted_8",
                 "search_sorted_half", "search_sorted_float", "search_sorted_complex"},
     .dtypes = metal_dtypes,
     .shapes = {{}, {0}, {7}, {33, 70}, {2, 3, 4, 5}},
     .layouts = all_layouts,
     .build = searches},
};

}  // namespace

TEST_CASE("metal sorts") {
  for (const Row& row : sort_rows) compare(row);
}
