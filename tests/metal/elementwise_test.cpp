// The rows of elementwise.def, conversions, and groups of several ops.
#include <doctest/doctest.h>

#include <limits>
#include <set>

#include "metal/comparison.h"

using namespace holdfast;
using namespace holdfast::testing;

namespace {

enum class Rule { same, inexact, predicate, logical, part, select };

struct TableRow {
  const char* function;
  Rule rule;
  std::string in_types;
  std::function<array(const std::vector<array>&)> call;
  int arity;
};

const TableRow table[] = {
#define UNARY(function, Primitive, rule, in_types, description) \
  {#function, Rule::rule, #in_types, [](const std::vector<array>& x) { return function(x[0]); }, 1},
#define BINARY(function, Primitive, rule, in_types, description) \
  {#function, Rule::rule, #in_types,                             \
   [](const std::vector<array>& x) { return function(x[0], x[1]); }, 2},
#define TERNARY(function, Primitive, rule, in_types, description) \
  {#function, Rule::rule, #in_types,                              \
   [](const std::vector<array>& x) { return function(x[0], x[1], x[2]); }, 3},
#include <holdfast/elementwise.def>
};

bool accepts(const TableRow& row, Dtype dtype) {
  if (row.rule == Rule::logical) return true;
  const bool is_float = issubdtype(dtype, floating), is_complex = dtype == complex64;
  if (row.rule == Rule::inexact && !is_float && !is_complex) return true;
  const std::string& types = row.in_types;
  if (types == "real") return !is_complex;
  if (types == "number") return dtype != bool_;
  if (types == "float") return is_float;
  if (types == "inexact") return is_float || is_complex;
  if (types == "integral") return !is_float && !is_complex;
  if (types == "integer") return !is_float && !is_complex && dtype != bool_;
  return true;
}

// How far results may be from the CPU's, in units of the last place of their dtype. Functions of
// floats are other ones, both within 4 of the exact result; the half types round what is closer
// than that; complex functions are computed in double precision by both.
double tolerance_of(const std::string& function, Dtype dtype) {
  static const std::set<std::string> approximate = {
      "exp",     "expm1",   "log",     "log2",   "log10",  "log1p", "sin",     "cos",
      "tan",     "arcsin",  "arccos",  "arctan", "sinh",   "cosh",  "tanh",    "arcsinh",
      "arccosh", "arctanh", "sigmoid", "erf",    "erfinv", "power", "arctan2", "logaddexp"};
  // g++ fuses a multiplication of the CPU's.
  if (function == "multiply" && dtype == complex64) return 32;
  if (!approximate.contains(function)) return 0;
  if (issubdtype(dtype, integer) && function == "power") return 0;
  return dtype == float16 || dtype == bfloat16 || dtype == complex64 ? 1 : 6;
}

std::vector<array> arguments(Case& c, const TableRow& row) {
  std::vector<array> all;
  if (row.rule == Rule::select) all.push_back(c.input(c.shape, bool_));
  while (all.size() < static_cast<size_t>(row.arity)) all.push_back(c.input(c.shape));
  return all;
}

Row comparison_of(const TableRow& row, Dtype dtype, std::vector<Shape> shapes,
                  std::vector<Layout> layouts) {
  return {.name = row.function,
          .entries = {"fused"},
          .dtypes = {dtype},
          .shapes = std::move(shapes),
          .layouts = std::move(layouts),
          .build = [&row](Case& c) { return std::vector<array>{row.call(arguments(c, row))}; },
          .tolerance = tolerance_of(row.function, dtype)};
}

}  // namespace

TEST_CASE("metal element-wise ops: every row, every dtype") {
  for (const TableRow& row : table) {
    for (Dtype dtype : metal_dtypes) {
      if (!accepts(row, dtype)) continue;
      compare(comparison_of(row, dtype, {{0}, {7}, {33, 70}}, {Layout::dense, Layout::padded}));
    }
  }
}

// Infinities, NaNs, zeros of both signs, denormals, the ends of integers.
template <typename T>
std::vector<T> special_values() {
  using limits = std::numeric_limits<T>;
  if constexpr (std::is_integral_v<T>) {
    return {T(0),
            T(1),
            T(2),
            T(3),
            T(7),
            T(31),
            T(33),
            T(100),
            T(-1),
            T(-2),
            T(-3),
            T(-7),
            limits::min(),
            limits::max(),
            T(limits::min() + 1),
            T(limits::max() - 1)};
  } else {
    return {T(0.0f),    T(-0.0f),         T(1.0f),           T(-1.0f),       T(0.5f),
            T(-0.5f),   T(2.0f),          T(-2.0f),          T(3.0f),        T(1e-30f),
            T(-1e-30f), T(1e-41f),        T(87.5f),          T(-87.5f),      T(130.0f),
            T(-130.0f), T(1e30f),         T(-1e30f),         T(16777217.0f), T(255.5f),
            T(-128.5f), T(2147483648.0f), T(-2147483904.0f), T(9.3e18f),     T(-9.3e18f),
            T(1.9e19f), T(INFINITY),      T(-INFINITY),      T(NAN)};
  }
}
array special_array(Dtype dtype) {
  return dispatch_dtype(dtype, [&](auto tag) -> array {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_same_v<T, bool>) {
      return array({true, false});
    } else if constexpr (std::is_same_v<T, complex64_t>) {
      std::vector<complex64_t> values;
      for (float real : {0.0f, 1.0f, -1.0f, -2.5f, 1e-20f, 20.0f, 3e18f})
        for (float imag : {0.0f, 0.25f, -1.0f, 2.0f, 1e-20f, -1e18f})
          values.push_back({real, imag});
      return array(values.begin(), {static_cast<int>(values.size())}, dtype);
    } else if constexpr (std::is_integral_v<T> || std::is_same_v<T, float>) {
      auto values = special_values<T>();
      return array(values.begin(), {static_cast<int>(values.size())}, dtype);
    } else {
      auto values = special_values<float>();
      return array(values.begin(), {static_cast<int>(values.size())}, dtype);
    }
  });
}

TEST_CASE("metal element-wise ops: special operands, each with each") {
  for (const TableRow& row : table) {
    for (Dtype dtype : metal_dtypes) {
      if (!accepts(row, dtype)) continue;
      Row special = comparison_of(row, dtype, {{}}, {Layout::dense});
      special.build = [&](Case&) {
        array x = special_array(dtype);
        // Where angles are large, or one part is nothing but what the other one's rounding leaves,
        // the CPU's digits mean nothing.
        if ((row.function == std::string("power") || row.function == std::string("logaddexp")) &&
            dtype == complex64) {
          const array size = abs(x);
          x = where(logical_and(less(size, array(10.0f)),
                                logical_or(greater(size, array(0.1f)), equal(size, array(0.0f)))),
                    x, array(complex64_t{2, 1}));
        }
        std::vector<array> all;
        if (row.rule == Rule::select)
          all.push_back(array({true, false, true, true, false}, {5, 1, 1}));
        if (row.arity > 1) all.push_back(expand_dims(x, 1));
        all.push_back(x);
        return std::vector<array>{row.call(all)};
      };
      compare(special);
    }
  }
}

TEST_CASE("metal conversions, of every dtype to every dtype") {
  for (Dtype from : metal_dtypes) {
    compare({.name = "astype",
             .entries = {"fused"},
             .dtypes = metal_dtypes,
             .shapes = {{9}},
             .layouts = {Layout::dense},
             .build = [from](Case& c) {
               return std::vector<array>{astype(special_array(from), c.dtype),
                                         astype(c.input({70, 3}, from), c.dtype)};
             }});
  }
}

TEST_CASE("metal element-wise layouts") {
  auto compare_rows = [](const char* name, auto&& build, std::vector<Dtype> dtypes) {
    compare({.name = name,
             .entries = {"fused"},
             .dtypes = dtypes,
             .shapes = common_shapes,
             .layouts = all_layouts,
             .build = build});
  };
  const std::vector<Dtype> dtypes = {uint8, bfloat16, float32, complex64};
  compare_rows(
      "of both operands",
      [](Case& c) { return std::vector<array>{c.input(c.shape) + c.input(c.shape)}; }, dtypes);
  compare_rows(
      "of one operand",
      [](Case& c) {
        return std::vector<array>{c.input(c.shape) - c.input({1}),
                                  maximum(c.input(c.shape), ones(c.shape, c.dtype))};
      },
      dtypes);
  compare_rows("rows and columns",
               [](Case& c) {
                 Shape row = c.shape, column = c.shape;
                 if (!row.empty())
                   row[0] = row[0] > 0 ? 1 : 0, column.back() = column.back() > 0 ? 1 : 0;
                 return std::vector<array>{c.input(row) * c.input(column) - c.input(c.shape)};
               },
               {float32, int16, int64});
}
