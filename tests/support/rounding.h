// How far what two devices compute may differ: by rounding, and no more.
//
// Two devices add in other orders, and call other functions of the same accuracy. Each is off the
// exact result by at most so many roundings of something of a known size, which follow from how the
// op computes; together by twice that. The table in rounding.cpp has a row for each op that may
// differ at all; all others, and all integers, are equal to the bit.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <holdfast/array.h>

#include "registry/registry.h"

namespace holdfast::testing {

// What is rounded on the way into an element of a result.
enum class Size {
  // The element itself, or 1 where it is smaller: functions are accurate in units of the last place
  // of either.
  result,
  // A sum of products: of their absolute values, which is what the op gives for the absolute values
  // of its inputs.
  terms,
  // As `terms`, where factors have any sign or phase: the largest element of that, in which all
  // have the same.
  largest_terms,
  // All inputs, each times `scale` or, without one, by the root of how many they are.
  signed_sum,
  // The result of a function of sums of squares of differences, or of products of two inputs that
  // are subtracted: four times the square of the largest input.
  squares,
  // The root of that: its error, by the root.
  root_of_squares,
  // Two numbers of the size of the largest input.
  inputs,
  // The logarithm of a sum of exponentials: 1, but for complex ones by how much they cancel.
  logarithm,
  // An average of the last input whose weights are exponentials of products of the first two, which
  // are rounded first: that input, times the largest product.
  attention,
};

struct Rounding {
  const char* rows;  // of the registry, separated by spaces; `fft.*`: all that begin so
  double steps;      // roundings of float32 for each term
  bool adds;         // and one more for each term before it: at most the elements of an input
  double stores;     // roundings to the dtype of the result
  Size size;
  bool only_complex;
  const char* why;
};

// Null: equal to the bit.
const Rounding* rounding_of(const std::string& row, Dtype dtype);

// One call of an op, or of a transform of it: `run` may be called again, with other inputs.
struct RoundedCall {
  std::function<std::vector<array>(const std::vector<array>&)> run;
  std::vector<array> inputs;
  const registry::Sample& sample;
};

// Empty, or what in `got` differs from `expected`, the result `index` of the call on the CPU, by
// more than rounding does.
std::string beyond_rounding(const Rounding& rounding, const RoundedCall& call, size_t index,
                            const array& got, const array& expected);

}  // namespace holdfast::testing
