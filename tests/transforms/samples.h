// The samples of the registry as functions of their inputs, for tests of transforms.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "ops/array_testing.h"
#include "registry/registry.h"

namespace holdfast::testing {

using Function = std::function<std::vector<array>(const std::vector<array>&)>;

// Where an op is smooth, for those that are not on all of [-2, 2].
struct Domain {
  double low = -2, high = 2;
};
inline Domain domain_of(const std::string& op, const std::string& kind) {
  static const std::map<std::string, Domain> domains = {
      {"sqrt", {0.3, 3}},       {"rsqrt", {0.3, 3}},       {"log", {0.3, 3}},
      {"log2", {0.3, 3}},       {"log10", {0.3, 3}},       {"log1p", {-0.7, 2}},
      {"arcsin", {-0.8, 0.8}},  {"arccos", {-0.8, 0.8}},   {"arccosh", {1.3, 3}},
      {"arctanh", {-0.8, 0.8}}, {"erfinv", {-0.8, 0.8}},   {"power", {0.4, 2}},
      {"divide", {0.4, 2}},     {"remainder", {0.4, 2}},   {"tan", {-1, 1}},
      {"divmod", {0.4, 2}},     {"floor_divide", {0.4, 2}}};
  auto found = domains.find(op);
  if (found != domains.end()) return found->second;
  return kind == "p" ? Domain{0.4, 2} : Domain{};
}

// Kinds of inputs that hold numbers of the row's dtype.
inline bool is_numeric(const registry::Input& input) {
  return input.kind == "a" || input.kind == "p" || input.kind == "s" || input.kind == "f";
}

// Random elements: no two are equal, none sits on a step of a step function.
inline array random_input(const std::string& op, const registry::Input& input, Dtype dtype,
                          std::mt19937_64& random) {
  if (!is_numeric(input)) return registry::make_input(input, dtype, random());
  Domain domain = domain_of(op, input.kind);
  size_t size = 1;
  for (ShapeElem dim : input.shape) size *= static_cast<size_t>(dim);
  std::vector<double> values(size);
  double cell = (domain.high - domain.low) / static_cast<double>(size);
  std::uniform_real_distribution<double> draw(0.2, 0.8);
  for (size_t i = 0; i < size; ++i) {
    // Away from the steps of floor and round, at multiples of a half, where the cell has room.
    for (int attempt = 0; attempt < 20; ++attempt) {
      values[i] = domain.low + (static_cast<double>(i) + draw(random)) * cell;
      if (std::abs(values[i] * 2 - std::round(values[i] * 2)) > 0.02) break;
    }
  }
  if (input.kind != "s") std::shuffle(values.begin(), values.end(), random);
  return array(values.begin(), input.shape, dtype);
}

inline bool accepts(const registry::Row& row, Dtype dtype) {
  return row.accepted == 0 || (row.accepted >> static_cast<int>(dtype.val()) & 1) != 0;
}

// The sum of products of all elements, in float64; without those that are infinite.
inline double dot(const std::vector<array>& a, const std::vector<array>& b) {
  double total = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    if (!issubdtype(a[i].dtype(), inexact)) continue;
    array left = astype(a[i], float64, Device::cpu), right = astype(b[i], float64, Device::cpu);
    std::vector<double> x = values_of<double>(left), y = values_of<double>(right);
    for (size_t k = 0; k < x.size(); ++k) {
      if (!std::isinf(x[k])) total += x[k] * y[k];
    }
  }
  return total;
}

// Arrays like these with random elements; zeros for integers.
inline std::vector<array> random_like(const std::vector<array>& arrays, std::mt19937_64& random) {
  std::normal_distribution<double> draw;
  std::vector<array> result;
  for (const array& a : arrays) {
    std::vector<double> values(a.size());
    for (double& value : values) value = issubdtype(a.dtype(), inexact) ? draw(random) : 0;
    result.push_back(array(values.begin(), a.shape(), a.dtype()));
  }
  return result;
}

}  // namespace holdfast::testing
