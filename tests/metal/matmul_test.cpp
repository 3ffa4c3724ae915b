#include <doctest/doctest.h>

#include "metal/comparison.h"

using namespace holdfast;
using namespace holdfast::testing;

namespace {

// Products of shapes {m, k, n} or {batch, m, k, n}. Sums are of float32 on both devices, in orders
// of their own; half types are rounded afterwards.
std::vector<array> product(Case& c) {
  Shape a(c.shape.begin(), c.shape.end() - 1), b(c.shape.begin(), c.shape.end() - 3);
  b.insert(b.end(), c.shape.end() - 2, c.shape.end());
  array left = c.input(a), right = c.input(b);
  std::swap(b[b.size() - 1], b[b.size() - 2]);
  return {matmul(left, right), matmul(left, swapaxes(c.input(b), -1, -2))};
}

const std::vector<Shape> vector_shapes = {
    {1, 7, 1},      {1, 300, 70},  {1, 64, 1000}, {3, 128, 72}, {72, 304, 1}, {70, 33, 4},
    {1, 1, 9},      {9, 1, 2},     {2, 9000, 16}, {600, 24, 1}, {3, 0, 2},    {0, 4, 1},
    {3, 1, 64, 40}, {5, 2, 8, 24}, {1, 4096, 8},  {1, 1000, 1}};
const std::vector<Shape> matrix_shapes = {{5, 7, 6}, {64, 32, 64}, {65, 33, 70},    {130, 100, 24},
                                          {5, 0, 6}, {7, 2000, 9}, {2, 20, 48, 33}, {3, 8, 16, 16}};

Row row_of(const char* name, std::vector<std::string> entries, const std::vector<Shape>& shapes,
           std::vector<Dtype> dtypes) {
  // Of complex numbers each part has two products for each of the depth.
  const double parts = dtypes[0].size() == 2 ? 1 : 2;
  return {.name = name,
          .entries = std::move(entries),
          .dtypes = std::move(dtypes),
          .shapes = shapes,
          .layouts = all_layouts,
          .build = product,
          .tolerance = 1,
          .products = [parts](const Case& c) { return parts * c.shape[c.shape.size() - 2]; }};
}

}  // namespace

TEST_CASE("metal products with few vectors") {
  compare(row_of("half types",
                 {"matvec_rows_1_float16", "matvec_rows_1_bfloat16", "matvec_rows_4_float16",
                  "matvec_rows_4_bfloat16", "matvec_columns_1_float16", "matvec_columns_1_bfloat16",
                  "matvec_columns_4_float16", "matvec_columns_4_bfloat16", "add_parts_float16",
                  "add_parts_bfloat16"},
                 vector_shapes, {float16, bfloat16}));
  compare(row_of("floats",
                 {"matvec_rows_1_float32", "matvec_rows_4_float32", "matvec_rows_4_complex64",
                  "matvec_columns_1_float32", "matvec_columns_4_float32",
                  "matvec_columns_4_complex64", "add_parts_float32"},
                 vector_shapes, {float32, complex64}));
}

TEST_CASE("metal products of matrices") {
  compare(row_of("half types",
                 {"matmul_64_nn_float16", "matmul_64_nt_float16", "matmul_64_tn_float16",
                  "matmul_64_tt_float16", "matmul_64_nn_bfloat16", "matmul_64_nt_bfloat16",
                  "matmul_64_tn_bfloat16", "matmul_64_tt_bfloat16", "add_parts_float16"},
                 matrix_shapes, {float16, bfloat16}));
  compare(row_of("floats", {"matmul_any_float32", "matmul_any_complex64", "add_parts_float32"},
                 matrix_shapes, {float32, complex64}));
  Row large = row_of("large products of half types",
                     {"matmul_128_nn_float16", "matmul_128_nn_bfloat16", "matmul_128_nt_bfloat16",
                      "matmul_128_tn_bfloat16"},
                     {{1100, 40, 2000}}, {float16, bfloat16});
  large.layouts = {Layout::dense, Layout::transposed};
  compare(large);
}

TEST_CASE("metal products of segments") {
  auto of_segments = [](Case& c) {
    const int m = c.shape[0], k = c.shape[1], n = c.shape[2];
    array segments = reshape(array({0, k, 3, 3, 5, 30, k, k}, uint32), {2, 2, 2});
    return std::vector<array>{segmented_mm(c.input({m, k}), c.input({k, n}), segments)};
  };
  const std::vector<Shape> shapes = {{5, 40, 7}, {70, 33, 90}};
  Row halves = row_of("half types", {"segmented_matmul_float16", "segmented_matmul_bfloat16"},
                      shapes, {float16, bfloat16});
  Row floats = row_of("floats", {"segmented_matmul_float32", "segmented_matmul_complex64"}, shapes,
                      {float32, complex64});
  halves.build = floats.build = of_segments;
  halves.products = floats.products = [](const Case& c) { return 2 * c.shape[1]; };
  compare(halves);
  compare(floats);
}
