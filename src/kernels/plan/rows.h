// RowGroup: ops on the rows of matrices, each row by itself, that are run as one.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <holdfast/dtype.h>

#include "kernels/plan/backend_cache.h"
#include "kernels/plan/reduce.h"

namespace holdfast::kernels {

// How many elements a value has.
enum class RowWidth : uint8_t {
  full,    // `rows` times `length`
  single,  // one a row
  shared,  // one row, the same for all rows
  scalar   // one
};

struct RowValue {
  RowWidth width;
  Dtype dtype;
  bool operator==(const RowValue&) const = default;
};

// An op on earlier values: an element-wise one over its result's elements, or the reduction of a
// full value to a single one.
struct RowStep {
  static constexpr int16_t reduces = -1;
  int16_t op = reduces;  // of the element-wise table, or conversion_code
  ReduceOp reduction = {};
  uint8_t arity = 0;
  uint16_t operands[3] = {};  // values
  bool operator==(const RowStep&) const = default;
};

struct RowGroup {
  int64_t rows = 0, length = 0;
  std::vector<RowValue> values;  // the inputs, then the results of the steps
  std::vector<RowStep> steps;    // in order of evaluation
  std::vector<uint16_t> outputs;
  // What the backend keeps with the group.
  std::unique_ptr<BackendCache> cache = std::make_unique<BackendCache>();

  // Whatever backends keep.
  bool operator==(const RowGroup& other) const {
    return rows == other.rows && length == other.length && values == other.values &&
           steps == other.steps && outputs == other.outputs;
  }
  uint16_t inputs() const { return static_cast<uint16_t>(values.size() - steps.size()); }
};

}  // namespace holdfast::kernels
