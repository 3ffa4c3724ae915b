// Slices with a start that an array holds, parts of arrays that are replaced or combined,
// concatenations.
#include <doctest/doctest.h>

#include "metal/comparison.h"

using namespace holdfast;
using namespace holdfast::testing;

namespace {

const std::vector<Shape> sliced_shapes = {
    {7}, {64}, {1000}, {3, 5}, {33, 70}, {128, 130}, {2, 3, 4, 5}, {3, 40, 64}, {1, 4, 8, 32}};

// A part of `size` elements, about the middle.
ShapeElem part_of(ShapeElem size) { return std::max(1, size / 2); }
Shape parts_of(const Shape& shape) {
  Shape parts;
  for (ShapeElem size : shape) parts.push_back(part_of(size));
  return parts;
}

// `f` for each mode of a slice that starts at 1 of the axes that have more than one element.
std::vector<array> updated(Case& c, const Shape& step) {
  Shape start, stop, shape;
  for (size_t i = 0; i < c.shape.size(); ++i) {
    start.push_back(c.shape[i] > 1 ? 1 : 0);
    stop.push_back(c.shape[i]);
    shape.push_back((stop[i] - start[i] + step[i] - 1) / step[i]);
  }
  array a = c.input(c.shape), update = c.input(shape);
  return {slice_update(a, update, start, stop, step),
          slice_update_add(a, update, start, stop, step),
          slice_update_prod(a, update, start, stop, step),
          slice_update_max(a, update, start, stop, step),
          slice_update_min(a, update, start, stop, step)};
}

const Row slice_rows[] = {
    {.name = "slice from a start in an array",
     .entries = {"gather_1", "gather_2", "gather_4", "gather_8", "gather_16", "start_offset"},
     .dtypes = metal_dtypes,
     .shapes = sliced_shapes,
     .layouts = all_layouts,
     .build =
         [](Case& c) {
           array a = c.input(c.shape);
           std::vector<int> all;
           std::vector<int64_t> starts;
           for (size_t i = 0; i < c.shape.size(); ++i) {
             all.push_back(static_cast<int>(i));
             starts.push_back(c.shape[i] - part_of(c.shape[i]));
           }
           const auto rank = static_cast<ShapeElem>(starts.size());
           array start(starts.begin(), {rank}, int64);
           const int last = rank - 1;
           Shape rows = c.shape;
           rows[0] = part_of(rows[0]);
           return std::vector<array>{slice(a, start, all, parts_of(c.shape)),
                                     slice(a, array({int64_t{0}}), {0}, rows),
                                     slice(
                                         a, slice(start, {last}, {rank}), {last},
                                         c.shape.size() == 1 ? parts_of(c.shape) : [&] {
                                           Shape columns = c.shape;
                                           columns[static_cast<size_t>(last)] =
                                               part_of(columns[static_cast<size_t>(last)]);
                                           return columns;
                                         }())};
         }},
    {.name = "slice_update from a start in an array",
     .entries = {"update_uint8", "update_uint16", "update_uint32", "update_uint64"},
     .dtypes = metal_dtypes,
     .shapes = sliced_shapes,
     .layouts = all_layouts,
     .build =
         [](Case& c) {
           array a = c.input(c.shape);
           Shape rows = c.shape;
           rows[0] = part_of(rows[0]);
           const int64_t row = c.shape[0] - rows[0];
           return std::vector<array>{slice_update(a, c.input(rows), array({row}), {0})};
         }},
    {.name = "slice_update",
     .entries = {"update_bool", "update_uint8", "update_uint16", "update_uint32", "update_uint64",
                 "update_int8", "update_int16", "update_int32", "update_int64", "update_float16",
                 "update_bfloat16", "update_float32", "update_complex64"},
     .dtypes = metal_dtypes,
     .shapes = sliced_shapes,
     .layouts = all_layouts,
     .build = [](Case& c) { return updated(c, Shape(c.shape.size(), 1)); },
     // The parts of a complex product are sums of two products of up to 16, rounded once or twice.
     .tolerance = 16},
    {.name = "slice_update with steps",
     .entries = {"update_bfloat16"},
     .dtypes = metal_dtypes,
     .shapes = {{64}, {33, 70}, {2, 3, 4, 5}},
     .layouts = {Layout::dense, Layout::transposed},
     .build =
         [](Case& c) {
           Shape step(c.shape.size(), 1);
           step.back() = 2;
           return updated(c, step);
         },
     .tolerance = 16},
    {.name = "concatenate",
     .entries = {"update_uint8", "update_uint16", "update_uint32", "update_uint64",
                 "copy_linear_16"},
     .dtypes = metal_dtypes,
     .shapes = {{7}, {0}, {64}, {70001}, {3, 5}, {33, 70}, {128, 130}, {2, 3, 4, 5}, {3, 40, 64}},
     .layouts = all_layouts,
     .build =
         [](Case& c) {
           array a = c.input(c.shape), b = c.input(c.shape);
           Shape narrow = c.shape;
           narrow.back() = part_of(narrow.back());
           return std::vector<array>{concatenate({a, b, a}, 0),
                                     concatenate({a, c.input(narrow), b}, -1)};
         }},
    {.name = "pad",
     .entries = {"update_uint8", "update_uint16", "update_uint32", "update_uint64", "copy_linear"},
     .dtypes = metal_dtypes,
     .shapes =
         {{}, {7}, {0}, {64}, {3, 5}, {33, 70}, {128, 130}, {3, 0, 2}, {2, 3, 4, 5}, {3, 40, 64}},
     .layouts = all_layouts,
     .build =
         [](Case& c) {
           array a = c.input(c.shape), value = c.input({});
           std::vector<array> results;
           for (const auto& [low, high] : {std::pair(0, 3), {2, 0}, {16, 16}}) {
             results.push_back(pad(a, std::pair(low, high), value));
             if (c.shape.empty()) continue;
             results.push_back(pad(a, {-1}, {low}, {high}, value));
             results.push_back(pad(a, {0}, {low}, {high}, value));
           }
           return results;
         }},
    {.name = "masked_scatter",
     .entries = {"masked_counts", "masked_scatter_1", "masked_scatter_2", "masked_scatter_4",
                 "masked_scatter_8"},
     .dtypes = metal_dtypes,
     .shapes = {{7}, {0}, {64}, {3, 5}, {33, 70}, {128, 130}, {2, 3, 4, 5}, {70001}},
     .layouts = {Layout::dense, Layout::shifted, Layout::transposed, Layout::broadcast},
     .build =
         [](Case& c) {
           array a = c.input(c.shape), mask = c.input(c.shape, bool_);
           return std::vector<array>{masked_scatter(a, mask, c.input(c.shape))};
         }},
};

}  // namespace

TEST_CASE("metal slices that leave their array fail by name, and the queue goes on") {
  const Stream gpu = default_stream(Device::gpu);
  array a = arange(24, float32, gpu), x = reshape(a, {4, 6}, gpu);
  auto start = [](int64_t row, int64_t column) { return array({row, column}); };
  array after = slice(x, start(2, 3), {0, 1}, {2, 3}, gpu);
  CHECK_THROWS_WITH_AS(eval(slice(x, start(3, 3), {0, 1}, {2, 3}, gpu)),
                       "[slice] start 3 of axis 0 must be between 0 and 2", ExecutionError);
  CHECK_THROWS_WITH_AS(eval(slice(x, start(2, -1), {0, 1}, {2, 3}, gpu)),
                       "[slice] start -1 of axis 1 must be between 0 and 3", ExecutionError);
  CHECK_THROWS_WITH_AS(eval(slice_update(x, zeros({2, 6}), array({int64_t{3}}), {0}, gpu) + 1),
                       "[slice_update] start 3 of axis 0 must be between 0 and 2", ExecutionError);
  CHECK(array_equal(after, slice(x, {2, 3}, {4, 6})).item<bool>());
}

TEST_CASE("metal masked_scatter of more chunks than are added up at a time") {
  const Stream gpu = default_stream(Device::gpu), cpu = default_stream(Device::cpu);
  const int size = 4097 * 4096 + 5;
  array numbers = arange(0, size, 1, uint32, cpu);
  array mask = equal(remainder(numbers, array(uint32_t{3}), cpu), array(uint32_t{1}), cpu);
  array source = astype(numbers, uint8, cpu), a = zeros({size}, uint8, cpu);
  eval(mask, source, a);
  array got = masked_scatter(a, mask, source, gpu), expected = masked_scatter(a, mask, source, cpu);
  CHECK(array_equal(got, expected, cpu).item<bool>());
}

TEST_CASE("metal masked_scatter: too few elements fail the op, and are not read") {
  const Stream gpu = default_stream(Device::gpu);
  array mask = array({true, false, true, true}), a = zeros({4});
  CHECK_THROWS_WITH_AS(eval(masked_scatter(a, mask, array({1.0f, 2.0f}), gpu)),
                       "[masked_scatter] the mask takes 3 elements, the source has 2",
                       ExecutionError);
  CHECK_THROWS_WITH_AS(eval(masked_scatter(a, mask, zeros({0}), gpu)),
                       "[masked_scatter] the mask takes 3 elements, the source has 0",
                       ExecutionError);
  CHECK(array_equal(masked_scatter(a, mask, array({1.0f, 2.0f, 3.0f}), gpu),
                    array({1.0f, 0.0f, 2.0f, 3.0f}))
            .item<bool>());
}

TEST_CASE("metal slices") {
  for (const Row& row : slice_rows) compare(row);
}
