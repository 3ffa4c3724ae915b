#include <doctest/doctest.h>

#include "metal/comparison.h"
#include "ops/recurrence.h"

using namespace holdfast;
using namespace holdfast::testing;

namespace {

using ScanFunction = array (*)(const array&, int, bool, bool, StreamOrDevice);

array running_sum(const array& a, int axis, bool reverse, bool inclusive, StreamOrDevice s) {
  return cumsum(a, axis, reverse, inclusive, a.dtype(), s);
}
array running_product(const array& a, int axis, bool reverse, bool inclusive, StreamOrDevice s) {
  return cumprod(a, axis, reverse, inclusive, std::nullopt, s);
}

// In all directions, along the first and the last axis.
std::vector<array> scans(const array& x, ScanFunction scan) {
  std::vector<array> results;
  const int last = static_cast<int>(x.ndim()) - 1;
  for (int axis : {0, last}) {
    for (bool reverse : {false, true}) {
      for (bool inclusive : {false, true}) results.push_back(scan(x, axis, reverse, inclusive, {}));
    }
    if (last == 0) break;
  }
  return results;
}
template <ScanFunction function>
std::vector<array> scanned(Case& c) {
  return scans(c.input(c.shape), function);
}

std::vector<array> positive_sums(Case& c) {
  array x = abs(real(c.input(c.shape)));
  if (c.dtype == complex64) x = multiply(x, array(complex64_t(1, 2)));
  return scans(x, running_sum);
}
// Factors near 1, so that products stay in range.
std::vector<array> near_products(Case& c) {
  array x = multiply(c.input(c.shape), array(0.001f));
  return scans(astype(add(x, array(1.0f)), c.dtype), running_product);
}
// Of complex numbers of similar angles: others cancel.
std::vector<array> logarithms_of_sums(Case& c) {
  array x = c.input(c.shape);
  if (c.dtype == complex64) x = add(real(x), multiply(array(complex64_t(0, 0.1f)), imag(x)));
  return scans(x, logcumsumexp);
}
std::vector<array> recurrences(Case& c) {
  array factors = c.input(c.shape), terms = c.input(c.shape);
  // Products of infinite complex numbers have rules of their own in C++.
  if (c.dtype == complex64) factors = multiply(factors, array(0.1f));
  const int last = static_cast<int>(c.shape.size()) - 1;
  return {linear_recurrence(factors, terms, last, false, {}),
          linear_recurrence(factors, terms, 0, true, {})};
}

const std::vector<Shape> scanned_shapes = {{0},     {1},        {7},       {1000},
                                           {3, 5},  {33, 70},   {5, 1, 9}, {2, 3, 4, 5},
                                           {70001}, {2, 40000}, {20000, 3}};
const std::vector<Shape> few_shapes = {{7}, {33, 70}, {2, 3, 4, 5}, {70001}, {5000, 3}};
const std::vector<Layout> few_layouts = {Layout::dense, Layout::shifted, Layout::transposed};

const std::vector<Dtype> integers_with_bool = {bool_, uint8, uint16, uint32, uint64,
                                               int8,  int16, int32,  int64};

const Row scan_rows[] = {
    {.name = "cumsum of integers",
     .entries = {"scan_lines_sum_1", "scan_columns_sum_2", "scan_lines_sum_8",
                 "scan_states_sum_uint", "scan_states_sum_ulong"},
     .dtypes = integers_with_bool,
     .shapes = scanned_shapes,
     .layouts = few_layouts,
     .build = scanned<running_sum>},
    {.name = "cumprod of integers",
     .entries = {"scan_lines_prod_1", "scan_columns_prod_2"},
     .dtypes = integers_with_bool,
     .shapes = few_shapes,
     .layouts = {Layout::dense},
     .build = scanned<running_product>},
    {.name = "cummax",
     .entries = {"scan_lines_extreme_1", "scan_columns_extreme_float16", "scan_states_extreme_uint",
                 "scan_lines_extreme_complex64"},
     .dtypes = metal_dtypes,
     .shapes = scanned_shapes,
     .layouts = {Layout::dense, Layout::shifted},
     .build = scanned<cummax>},
    {.name = "cummin",
     .entries = {"scan_lines_extreme_2", "scan_columns_extreme_bfloat16"},
     .dtypes = metal_dtypes,
     .shapes = few_shapes,
     .layouts = {Layout::dense},
     .build = scanned<cummin>},
    // The host adds one register after the other: 70001 elements, of which 16 at a time in a tree.
    {.name = "cumsum of floats",
     .entries = {"scan_lines_sum_float32", "scan_columns_sum_complex64", "scan_states_sum_float"},
     .dtypes = {float32, complex64},
     .shapes = scanned_shapes,
     .layouts = few_layouts,
     .build = positive_sums,
     .tolerance = 1024},
    {.name = "cumsum of halves",
     .entries = {"scan_lines_sum_float16", "scan_columns_sum_bfloat16"},
     .dtypes = {float16, bfloat16},
     .shapes = few_shapes,
     .layouts = few_layouts,
     .build = positive_sums,
     .tolerance = 1},
    {.name = "cumprod of floats",
     .entries = {"scan_lines_prod_float32", "scan_columns_prod_complex64"},
     .dtypes = {float16, bfloat16, float32, complex64},
     .shapes = few_shapes,
     .layouts = {Layout::dense},
     .build = near_products,
     .tolerance = 4096},
    {.name = "logcumsumexp",
     .entries = {"scan_lines_log_float16", "scan_columns_log_float32"},
     .dtypes = {float16, bfloat16, float32},
     .shapes = few_shapes,
     .layouts = {Layout::dense},
     .build = logarithms_of_sums,
     .tolerance = 256},
    // The host adds one element after the other, so not many.
    {.name = "logcumsumexp of complex numbers",
     .entries = {"scan_lines_log_complex64", "scan_columns_log_complex64"},
     .dtypes = {complex64},
     .shapes = {{7}, {33, 70}, {2, 3, 4, 5}, {5000, 3}},
     .layouts = {Layout::dense},
     .build = logarithms_of_sums,
     .tolerance = 256},
    {.name = "recurrences",
     .entries = {"recurrence_float16", "recurrence_bfloat16", "recurrence_float32",
                 "recurrence_complex64"},
     .dtypes = {float16, bfloat16, float32, complex64},
     .shapes = {{0}, {1}, {33, 70}, {2, 3, 4, 5}, {70001}},
     .layouts = few_layouts,
     .build = recurrences},
};

}  // namespace

TEST_CASE("metal scans") {
  for (const Row& row : scan_rows) compare(row);
}
