#include <doctest/doctest.h>

#include "metal/comparison.h"

using namespace holdfast;
using namespace holdfast::testing;

namespace {

const std::vector<Shape> copied_shapes = [] {
  std::vector<Shape> shapes = common_shapes;
  shapes.insert(shapes.end(), {{3, 128, 256}, {40, 3, 90}, {2, 3, 2, 3, 2, 3, 2, 5}, {129, 16, 2}});
  return shapes;
}();

const Row copy_rows[] = {
    {.name = "contiguous",
     .entries = {"copy_strided_1", "copy_strided_2", "copy_strided_4", "copy_strided_8",
                 "copy_strided_16", "copy_transposed_1", "copy_transposed_2", "copy_transposed_4",
                 "copy_transposed_8"},
     .dtypes = metal_dtypes,
     .shapes = copied_shapes,
     .layouts = all_layouts,
     .build = [](Case& c) { return std::vector<array>{contiguous(c.input(c.shape))}; }},
    {.name = "copies of dense arrays",
     .entries = {"copy_linear_1", "copy_linear_2", "copy_linear_4", "copy_linear_8",
                 "copy_linear_16"},
     .dtypes = metal_dtypes,
     .shapes = copied_shapes,
     .layouts = {Layout::dense, Layout::shifted},
     // Which may not take its input's memory.
     .build =
         [](Case& c) {
           array x = c.input(c.shape);
           return std::vector<array>{x, copy(x)};
         }},
};

}  // namespace

TEST_CASE("metal copies") {
  for (const Row& row : copy_rows) compare(row);
}
