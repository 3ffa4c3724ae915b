#include <doctest/doctest.h>

#include "metal/comparison.h"

using namespace holdfast;
using namespace holdfast::testing;

namespace {

const Row hadamard_rows[] = {
    {.name = "hadamard_transform",
     .entries = {"hadamard_rows_float16", "hadamard_rows_bfloat16", "hadamard_rows_float32",
                 "hadamard_pass_2", "hadamard_pass_16", "hadamard_pass_12", "hadamard_pass_20",
                 "hadamard_pass_28", "hadamard_wide_float16", "hadamard_wide_bfloat16"},
     .dtypes = float_dtypes,
     .shapes = {{0, 8},
                {3, 1},
                {2, 3, 2},
                {5, 4},
                {7, 12},
                {3, 20},
                {9, 28},
                {600, 64},
                {2, 96},
                {3, 8192},
                {2, 12 * 512},
                {1, 16384},
                {2, 65536 * 4},
                {1, 12 * 1024},
                {1, 20 * 8192},
                {2, 28 * 16384}},
     .layouts = {Layout::dense, Layout::shifted, Layout::padded},
     .build =
         [](Case& c) {
           array x = c.input(c.shape);
           auto transform = [](const std::vector<array>& inputs) {
             return std::vector<array>{hadamard_transform(inputs[0], 0.25f)};
           };
           // The derivative is the transposed matrix.
           return std::vector<array>{hadamard_transform(x), vjp(transform, {x}, {x}).second[0]};
         },
     // Sums of as many elements as a row has, in different orders.
     .tolerance = 200},
};

}  // namespace

TEST_CASE("metal hadamard transforms") {
  for (const Row& row : hadamard_rows) compare(row);
}
