// Random programs of smooth ops: an array of float64 in, one of one to six elements out.
#pragma once

#include <random>
#include <vector>

#include "ops/array_testing.h"

namespace holdfast::testing {

using Random = std::mt19937_64;

inline int draw(Random& random, int count) {
  return std::uniform_int_distribution(0, count - 1)(random);
}

// Numbers that only depend on the seed.
inline array numbers(const Shape& shape, uint64_t seed, Dtype dtype = float64) {
  Random random(seed);
  std::uniform_real_distribution<double> distribution(-1, 1);
  size_t size = 1;
  for (ShapeElem dim : shape) size *= static_cast<size_t>(dim);
  std::vector<double> values(size);
  for (double& value : values) value = distribution(random);
  return array(values.begin(), shape, dtype);
}

inline array scalar(double value) { return array(value, float64); }

inline array apply_unary(int op, const array& x) {
  switch (op) {
    case 0:
      return sin(x);
    case 1:
      return tanh(x);
    case 2:
      return exp(scalar(0.5) * x);
    case 3:
      return log(scalar(1.5) + square(x));
    case 4:
      return sqrt(scalar(1) + square(x));
    case 5:
      return sigmoid(x);
    case 6:
      return x / (scalar(2) + cos(x));
    case 7:
      return logaddexp(x, negative(x));
    case 8:
      return erf(x);
    case 9:
      return power(scalar(1) + square(x), scalar(0.7));
    case 10:
      return arctan2(x, scalar(2) + x * x);
    default:
      return remainder(scalar(0.1) * x, scalar(50)) * scalar(0.1);
  }
}
constexpr int unary_ops = 12;

// Keeps or changes the shape; at most six elements.
inline array apply_shape(int op, const array& x, uint64_t seed) {
  if (x.ndim() == 0) return reshape(x, {1});
  int last = x.shape(-1), axis = static_cast<int>(seed % x.ndim());
  switch (op) {
    case 0:
      return transpose(x);
    case 1:
      return flatten(x);
    case 2:
      return x.ndim() > 1 ? sum(x, axis) : x * scalar(2);
    case 3:
      return softmax(x, axis);
    case 4:
      return cumsum(x, axis, seed % 2 == 0);
    case 5:
      return cumprod(x, axis);
    case 6:
      return flip(x, axis);
    case 7:
      return matmul(reshape(x, {-1, last}), numbers({last, last}, seed));
    case 8:
      return concatenate({slice(x, Shape(x.ndim(), 0), x.shape()), zeros_like(x)}, axis) *
             scalar(0.5);
    case 9:
      return take(x, array({0, -1}), axis);
    case 10:
      return fast::rms_norm(x, std::nullopt, 1e-2f);
    case 11:
      return logsumexp(x, axis, true) + x;
    case 12:
      return where(greater(numbers(x.shape(), seed), scalar(0)), x, sin(x));
    case 13:
      return roll(x, 1, axis);
    case 14:
      return x - mean(x, axis, true);
    case 15:
      return linalg::solve(numbers({last, last}, seed) + scalar(4) * eye(last, float64),
                           transpose(reshape(x, {-1, last})));
    case 16:
      return scatter_add_axis(x, zeros(Shape(x.ndim(), 1), int32), take(x, array({-1}), axis),
                              axis);
    default:
      return pad(x, 1, scalar(0.3));
  }
}
constexpr int shape_ops = 18;

struct Step {
  int kind, op, other;
  uint64_t seed;
};

inline array run(const std::vector<Step>& program, const array& x) {
  std::vector<array> values = {x};
  for (const Step& step : program) {
    array a = values.back();
    if (step.kind == 0) a = apply_unary(step.op % unary_ops, a);
    if (step.kind == 1) a = apply_shape(step.op % shape_ops, a, step.seed);
    if (step.kind == 2) {
      // With an earlier value of the same number of elements, else with constants.
      array b = values[static_cast<size_t>(step.other) % values.size()];
      b = b.size() == a.size() ? reshape(b, a.shape()) : numbers(a.shape(), step.seed);
      switch (step.op % 4) {
        case 0:
          a = a * b;
          break;
        case 1:
          a = a + sin(b);
          break;
        case 2:
          a = a / (scalar(2) + square(b));
          break;
        default:
          a = maximum(a, b) * scalar(0.5);
      }
    }
    if (a.size() > 6) a = slice(flatten(a), {0}, {4});
    values.push_back(a);
  }
  return values.back();
}

inline std::vector<Step> random_program(Random& random) {
  std::vector<Step> program;
  int length = 2 + draw(random, 6);
  for (int i = 0; i < length; ++i) {
    program.push_back({draw(random, 3), draw(random, 1000), draw(random, 1000), random()});
  }
  return program;
}

}  // namespace holdfast::testing
