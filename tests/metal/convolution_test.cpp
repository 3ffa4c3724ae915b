#include <doctest/doctest.h>

#include "metal/comparison.h"

using namespace holdfast;
using namespace holdfast::testing;

namespace {

// Shapes are (batch, sizes…, channels) of the input; outputs and groups are given.
array convolved(Case& c, int outputs, int groups, const std::vector<int>& kernel,
                const std::vector<int>& stride = {}, const std::vector<int>& low = {},
                const std::vector<int>& high = {}, const std::vector<int>& dilation = {},
                const std::vector<int>& input_dilation = {}, bool flip = false) {
  Shape weights = {outputs};
  for (int size : kernel) weights.push_back(size);
  weights.push_back(c.shape.back() / groups);
  return conv_general(c.input(c.shape), c.input(weights), stride, low, high, dilation,
                      input_dilation, groups, flip);
}

const std::vector<Layout> some_layouts = {Layout::dense, Layout::shifted, Layout::transposed,
                                          Layout::reversed};

// Kernels have up to 12 taps; of complex numbers each part of a result has two products for each.
double most_products(const Case& c) { return 2 * 12.0 * c.shape.back(); }

const Row convolution_rows[] = {
    {.name = "convolutions in one dimension",
     .entries = {"convolution_tiles_float16", "convolution_tiles_bfloat16",
                 "convolution_tiles_float32", "convolution_tiles_complex64"},
     .dtypes = {},
     .shapes = {{1, 9, 1}, {2, 70, 8}, {3, 21, 12}, {0, 9, 4}, {1, 5, 64}},
     .layouts = some_layouts,
     .build =
         [](Case& c) {
           return std::vector<array>{convolved(c, 5, 1, {3}),
                                     convolved(c, 70, 1, {2}, {2}, {1}, {0}, {2}),
                                     convolved(c, 8, 1, {4}, {1}, {3}, {3}, {1}, {3}, true)};
         }},
    {.name = "convolutions in two dimensions",
     .entries = {"convolution_tiles_float16", "convolution_tiles_bfloat16",
                 "convolution_tiles_float32", "convolution_tiles_complex64", "add_parts_float16",
                 "add_parts_bfloat16", "add_parts_float32"},
     .dtypes = {},
     .shapes = {{1, 6, 5, 3}, {2, 9, 17, 16}, {1, 14, 13, 72}, {1, 4, 4, 600}},
     .layouts = some_layouts,
     .build =
         [](Case& c) {
           return std::vector<array>{
               convolved(c, 66, 1, {3, 3}, {1}, {1}, {1}), convolved(c, 4, 1, {1, 1}),
               convolved(c, 3, 1, {3, 2}, {2, 3}, {0, 2}, {1, 4}, {1, 2}, {2, 1}, true)};
         }},
    {.name = "convolutions in groups, and in three dimensions",
     .entries = {"convolution_tiles_float16", "convolution_tiles_bfloat16",
                 "convolution_tiles_float32", "convolution_tiles_complex64"},
     .dtypes = {},
     .shapes = {{2, 4, 5, 6, 8}, {1, 3, 9, 4, 48}},
     .layouts = some_layouts,
     .build =
         [](Case& c) {
           return std::vector<array>{
               convolved(c, 6, 2, {2, 3, 2}, {1, 2, 1}, {1, 0, 2}, {0, 1, 1}, {1, 2, 1}),
               convolved(c, 2 * c.shape.back(), c.shape.back(), {1, 2, 3})};
         }},
    {.name = "convolutions of each channel by itself",
     .entries = {"convolution_depthwise_float16", "convolution_depthwise_bfloat16",
                 "convolution_depthwise_float32"},
     .dtypes = {},
     .shapes = {{2, 7, 9, 2}, {1, 30, 21, 16}, {3, 5, 8, 37}, {1, 8, 8, 128}},
     .layouts = some_layouts,
     .build =
         [](Case& c) {
           const int channels = c.shape.back();
           return std::vector<array>{convolved(c, channels, channels, {3, 3}, {1}, {1}, {1}),
                                     convolved(c, channels, channels, {4, 2}, {2, 1}, {2, 0},
                                               {1, 3}, {1, 2}, {1, 2}, true)};
         }},
};

}  // namespace

TEST_CASE("metal convolutions") {
  for (Row row : convolution_rows) {
    const std::vector<std::string> entries = row.entries;
    for (bool is_half : {false, true}) {
      row.tolerance = 1;
      row.products = most_products;
      row.dtypes =
          is_half ? std::vector<Dtype>{float16, bfloat16} : std::vector<Dtype>{float32, complex64};
      row.entries.clear();
      for (const std::string& entry : entries) {
        if (entry.ends_with("float16") == is_half) row.entries.push_back(entry);
      }
      compare(row);
    }
  }
}
