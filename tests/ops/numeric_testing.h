// Helpers for tests of numeric ops: random arrays in every layout, and comparison in double.
#pragma once

#include <algorithm>
#include <complex>
#include <random>
#include <vector>

#include "ops/array_testing.h"

namespace holdfast::testing {

// The elements in row-major order, read by hand and widened.
inline std::vector<double> doubles_of(const array& a) {
  std::vector<double> result;
  dispatch_dtype(a.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (!std::is_same_v<T, complex64_t>) {
      for (T value : values_of<T>(a)) result.push_back(static_cast<double>(value));
    }
  });
  return result;
}
inline std::vector<std::complex<double>> complexes_of(const array& a) {
  std::vector<std::complex<double>> result;
  if (a.dtype() == complex64) {
    for (complex64_t v : values_of<complex64_t>(a)) result.push_back({v.real(), v.imag()});
  } else {
    for (double v : doubles_of(a)) result.push_back(v);
  }
  return result;
}

class RandomArrays {
 public:
  explicit RandomArrays(uint32_t seed) : random_(seed) {}

  int pick(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }
  bool flip() { return pick(0, 1) == 1; }

  // Normally distributed, dense.
  array dense(const Shape& shape, Dtype dtype) {
    size_t size = 1;
    for (int dim : shape) size *= static_cast<size_t>(dim);
    std::normal_distribution<float> normal;
    if (dtype == complex64) {
      std::vector<complex64_t> values(size);
      for (complex64_t& value : values) value = complex64_t(normal(random_), normal(random_));
      return array(values.begin(), shape, dtype);
    }
    std::vector<float> values(size);
    for (float& value : values) value = normal(random_);
    return array(values.begin(), shape, dtype);
  }

  // The same in a random layout: transposed, with steps, reversed or repeated along some axes.
  array strided(const Shape& shape, Dtype dtype) {
    int kind = pick(0, 5);
    if (kind == 0 || shape.empty()) return dense(shape, dtype);
    if (kind == 1) {
      std::vector<int> order(shape.size()), back(shape.size());
      for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int>(i);
      std::shuffle(order.begin(), order.end(), random_);
      Shape moved;
      for (size_t i = 0; i < order.size(); ++i) {
        moved.push_back(shape[static_cast<size_t>(order[i])]);
        back[static_cast<size_t>(order[i])] = static_cast<int>(i);
      }
      return transpose(dense(moved, dtype), back);
    }
    Shape larger = shape, start(shape.size(), 0), stop = shape, step(shape.size(), 1);
    auto axis = static_cast<size_t>(pick(0, static_cast<int>(shape.size()) - 1));
    if (kind == 2) {
      larger[axis] = stop[axis] = shape[axis] * 2;
      step[axis] = 2;
    } else if (kind == 3) {
      start[axis] = shape[axis] - 1;
      stop[axis] = -shape[axis] - 1;
      step[axis] = -1;
    } else if (kind == 4) {
      larger[axis] = shape[axis] + 3;
      start[axis] = 2;
      stop[axis] = shape[axis] + 2;
    } else {
      larger[axis] = 1;
      return broadcast_to(dense(larger, dtype), shape);
    }
    return slice(dense(larger, dtype), start, stop, step);
  }

 private:
  std::mt19937 random_;
};

// |got - expected| <= tolerance * (1 + the largest |expected|), for each element.
inline void check_close(const array& got, const Shape& shape, const std::vector<double>& expected,
                        double tolerance) {
  REQUIRE(got.shape() == shape);
  std::vector<double> values = doubles_of(got);
  REQUIRE(values.size() == expected.size());
  double largest = 0, worst = 0;
  for (double value : expected) largest = std::max(largest, std::abs(value));
  for (size_t i = 0; i < values.size(); ++i) {
    double distance = std::abs(values[i] - expected[i]);
    worst = std::isnan(distance) ? INFINITY : std::max(worst, distance);
  }
  CHECK(worst <= tolerance * (1 + largest));
}

// Rounding of one operation in a dtype.
inline double rounding_of(Dtype dtype) {
  return dtype == float16 ? 1e-3 : dtype == bfloat16 ? 8e-3 : dtype == float64 ? 1e-12 : 2e-6;
}

}  // namespace holdfast::testing
