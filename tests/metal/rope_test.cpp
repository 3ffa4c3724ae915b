#include <doctest/doctest.h>

#include "metal/comparison.h"

using namespace holdfast;
using namespace holdfast::testing;

namespace {

const std::vector<Shape> turned_shapes = {{1, 1, 8},     {2, 5, 40},     {0, 2, 8},
                                          {2, 3, 7, 64}, {3, 70, 1, 24}, {1, 2, 3, 9, 128}};

// Angles are rounded once on both devices, but for those that the CPU turns step by step.
constexpr double rope_tolerance = 8;

int even(int number) { return number / 2 * 2; }

const Row rope_rows[] = {
    {.name = "rope with a base",
     .entries = {"rope_float16", "rope_bfloat16", "rope_float32"},
     .dtypes = float_dtypes,
     .shapes = turned_shapes,
     .layouts = all_layouts,
     .build =
         [](Case& c) {
           array x = c.input(c.shape);
           const int all = even(c.shape.back()), some = even(all / 3);
           return std::vector<array>{fast::rope(x, all, false, 10000.0f, 1.0f, 0),
                                     fast::rope(x, all, true, 10000.0f, 0.5f, 100000),
                                     fast::rope(x, some, false, 500000.0f, -1.0f, 3),
                                     fast::rope(x, some, true, 100.0f, 1.0f, -7)};
         },
     .tolerance = rope_tolerance},
    {.name = "rope with frequencies and offsets",
     .entries = {"rope_float16", "rope_bfloat16", "rope_float32"},
     .dtypes = float_dtypes,
     .shapes = turned_shapes,
     .layouts = all_layouts,
     .build =
         [](Case& c) {
           array x = c.input(c.shape);
           const int dims = even(c.shape.back() - c.shape.back() / 4);
           array frequencies = add(abs(c.input({dims / 2}, float32)), array(1.0f));
           array offsets = c.integers({c.shape[0]}, int64, -1000, 100000);
           array one = c.integers({}, int32, 0, 5000);
           return std::vector<array>{
               fast::rope(x, dims, false, std::nullopt, 1.0f, offsets, frequencies),
               fast::rope(x, dims, true, std::nullopt, 1.0f, one, frequencies),
               fast::rope(x, dims, false, 10000.0f, 2.0f, one)};
         },
     .tolerance = rope_tolerance},
};

}  // namespace

TEST_CASE("metal rope") {
  for (const Row& row : rope_rows) compare(row);
}
