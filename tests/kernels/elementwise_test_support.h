// What the tests of the block kernels share: the table of ops, operands with special values, ways
// to run a kernel on vectors, and distances in units in the last place.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/instruction_set.h"

namespace holdfast::kernels::cpu::test {

using Op = ElementwiseOp;
using Val = Dtype::Val;
using Long = long double;

// Around a buffer that a kernel may not leave.
inline constexpr unsigned char canary = 0xa5;

inline constexpr int lane_count = static_cast<int>(Lane::count);

struct TableRow {
  Op op;
  std::string rule, in_types;
};

inline const std::vector<TableRow>& table() {
  static const std::vector<TableRow> rows = {
#define UNARY(function, Primitive, rule, in_types, ...) {Op::Primitive, #rule, #in_types},
#define BINARY(function, Primitive, rule, in_types, ...) {Op::Primitive, #rule, #in_types},
#define TERNARY(function, Primitive, rule, in_types, ...) {Op::Primitive, #rule, #in_types},
#include <holdfast/elementwise.def>
  };
  return rows;
}

inline bool is_integer_lane(Lane lane) { return lane >= Lane::u8 && lane <= Lane::i64; }
inline bool is_float_lane(Lane lane) { return lane == Lane::f32 || lane == Lane::f64; }

inline bool accepts(const std::string& in_types, Lane lane) {
  if (in_types == "any") return true;
  if (in_types == "real") return lane != Lane::c64;
  if (in_types == "number") return lane != Lane::b8;
  if (in_types == "float") return is_float_lane(lane);
  if (in_types == "inexact") return is_float_lane(lane) || lane == Lane::c64;
  if (in_types == "integral") return is_integer_lane(lane) || lane == Lane::b8;
  if (in_types == "integer") return is_integer_lane(lane);
  return lane == Lane::b8;
}

inline std::string name_of(Op op) { return elementwise_name(op); }
inline std::string name_of(InstructionSet set) { return instruction_set_name(set); }

// Runs `body` once for each instruction set of this machine.
inline void for_each_instruction_set(const std::function<void()>& body) {
  for (InstructionSet set : available_instruction_sets()) {
    force_instruction_set(set);
    INFO("instruction set ", name_of(set));
    body();
  }
  unforce_instruction_set();
}

template <typename R, typename T>
std::vector<R> run_unary(Op op, Lane lane, const std::vector<T>& a) {
  std::vector<R> out(a.size());
  const void* in[] = {a.data()};
  elementwise_kernel(op, lane)(out.data(), in, static_cast<int64_t>(a.size()));
  return out;
}

template <typename R, typename T>
std::vector<R> run_binary(Op op, Lane lane, const std::vector<T>& a, const std::vector<T>& b) {
  std::vector<R> out(a.size());
  const void* in[] = {a.data(), b.data()};
  elementwise_kernel(op, lane)(out.data(), in, static_cast<int64_t>(a.size()));
  return out;
}

// Every pair of `values`, as two columns.
template <typename T>
std::pair<std::vector<T>, std::vector<T>> all_pairs(const std::vector<T>& values) {
  std::pair<std::vector<T>, std::vector<T>> result;
  for (T a : values) {
    for (T b : values) {
      result.first.push_back(a);
      result.second.push_back(b);
    }
  }
  return result;
}

template <typename T>
std::vector<T> integer_operands() {
  using Limits = std::numeric_limits<T>;
  std::vector<T> values = {Limits::min(),
                           static_cast<T>(Limits::min() + 1),
                           Limits::max(),
                           static_cast<T>(Limits::max() - 1),
                           static_cast<T>(Limits::max() / 2),
                           static_cast<T>(-1),
                           static_cast<T>(-2),
                           static_cast<T>(-3)};
  for (int i = 0; i <= 20; ++i) values.push_back(static_cast<T>(i));
  for (int i : {31, 32, 33, 63, 64, 65, 100}) values.push_back(static_cast<T>(i));
  std::mt19937_64 random(7);
  for (int i = 0; i < 60; ++i) {
    values.push_back(static_cast<T>(random() >> (random() % 60)));
    if (Limits::is_signed) values.push_back(static_cast<T>(-static_cast<T>(values.back() / 2)));
  }
  return values;
}

template <typename T>
std::vector<T> float_operands(int random_count) {
  using Limits = std::numeric_limits<T>;
  std::vector<T> values;
  for (T magnitude : {T(0),
                      Limits::infinity(),
                      Limits::quiet_NaN(),
                      Limits::denorm_min(),
                      Limits::min(),
                      Limits::min() / 4,
                      Limits::max(),
                      Limits::epsilon(),
                      T(0.1),
                      T(0.25),
                      T(0.5),
                      T(0.75),
                      T(1),
                      T(1) - Limits::epsilon(),
                      T(1) + Limits::epsilon(),
                      T(1.5),
                      T(2),
                      T(2.5),
                      T(3),
                      T(3.5),
                      T(7),
                      T(10),
                      T(20),
                      T(88.7),
                      T(88.8),
                      T(87.4),
                      T(95),
                      T(103.9),
                      T(104.1),
                      T(709.5),
                      T(710),
                      T(745),
                      T(746),
                      T(1e4),
                      T(8388607.5),
                      T(8388608),
                      T(1e10),
                      T(4503599627370495.5),
                      T(1e30)}) {
    values.push_back(magnitude);
    values.push_back(-magnitude);
  }
  std::mt19937_64 random(11);
  std::uniform_real_distribution<double> unit(-1, 1);
  int exponents = sizeof(T) == 4 ? 140 : 1000;
  for (int i = 0; i < random_count; ++i) {
    double x = unit(random);
    switch (i % 6) {
      case 0:
        x *= 10;
        break;
      case 1:
        break;
      case 2:
        x *= 110;
        break;
      case 3:
        x = std::ldexp(x, static_cast<int>(random() % 60) - 30);
        break;
      case 4:
        x = std::ldexp(
            x, static_cast<int>(random() % static_cast<uint64_t>(2 * exponents)) - exponents);
        break;
      default:
        x = std::fabs(x) * 5;
        break;
    }
    values.push_back(static_cast<T>(x));
  }
  return values;
}

// The distance of `got` from the exact value in units in the last place of T; huge for a wrong
// class (NaN, infinity, sign of zero).
template <typename T>
double ulps(T got, Long exact) {
  constexpr double wrong_class = 1e9;
  T rounded = static_cast<T>(exact);
  if (std::isnan(got) || std::isnan(exact))
    return std::isnan(got) == std::isnan(exact) ? 0 : wrong_class;
  if (got == rounded)
    return got != 0 || std::signbit(got) == std::signbit(rounded)
               ? static_cast<double>(std::fabs(got - exact) == 0 ? 0 : 0.5)
               : wrong_class;
  if (std::isinf(got) || std::isinf(rounded)) {
    // At the edge of the range the neighbour of infinity is the largest value.
    bool at_edge =
        std::fabs(exact) > std::numeric_limits<T>::max() * Long(0.999999) && !std::isinf(exact);
    return at_edge ? 1 : wrong_class;
  }
  int exponent;
  std::frexp(exact, &exponent);
  exponent = std::max(exponent, std::numeric_limits<T>::min_exponent);
  return static_cast<double>(std::fabs(got - exact) /
                             std::ldexp(Long(1), exponent - std::numeric_limits<T>::digits));
}

inline bool same_bits_or_nan(float a, float b) {
  return (std::isnan(a) && std::isnan(b)) || std::memcmp(&a, &b, 4) == 0;
}
inline bool same_bits_or_nan(double a, double b) {
  return (std::isnan(a) && std::isnan(b)) || std::memcmp(&a, &b, 8) == 0;
}

}  // namespace holdfast::kernels::cpu::test
