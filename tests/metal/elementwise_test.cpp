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
  {#function, Rule::rule, #in_types,                            \
   [](const std::vector<array>& x) { return function(x[0]); }, 1},
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

// Those whose math is another one than the CPU's: how far they may be from it, in units of the last
// place of the result's dtype. Both are within 4 of the exact result.
double tolerance_of(const std::string& function) {
  static const std::set<std::string> approximate = {
      "exp",  "expm1",  "log",    "log2",    "log10",   "log1p",   "sin",     "cos",
      "tan",  "arcsin", "arccos", "arctan",  "sinh",    "cosh",    "tanh",    "arcsinh",
      "arccosh", "arctanh", "sigmoid", "erf", "erfinv", "power",  "arctan2", "logaddexp"};
  return approximate.contains(function) ? 6 : 0;
}

std::vector<array> arguments(Case& c, const TableRow& row) {
  std::vector<array> all;
  if (row.rule == Rule::select) all.push_back(c.input(c.shape, bool_));
  while (all.size() < static_cast<size_t>(row.arity)) all.push_back(c.input(c.shape));
  return all;
}

Row comparison_of(const TableRow& row, std::vector<Shape> shapes, std::vector<Layout> layouts) {
  std::vector<Dtype> dtypes;
  for (Dtype dtype : metal_dtypes) {
    if (accepts(row, dtype)) dtypes.push_back(dtype);
  }
  return {.name = row.function,
          .entries = {"fused"},
          .dtypes = dtypes,
          .shapes = std::move(shapes),
          .layouts = std::move(layouts),
          .build = [&row](Case& c) { return std::vector<array>{row.call(arguments(c, row))}; },
          .tolerance = tolerance_of(row.function)};
}

}  // namespace

TEST_CASE("metal element-wise ops: every row, every dtype") {
  for (const TableRow& row : table) {
    compare(comparison_of(row, {{0}, {7}, {33, 70}}, {Layout::dense, Layout::padded}));
  }
}
