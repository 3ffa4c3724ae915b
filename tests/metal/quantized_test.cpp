#include <doctest/doctest.h>

#include "metal/comparison.h"

using namespace holdfast;
using namespace holdfast::testing;

namespace {

struct Format {
  const char* mode;
  int bits, group;
};

std::vector<Format> all_formats() {
  std::vector<Format> formats{{"mxfp4", 4, 32}, {"mxfp8", 8, 32}, {"nvfp4", 4, 16}};
  for (int bits : {1, 2, 3, 4, 5, 6, 8}) formats.push_back({"affine", bits, 64});
  formats.push_back({"affine", 4, 32});
  formats.push_back({"affine", 4, 128});
  return formats;
}

// Weights and what they are multiplied with, by the codes of the CPU: quantised there.
struct Weights {
  array codes, scales;
  std::optional<array> biases;
};
Weights weights_of(const Format& f, const array& w) {
  std::vector<array> parts =
      quantize(w, f.group, f.bits, f.mode, std::nullopt, Device(Device::cpu));
  eval(parts);
  std::optional<array> biases;
  if (parts.size() > 2) biases = parts[2];
  return {parts[0], parts[1], biases};
}

}  // namespace

TEST_CASE("metal quantize and dequantize") {
  for (const Format& f : all_formats()) {
    CAPTURE(std::string(f.mode));
    CAPTURE(f.bits);
    CAPTURE(f.group);
    compare(
        {.name = "quantize",
         .entries = {"quantize_float32", "quantize_float16", "quantize_bfloat16"},
         .dtypes = float_dtypes,
         .shapes = {{3, 256}, {2, 5, 128}, {0, 128}, {70, 1024}},
         .layouts = all_layouts,
         .build = [&](Case& c) { return quantize(c.input(c.shape), f.group, f.bits, f.mode); }});
    compare({.name = "dequantize",
             .entries = {"dequantize_float32", "dequantize_float16", "dequantize_bfloat16"},
             .dtypes = float_dtypes,
             .shapes = {{3, 256}, {2, 5, 128}, {0, 128}, {70, 1024}},
             .layouts = {Layout::dense, Layout::transposed},
             .build = [&](Case& c) {
               Weights w = weights_of(f, c.input(c.shape));
               std::vector<array> results;
               for (Dtype to : float_dtypes) {
                 results.push_back(dequantize(w.codes, w.scales, w.biases, f.group, f.bits, f.mode,
                                              std::nullopt, std::optional<Dtype>(to)));
               }
               return results;
             }});
  }
  compare({.name = "quantize with a global scale",
           .entries = {"quantize_float32"},
           .dtypes = {float32},
           .shapes = {{3, 256}},
           .layouts = {Layout::dense},
           .build = [](Case& c) {
             return quantize(c.input(c.shape), std::nullopt, std::nullopt, "nvfp4", array(3.0f));
           }});
}

namespace {

// Products of shapes {m, k, n} or {batch, m, k, n}, with the transposed matrix or as it is.
std::vector<array> products(const Format& f, Case& c, bool is_transposed) {
  Shape x(c.shape.begin(), c.shape.end() - 1), w(c.shape.begin(), c.shape.end() - 3);
  const int k = *(c.shape.end() - 2), n = c.shape.back();
  w.push_back(is_transposed ? n : k);
  w.push_back(is_transposed ? k : n);
  Weights q = weights_of(f, c.input(w));
  return {quantized_matmul(c.input(x), q.codes, q.scales, q.biases, is_transposed, f.group, f.bits,
                           f.mode)};
}
std::vector<array> both_products(const Format& f, Case& c) {
  return {products(f, c, true)[0], products(f, c, false)[0]};
}

// Sums of float32 cancel in part, to 1e-3. Of half types, each device has products for which
// weights are rounded to the dtype first, and others for which they are not: the rounding of 2000
// weights times x, up to 4 each, by chance.
double tolerance_of(Dtype dtype) { return dtype == float32 ? 8000 : 300; }

// Of few rows, and of tiles.
std::vector<std::string> entries_of(const Format& f, Dtype dtype, bool is_few) {
  if (dtype == float32) return {"quantized_any_float32"};
  const std::string type = dtype == float16 ? "float16" : "bfloat16";
  const std::string bits = std::string(f.mode) == "affine" ? std::to_string(f.bits) : "";
  if (is_few) return {"quantized_few_" + (f.mode + bits) + "_" + type};
  return {"quantized_tiles_128_t_" + type, "quantized_tiles_128_n_" + type,
          "quantized_tiles_32_t_" + type, "quantized_tiles_32_n_" + type};
}

}  // namespace

TEST_CASE("metal products with quantised matrices") {
  for (const Format& f : all_formats()) {
    CAPTURE(std::string(f.mode));
    CAPTURE(f.bits);
    CAPTURE(f.group);
    for (Dtype dtype : float_dtypes) {
      // Neither device rounds weights.
      compare({.name = "few rows",
               .entries = entries_of(f, dtype, true),
               .dtypes = {dtype},
               .shapes = {{1, 256, 128}, {3, 384, 70}, {2, 5, 256, 40}},
               .layouts = {Layout::dense, Layout::shifted},
               .build = [&](Case& c) { return products(f, c, true); },
               .tolerance = dtype == float32 ? tolerance_of(dtype) : 1.01});
      compare({.name = "quantized_matmul",
               .entries = entries_of(f, dtype, false),
               .dtypes = {dtype},
               .shapes = {{9, 256, 128}, {40, 128, 128}, {2, 3, 256, 128}},
               .layouts = {Layout::dense},
               .build = [&](Case& c) { return both_products(f, c); },
               .tolerance = tolerance_of(dtype)});
    }
  }
  for (Dtype dtype : float_dtypes) {
    const std::string name = dtype == float32 ? "quantized_any_float32" : "quantized_tiles_";
    compare({.name = "quantized_matmul of many shapes",
             .entries = {name},
             .dtypes = {dtype},
             .shapes = {{1, 64, 192}, {9, 2048, 64}, {150, 64, 64}, {0, 64, 64}, {2, 1, 64, 64}},
             .layouts = all_layouts,
             .build = [&](Case& c) { return both_products({"affine", 4, 64}, c); },
             .tolerance = tolerance_of(dtype)});
  }
}

TEST_CASE("metal products with matrices that are chosen by index") {
  for (Dtype dtype : float_dtypes) {
    compare({.name = "gather_qmm",
             .entries = {"group_pairs", "quantized_"},
             .dtypes = {dtype},
             .shapes = {{1, 1}, {3, 2}, {9, 1}, {300, 1}, {20, 3}},  // pairs, rows
             .layouts = {Layout::dense},
             .build =
                 [&](Case& c) {
                   const int pairs = c.shape[0], rows = c.shape[1];
                   std::vector<array> results;
                   for (const Format& f : {Format{"affine", 4, 64}, Format{"nvfp4", 4, 16}}) {
                     Weights q = weights_of(f, c.input({5, 64, 128}));
                     array lefts = c.integers({pairs}, uint32, 0, 4);
                     array rights = c.integers({pairs}, uint32, 0, 5);
                     results.push_back(gather_qmm(c.input({4, rows, 128}), q.codes, q.scales,
                                                  q.biases, lefts, rights, true, f.group, f.bits,
                                                  f.mode));
                   }
                   return results;
                 },
             .tolerance = tolerance_of(dtype)});
  }
}

TEST_CASE("metal gather_qmm reports indices without a matrix") {
  Weights w = weights_of({"affine", 4, 64}, zeros({5, 32, 64}));
  for (int pairs : {1, 20}) {  // by themselves, and grouped
    CAPTURE(pairs);
    set_default_device(Device::gpu);
    array x = zeros({3, 1, 64}), good = zeros({pairs}, uint32);
    auto product = [&](const array& lefts, const array& rights) {
      gather_qmm(x, w.codes, w.scales, w.biases, lefts, rights).eval();
    };
    CHECK_THROWS_WITH(product(full({pairs}, 3, uint32), good),
                      "[gather_qmm] expected lhs_indices below 3, got 3");
    CHECK_THROWS_WITH(product(good, full({pairs}, 7, uint32)),
                      "[gather_qmm] expected rhs_indices below 5, got 7");
    CHECK_NOTHROW(product(good, good));
    set_default_device(Device::cpu);
  }
}
