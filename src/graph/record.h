// What a primitive was made with, as plain values: what a file of functions holds of it.
#pragma once

#include <optional>
#include <string>
#include <tuple>
#include <variant>
#include <vector>

#include <holdfast/array.h>
#include <holdfast/stream.h>

namespace holdfast {

// The alternatives and their order are part of the file format (docs/export.md), and of MLX's API
// (StateT).
using RecordedValue =
    std::variant<bool, int, size_t, float, double, Dtype, Shape, Strides, std::vector<int>,
                 std::vector<size_t>, std::vector<std::tuple<bool, bool, bool>>,
                 std::vector<std::variant<bool, int, float>>, std::optional<float>, std::string>;

namespace detail {
struct Record {
  std::string kind;  // which op: a row of ops/recorded_calls.cpp
  std::vector<RecordedValue> state;
};

// A record called again: with these inputs, for outputs like these.
struct RecordedCall {
  std::vector<array> inputs;
  std::vector<Shape> shapes;  // of the outputs: for ops that were given a shape
  std::vector<Dtype> dtypes;
  Stream stream;

  // The inputs; std::invalid_argument unless they are `count`.
  const std::vector<array>& exactly(size_t count) const;
};
}  // namespace detail
using detail::Record;
using detail::RecordedCall;

}  // namespace holdfast
