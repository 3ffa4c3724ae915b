#include <doctest/doctest.h>

#include "metal/comparison.h"

using namespace holdfast;
using namespace holdfast::testing;

namespace {

const Row creation_rows[] = {
    {.name = "full",
     .entries = {"fill_1", "fill_2", "fill_4", "fill_8"},
     .dtypes = metal_dtypes,
     .shapes = common_shapes,
     .layouts = {Layout::dense},
     .build = [](Case& c) { return std::vector<array>{full(c.shape, c.input({}))}; }},
    {.name = "arange",
     .entries = {"arange_uint8", "arange_uint16", "arange_uint32", "arange_uint64", "arange_int8",
                 "arange_int16", "arange_int32", "arange_int64", "arange_float16",
                 "arange_bfloat16", "arange_float32"},
     .dtypes = {uint8, uint16, uint32, uint64, int8, int16, int32, int64, float16, bfloat16,
                float32},
     .shapes = {{0}, {1}, {7}, {16}, {1000}, {70001}},
     .layouts = {Layout::dense},
     .build =
         [](Case& c) {
           const double size = c.shape[0];
           return std::vector<array>{arange(0, size, 1, c.dtype),
                                     arange(-size, size, 1, c.dtype),
                                     arange(size, 0, -0.75, c.dtype),
                                     arange(1e10, 1e10 + 1e3 * size, 1e3, c.dtype),
                                     arange(-3e19, 3e19, 6e19 / (size + 1), c.dtype),
                                     arange(0.1, 0.1 + 1e-5 * size, 1e-5, c.dtype)};
         }},
};

}  // namespace

TEST_CASE("metal creation") {
  for (const Row& row : creation_rows) compare(row);
}
