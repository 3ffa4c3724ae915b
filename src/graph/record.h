// What a primitive was made with, as plain values: what a file of functions holds of it.
#pragma once

#include <optional>
#include <string>
#include <tuple>
#include <variant>
#include <vector>

#include <holdfast/array.h>

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
}  // namespace detail
using detail::Record;

}  // namespace holdfast
