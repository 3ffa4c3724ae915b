#include <doctest/doctest.h>

#include <cmath>

#include "metal/comparison.h"

using namespace holdfast;
using namespace holdfast::testing;

namespace {

// Shapes are (batch, key heads, heads per key head, queries, keys, features, features of values).
struct Operands {
  array queries, keys, values;
};
Operands operands_of(Case& c) {
  const Shape& s = c.shape;
  return {c.input({s[0], s[1] * s[2], s[3], s[5]}), c.input({s[0], s[1], s[4], s[5]}),
          c.input({s[0], s[1], s[4], s[6]})};
}

array attend(const Operands& on, const std::string& mode = "",
             const std::optional<array>& mask = {}, const std::optional<array>& sinks = {}) {
  return fast::scaled_dot_product_attention(on.queries, on.keys, on.values,
                                            1 / std::sqrt(float(on.queries.shape(-1) + 1)), mode,
                                            mask, sinks);
}

// With each kind of mask and with sinks.
std::vector<array> attend_in_all_ways(Case& c) {
  const Operands on = operands_of(c);
  const Shape& s = c.shape;
  const int heads = s[1] * s[2];
  array keep = greater(c.input({s[3], s[4]}, float32), array(0.0f));
  array none = greater(c.input({s[0], 1, s[3], 1}, float32), array(0.0f));
  array added = c.input({s[0], heads, 1, s[4]});
  array removed = where(greater(c.input({heads, s[3], s[4]}, float32), array(3.0f)),
                        array(-INFINITY, c.dtype), c.input({1, s[4]}));
  array sinks = c.input({heads});
  return {attend(on),
          attend(on, "causal"),
          attend(on, "array", keep),
          attend(on, "array", none, sinks),
          attend(on, "array", added),
          attend(on, "array", removed, sinks),
          attend(on, "causal", {}, sinks)};
}

const std::vector<Shape> few_queries = {
    {2, 2, 1, 1, 1, 64, 64},     {1, 2, 4, 1, 300, 128, 128}, {2, 1, 3, 5, 70, 40, 24},
    {1, 1, 2, 1, 1000, 80, 256}, {1, 2, 2, 2, 129, 7, 5},     {1, 1, 8, 2, 200, 256, 256},
};
const std::vector<Shape> many_queries = {
    {1, 1, 1, 17, 9, 64, 64},     {1, 2, 3, 50, 130, 32, 64}, {1, 1, 2, 90, 700, 128, 128},
    {2, 1, 1, 140, 66, 128, 100}, {1, 1, 1, 40, 50, 13, 200}, {1, 1, 1, 33, 70, 256, 256},
    {1, 2, 1, 300, 40, 16, 16},
};
const std::vector<Shape> many_features = {
    {1, 1, 2, 1, 150, 320, 520}, {1, 1, 2, 20, 40, 260, 140}, {2, 1, 1, 70, 33, 30, 300}};

std::vector<Shape> joined(std::vector<Shape> a, const std::vector<Shape>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

const Row attention_rows[] = {
    // The weights are rounded to the half type, as a block of the CPU's may be.
    {.name = "attention of half types, few queries",
     .entries = {"attention_splits_128_float16", "attention_splits_128_bfloat16",
                 "attention_splits_256_float16", "attention_splits_256_bfloat16",
                 "attention_combine_float16", "attention_combine_bfloat16"},
     .dtypes = {float16, bfloat16},
     .shapes = few_queries,
     .layouts = all_layouts,
     .build = attend_in_all_ways,
     .tolerance = 4},
    {.name = "attention of half types, many queries",
     .entries = {"attention_tiles_64_float16", "attention_tiles_64_bfloat16",
                 "attention_tiles_128_float16", "attention_tiles_128_bfloat16",
                 "attention_tiles_256_float16", "attention_tiles_256_bfloat16",
                 "attention_combine_float16", "attention_combine_bfloat16"},
     .dtypes = {float16, bfloat16},
     .shapes = many_queries,
     .layouts = {Layout::dense, Layout::shifted, Layout::padded, Layout::broadcast},
     .build = attend_in_all_ways,
     .tolerance = 4},
    {.name = "attention of half types with many features",
     .entries = {"attention_general_16_float16", "attention_general_16_bfloat16",
                 "attention_general_64_float16", "attention_general_64_bfloat16"},
     .dtypes = {float16, bfloat16},
     .shapes = many_features,
     .layouts = {Layout::dense, Layout::padded},
     .build = attend_in_all_ways,
     .tolerance = 4},
    {.name = "attention of float32",
     .entries = {"attention_general_16_float32", "attention_general_64_float32",
                 "attention_combine_float32"},
     .dtypes = {float32},
     .shapes = joined(joined(few_queries, many_queries), many_features),
     .layouts = all_layouts,
     .build = attend_in_all_ways,
     // Scores are sums of up to 320 products of up to 16, of which the CPU adds some one by one:
     // what
     // rounding does to them, exp makes relative.
     .tolerance = 500},
    {.name = "attention without elements",
     .entries = {},
     .dtypes = float_dtypes,
     .shapes = {{0, 1, 1, 2, 3, 8, 8},
                {1, 1, 2, 0, 3, 8, 8},
                {1, 1, 2, 3, 0, 8, 8},
                {1, 1, 1, 2, 3, 8, 0},
                {1, 1, 2, 2, 3, 0, 8}},
     .layouts = {Layout::dense},
     .build = [](Case& c) { return std::vector<array>{attend(operands_of(c))}; },
     .tolerance = 4},
};

}  // namespace

TEST_CASE("metal attention") {
  for (const Row& row : attention_rows) compare(row);
}
