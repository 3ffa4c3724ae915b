#include <doctest/doctest.h>

#include "metal/comparison.h"

using namespace holdfast;
using namespace holdfast::testing;

namespace {

using Reduction = array (*)(const array&, const std::vector<int>&, bool, StreamOrDevice);

// Over the last axis, the first, all but the first, and all.
template <typename F>
std::vector<array> over_axes(Case& c, F reduce) {
  const int last = static_cast<int>(c.shape.size()) - 1;
  std::vector<int> all, rest;
  for (int i = 0; i <= last; ++i) all.push_back(i);
  for (int i = 1; i <= last; ++i) rest.push_back(i);
  array x = c.input(c.shape);
  std::vector<array> results = {reduce(x, all)};
  if (last > 0) {
    for (const auto& axes : {std::vector<int>{last}, std::vector<int>{0}, rest})
      results.push_back(reduce(x, axes));
  }
  return results;
}

template <Reduction function>
std::vector<array> reduced(Case& c) {
  return over_axes(
      c, [](const array& x, const std::vector<int>& axes) { return function(x, axes, false, {}); });
}
// The error of a sum is in proportion to the sum of magnitudes: so of positive numbers.
std::vector<array> sums_of_positive(Case& c) {
  return over_axes(c, [](const array& x, const std::vector<int>& axes) {
    if (x.dtype() != complex64) return sum(abs(x), axes, false);
    array quadrant = add(abs(real(x)), multiply(array(complex64_t(0, 1)), abs(imag(x))));
    return sum(quadrant, axes, false);
  });
}
std::vector<array> reduced_products(Case& c) {
  return over_axes(c, [&](const array& x, const std::vector<int>& axes) {
    if (!issubdtype(x.dtype(), inexact)) return prod(x, axes, false);
    // Near 1, so that products stay in range.
    array near = astype(add(multiply(x, array(0.0001f)), array(1.0f)), x.dtype());
    return prod(near, axes, false);
  });
}

std::vector<array> positions(Case& c) {
  const int last = static_cast<int>(c.shape.size()) - 1;
  // Few different values: the first of equal ones counts.
  array x = c.dtype == bool_ ? c.input(c.shape) : c.integers(c.shape, c.dtype, 0, 50);
  std::vector<array> results = {argmin(x), argmax(x)};
  if (last >= 0) {
    for (int axis : {0, last}) {
      results.push_back(argmin(x, axis));
      results.push_back(argmax(x, axis));
    }
  }
  return results;
}

const std::vector<Shape> reduced_shapes = {{},      {1},         {7},         {1000},
                                           {3, 5},  {33, 70},    {5, 1, 9},   {2, 3, 4, 5},
                                           {70001}, {3, 40, 64}, {300, 2048}, {4000, 24}};
const std::vector<Shape> summed_shapes = {{},       {0},          {3, 0, 2}, {7},        {3, 5},
                                          {33, 70}, {2, 3, 4, 5}, {70001},   {300, 2048}};
const std::vector<Dtype> integers_and_bool = {bool_, uint8, uint16, uint32, uint64,
                                              int8,  int16, int32,  int64};
const std::vector<Layout> layouts_of_reductions = {
    Layout::dense, Layout::shifted, Layout::transposed, Layout::padded, Layout::reversed};

const Row reduce_rows[] = {
    {.name = "sums of integers",
     .entries = {"reduce_rows_sum_uint8", "reduce_rows_sum_int8", "reduce_columns_sum_uint16",
                 "reduce_rows_sum_uint64", "reduce_columns_sum_int16"},
     .dtypes = integers_and_bool,
     .shapes = reduced_shapes,
     .layouts = all_layouts,
     .build = reduced<sum>},
    {.name = "products of integers",
     .entries = {"reduce_rows_prod_uint8", "reduce_rows_prod_int8", "reduce_rows_prod_uint64"},
     .dtypes = integers_and_bool,
     .shapes = reduced_shapes,
     .layouts = layouts_of_reductions,
     .build = reduced<prod>},
    {.name = "min",
     .entries = {"reduce_rows_extreme_1", "reduce_columns_extreme_8", "reduce_rows_extreme_float16",
                 "reduce_columns_extreme_complex64"},
     .dtypes = metal_dtypes,
     .shapes = reduced_shapes,
     .layouts = layouts_of_reductions,
     .build = reduced<min>},
    {.name = "max",
     .entries = {"reduce_rows_extreme_2", "reduce_columns_extreme_4"},
     .dtypes = metal_dtypes,
     .shapes = reduced_shapes,
     .layouts = all_layouts,
     .build = reduced<max>},
    {.name = "all",
     .entries = {"reduce_rows_truth_1", "reduce_columns_truth_8"},
     .dtypes = metal_dtypes,
     .shapes = {{}, {0}, {3, 0, 2}, {7}, {3, 5}, {33, 70}, {2, 3, 4, 5}, {70001}},
     .layouts = {Layout::dense, Layout::transposed},
     .build = reduced<all>},
    {.name = "any",
     .entries = {"reduce_rows_truth_2", "reduce_columns_truth_4"},
     .dtypes = metal_dtypes,
     .shapes = {{}, {0}, {3, 0, 2}, {7}, {3, 5}, {33, 70}, {2, 3, 4, 5}, {70001}},
     .layouts = {Layout::dense, Layout::transposed},
     .build = reduced<any>},
    {.name = "argmin, argmax",
     .entries = {"reduce_rows_arg_1", "reduce_columns_arg_2", "reduce_rows_arg_bfloat16",
                 "reduce_columns_arg_complex64"},
     .dtypes = metal_dtypes,
     .shapes = reduced_shapes,
     .layouts = all_layouts,
     .build = positions},
    // Both add in double what they added in float before, a few thousand elements at most.
    {.name = "sums of floats",
     .entries = {"reduce_rows_sum_float32", "reduce_columns_sum_complex64"},
     .dtypes = {float32, complex64},
     .shapes = summed_shapes,
     .layouts = all_layouts,
     .build = sums_of_positive,
     .tolerance = 32},
    {.name = "sums of halves",
     .entries = {"reduce_rows_sum_float16", "reduce_columns_sum_bfloat16"},
     .dtypes = {float16, bfloat16},
     .shapes = summed_shapes,
     .layouts = all_layouts,
     .build = sums_of_positive,
     .tolerance = 1},
    {.name = "products of floats",
     .entries = {"reduce_rows_prod_float16", "reduce_rows_prod_complex64"},
     .dtypes = {float16, bfloat16, float32, complex64},
     .shapes = {{}, {0}, {3, 0, 2}, {7}, {3, 5}, {33, 70}, {70001}},
     .layouts = layouts_of_reductions,
     .build = reduced_products,
     .tolerance = 2},
};

}  // namespace

TEST_CASE("metal reductions") {
  for (const Row& row : reduce_rows) compare(row);
}
