// The source of a kernel for a group of element-wise steps, which gives the bits of the block
// engine.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "graph/op.h"

namespace holdfast::kernels::cpu {

// Which element of an input belongs to the element in row y and column x of the outputs.
enum class InputAccess : uint8_t {
  element,  // the same
  column,   // x: the input is one row
  row,      // y: the input is one column
  scalar    // the first: the input has one element
};

struct GeneratedInput {
  Dtype dtype;
  InputAccess access;
  bool operator==(const GeneratedInput&) const = default;
};

// A Metal kernel `compiled`: the inputs, then the outputs of the steps that have one, in order, are
// its buffers. With an input of access `row` or `column` its grid is (columns, rows), else the
// elements; of rows or elements a thread works on `per_thread`, whose steps take turns: one after
// the other, long chains would wait for each result. Nothing for steps whose bits a kernel cannot
// give: those of other ops, or of dtypes that are rounded after each step; exponentials, too, where
// the block engine has no fused multiplication and rounds in other places.
std::optional<std::string> generated_source(std::span<const FusedStep> steps,
                                            std::span<const char> is_output,
                                            std::span<const GeneratedInput> inputs, int per_thread,
                                            bool fuses_multiplication);

}  // namespace holdfast::kernels::cpu
