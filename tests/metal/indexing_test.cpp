// gather, take and take_along_axis; scatter and its kind.
#include <doctest/doctest.h>

#include "metal/comparison.h"

using namespace holdfast;
using namespace holdfast::testing;

namespace {

const std::vector<Shape> indexed_shapes = {
    {7}, {64}, {1000}, {3, 5}, {33, 70}, {128, 130}, {2, 3, 4, 5}, {3, 40, 64}, {1, 9, 16}};
const std::vector<Layout> layouts_of_indices = {Layout::dense, Layout::transposed,
                                                Layout::reversed};

// Indices of an axis, some of which count from its end.
array indices_of(Case& c, const Shape& shape, int axis_size, Dtype dtype = int32) {
  const bool is_signed = issubdtype(dtype, signedinteger);
  const int64_t size = std::min<int64_t>(axis_size, dtype == int8 ? 127 : 255);
  return c.integers(shape, dtype, is_signed ? -size : 0, size);
}

const Row gather_rows[] = {
    {.name = "take",
     .entries = {"gather_1", "gather_2", "gather_4", "gather_8", "gather_16"},
     .dtypes = metal_dtypes,
     .shapes = indexed_shapes,
     .layouts = all_layouts,
     .build =
         [](Case& c) {
           array a = c.input(c.shape);
           std::vector<array> results = {take(a, indices_of(c, {300}, static_cast<int>(a.size()))),
                                         take(a, indices_of(c, {}, c.shape[0]), 0)};
           for (int axis = 0; axis < static_cast<int>(a.ndim()); ++axis)
             results.push_back(take(a, indices_of(c, {3, 11}, a.shape(axis)), axis));
           return results;
         }},
    {.name = "take by indices of all dtypes",
     .entries = {"gather_4", "gather_16", "index_offsets"},
     .dtypes = integer_dtypes,
     .shapes = {{7}, {33, 70}, {3, 40, 64}},
     .layouts = all_layouts,
     .build =
         [](Case& c) {
           array a = c.input(c.shape, float32);
           return std::vector<array>{take(a, indices_of(c, {9, 5}, c.shape[0], c.dtype), 0)};
         }},
    {.name = "take_along_axis",
     .entries = {"gather_1", "gather_2", "gather_4", "gather_8"},
     .dtypes = metal_dtypes,
     .shapes = indexed_shapes,
     .layouts = all_layouts,
     .build =
         [](Case& c) {
           array a = c.input(c.shape);
           std::vector<array> results;
           for (int axis = 0; axis < static_cast<int>(a.ndim()); ++axis) {
             Shape shape = c.shape;
             shape[static_cast<size_t>(axis)] = 6;
             results.push_back(take_along_axis(a, indices_of(c, shape, a.shape(axis)), axis));
             results.push_back(
                 take_along_axis(a, indices_of(c, Shape(a.ndim(), 1), a.shape(axis), uint8), axis));
           }
           return results;
         }},
    {.name = "gather",
     .entries = {"gather_1", "gather_2", "gather_4", "gather_8", "gather_16", "index_offsets"},
     .dtypes = metal_dtypes,
     .shapes = {{33, 70}, {128, 130}, {2, 3, 4, 5}, {3, 40, 64}},
     .layouts = all_layouts,
     .build =
         [](Case& c) {
           array a = c.input(c.shape);
           Shape rows = c.shape, one = c.shape, part = c.shape;
           rows[0] = 1;
           one[0] = one[1] = 1;
           part[1] = 2;
           array first = indices_of(c, {5, 4}, c.shape[0]);
           array inside = c.integers({3}, int64, 0, c.shape[1] - 1);
           return std::vector<array>{
               gather(a, {first}, {0}, rows),
               gather(a, {first, indices_of(c, {4}, c.shape[1])}, {0, 1}, one),
               gather(a, {first, indices_of(c, {5, 1}, c.shape[1], uint16)}, {0, 1}, one),
               gather(a, {inside}, {1}, part), gather(a, std::vector<array>{}, {}, rows)};
         }},
};

// All modes of scatter: of a number of places that share some elements.
std::vector<array> scattered(const array& a, const std::vector<array>& indices,
                             const array& updates, const std::vector<int>& axes) {
  return {scatter(a, indices, updates, axes), scatter_add(a, indices, updates, axes),
          scatter_prod(a, indices, updates, axes), scatter_max(a, indices, updates, axes),
          scatter_min(a, indices, updates, axes)};
}

const std::vector<Dtype> real_dtypes = {bool_, uint8, uint16, uint32,  uint64,  int8,
                                        int16, int32, int64,  float16, float32, bfloat16};

const Row scatter_rows[] = {
    {.name = "scatter of rows",
     .entries = {"sort_count_ulong", "sort_move_arg_ulong", "index_offsets", "scatter_sorted_bool",
                 "scatter_sorted_uint8", "scatter_sorted_uint16", "scatter_sorted_uint32",
                 "scatter_sorted_uint64", "scatter_sorted_int8", "scatter_sorted_int16",
                 "scatter_sorted_int32", "scatter_sorted_int64", "scatter_sorted_float16",
                 "scatter_sorted_bfloat16", "scatter_sorted_float32"},
     .dtypes = real_dtypes,
     .shapes = {{7}, {1000}, {3, 5}, {33, 70}, {2, 3, 4, 5}, {3, 40, 64}},
     .layouts = {Layout::dense, Layout::shifted, Layout::transposed, Layout::every_other,
                 Layout::broadcast},
     .build =
         [](Case& c) {
           array a = c.input(c.shape);
           Shape updates = {4, 5};
           updates.insert(updates.end(), c.shape.begin(), c.shape.end());
           updates[2] = 1;
           return scattered(a, {indices_of(c, {4, 5}, c.shape[0])}, c.input(updates), {0});
         }},
    {.name = "scatter of elements",
     .entries = {"scatter_sorted_float16", "scatter_sorted_bfloat16", "scatter_sorted_float32",
                 "scatter_sorted_int64"},
     .dtypes = real_dtypes,
     .shapes = {{33, 70}, {2, 3, 4, 5}},
     .layouts = {Layout::dense, Layout::transposed},
     .build =
         [](Case& c) {
           array a = c.input(c.shape);
           Shape updates = {40, 3};
           updates.insert(updates.end(), c.shape.begin(), c.shape.end());
           updates[2] = updates[3] = 1;
           std::vector<array> indices = {indices_of(c, {40, 3}, c.shape[0], int64),
                                         indices_of(c, {3}, c.shape[1], int64)};
           return scattered(a, indices, c.input(updates), {0, 1});
         }},
    {.name = "scatter of slices that overlap",
     .entries = {"scatter_sorted_bfloat16", "scatter_sorted_uint16"},
     .dtypes = real_dtypes,
     .shapes = {{33, 70}, {3, 40, 64}},
     .layouts = {Layout::dense, Layout::reversed},
     .build =
         [](Case& c) {
           array a = c.input(c.shape);
           Shape updates = {6};
           updates.insert(updates.end(), c.shape.begin(), c.shape.end());
           updates[2] = 3;
           std::vector<array> results =
               scattered(a, {c.integers({6}, int32, 0, c.shape[1] - 2)}, c.input(updates), {1});
           results.push_back(scatter_add(a, std::vector<array>{}, c.input(c.shape), {}));
           return results;
         }},
    {.name = "scatter of one slice",
     .entries = {"update_float32", "update_bfloat16", "update_int8"},
     .dtypes = real_dtypes,
     .shapes = {{7}, {33, 70}, {3, 40, 64}},
     .layouts = all_layouts,
     .build =
         [](Case& c) {
           array a = c.input(c.shape);
           Shape updates = c.shape;
           updates[0] = 1;
           return scattered(a, {indices_of(c, {}, c.shape[0])}, c.input(updates), {0});
         }},
    {.name = "along an axis",
     .entries = {"scatter_sorted_uint8", "scatter_sorted_uint64", "scatter_sorted_float16",
                 "scatter_sorted_complex64"},
     .dtypes = metal_dtypes,
     .shapes = indexed_shapes,
     .layouts = {Layout::dense, Layout::transposed, Layout::reversed, Layout::broadcast},
     .build =
         [](Case& c) {
           array a = c.input(c.shape);
           std::vector<array> results;
           for (int axis = 0; axis < static_cast<int>(a.ndim()); ++axis) {
             Shape shape = c.shape;
             shape[static_cast<size_t>(axis)] = 6;
             for (Dtype dtype : {int32, uint32}) {
               array indices = indices_of(c, shape, a.shape(axis), dtype), values = c.input(shape);
               results.push_back(put_along_axis(a, indices, values, axis));
               results.push_back(scatter_add_axis(a, indices, values, axis));
             }
           }
           return results;
         }},
    {.name = "of more updates than fit a chunk of the sort, many of which meet",
     .entries = {"scatter_sorted_float32", "scatter_sorted_int32", "scatter_sorted_bfloat16"},
     .dtypes = {float32, int32, bfloat16},
     .shapes = {{5}, {1000}, {70001}},
     .layouts = {Layout::dense},
     .build =
         [](Case& c) {
           array a = c.input(c.shape), updates = c.input({30011, 1});
           return scattered(a, {indices_of(c, {30011}, c.shape[0], int64)}, updates, {0});
         }},
};

}  // namespace

TEST_CASE("metal scatters: bit for bit, also where updates meet") {
  for (const Row& row : scatter_rows) compare(row);
}

TEST_CASE("metal gathers") {
  for (const Row& row : gather_rows) compare(row);
}

TEST_CASE("metal gathers and scatters: an index that leaves its axis fails the op as on the CPU") {
  array x = reshape(arange(24, float32), {4, 6});
  auto message_of = [](const array& result) -> std::string {
    try {
      array(result).eval();
      return "";
    } catch (const ExecutionError& error) {
      return error.what();
    }
  };
  for (const array& bad :
       {array({0, 1, 6, 2}), array({-7, 1, 0, 2}), array({uint64_t{1}, ~uint64_t{0}})}) {
    auto both = [&](const std::string& name, auto&& op) {
      CAPTURE(name);
      const std::string expected = message_of(op(Device::cpu));
      CHECK((expected != "" || bad.dtype() == uint64));
      CHECK(message_of(op(Device::gpu)) == expected);
    };
    both("take", [&](Device d) { return take(x, bad, 1, d); });
    both("along", [&](Device d) { return take_along_axis(x, reshape(bad, {1, -1}), 1, d); });
    both("rows", [&](Device d) { return gather(x, {bad}, {1}, {4, 1}, d); });
    both("elements", [&](Device d) { return gather(x, {array(1), bad}, {0, 1}, {1, 1}, d); });
    both("put", [&](Device d) {
      return put_along_axis(x, reshape(astype(bad, int64), {1, -1}), array(1.0f), 1, d);
    });
    both("scatter", [&](Device d) {
      return scatter_add(x, {bad}, zeros({static_cast<int>(bad.size()), 4, 1}), {1}, d);
    });
    both("columns", [&](Device d) { return gather(x, {bad, array(0)}, {1, 0}, {4, 1}, d); });
  }
}
