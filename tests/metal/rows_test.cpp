// Softmax and normalisation.
#include <doctest/doctest.h>

#include <limits>

#include "metal/comparison.h"

using namespace holdfast;
using namespace holdfast::testing;

namespace {

std::vector<array> softmaxes(Case& c) {
  array x = c.input(c.shape);
  const int last = static_cast<int>(c.shape.size()) - 1;
  std::vector<array> results = {softmax(x, -1)};
  if (last > 0) {
    results.push_back(softmax(x, 0));
    results.push_back(softmax(x, std::vector<int>{0, last}));
    results.push_back(softmax(x));
  }
  return results;
}

std::vector<array> norms(Case& c) {
  array x = c.input(c.shape);
  Shape row = {c.shape.back()};
  array weight = c.input(row), bias = c.input(row);
  // Rows far from 0, and of one value.
  array far = add(x, array(100.0f, c.dtype));
  array same = broadcast_to(slice(x, Shape(c.shape.size(), 0), Shape(c.shape.size(), 1)), c.shape);
  return {fast::rms_norm(x, weight, 1e-5f),
          fast::rms_norm(x, std::nullopt, 1e-5f),
          fast::layer_norm(x, weight, bias, 1e-5f),
          fast::layer_norm(x, weight, std::nullopt, 1e-5f),
          fast::layer_norm(far, std::nullopt, bias, 1e-5f),
          fast::layer_norm(same, weight, bias, 1e-5f)};
}

// Rows of one thread, of a simdgroup, of a threadgroup, and of several.
const std::vector<Shape> row_shapes = {{1},        {7},        {3, 5},    {33, 70},
                                       {128, 130}, {5, 1, 9},  {3, 2048}, {2, 3, 4, 5},
                                       {2, 16384}, {3, 16385}, {2, 70001}};

const Row rows[] = {
    // Trees of some ten levels over sums of 16 terms, and exp.
    {.name = "softmax",
     .entries = {"softmax_rows_float32", "softmax_states_float32", "softmax_write_float32"},
     .dtypes = {float32},
     .shapes = row_shapes,
     .layouts = all_layouts,
     .build = softmaxes,
     .tolerance = 4},
    {.name = "softmax of halves",
     .entries = {"softmax_rows_float16", "softmax_states_bfloat16", "softmax_write_float16"},
     .dtypes = {float16, bfloat16},
     .shapes = row_shapes,
     .layouts = {Layout::dense, Layout::shifted, Layout::transposed, Layout::padded},
     .build = softmaxes,
     .tolerance = 1},
    // Of rows far from 0 the host takes the variance as a difference.
    {.name = "norms",
     .entries = {"norm_rows_float32", "norm_states_float32", "norm_write_float32"},
     .dtypes = {float32},
     .shapes = row_shapes,
     .layouts = all_layouts,
     .build = norms,
     .tolerance = 1024},
    {.name = "norms of halves",
     .entries = {"norm_rows_float16", "norm_states_bfloat16", "norm_write_float16"},
     .dtypes = {float16, bfloat16},
     .shapes = row_shapes,
     .layouts = {Layout::dense, Layout::shifted, Layout::transposed, Layout::padded},
     .build = norms,
     .tolerance = 2},
    {.name = "softmax of infinities and NaN",
     .entries = {"softmax_rows_float32", "softmax_write_float32"},
     .dtypes = {float32},
     .shapes = {{4, 40}, {4, 20000}},
     .layouts = {Layout::dense},
     .build =
         [](Case& c) {
           const float infinity = std::numeric_limits<float>::infinity();
           array x = c.input(c.shape);
           array first = less(arange(0, c.shape[1], 1), array(3));
           auto with = [&](float value) { return where(first, array(value), x); };
           return std::vector<array>{softmax(with(infinity), -1), softmax(with(-infinity), -1),
                                     softmax(with(NAN), -1),
                                     softmax(full(c.shape, array(-infinity)), -1)};
         },
     .tolerance = 4},
};

}  // namespace

TEST_CASE("metal softmax and norms") {
  for (const Row& row : rows) compare(row);
}
