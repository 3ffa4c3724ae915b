// Element-wise steps as kernels know them: ops on lanes, of which kernels are written
// (step_source.h) or which they interpret (kernels/metal/encode/fused.cpp).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "graph/op.h"
#include "kernels/elementwise/codes.h"

namespace holdfast::kernels {

// Values are numbered: the inputs, then the results of the steps.
struct LoweredStep {
  FusedOp op;
  Lane lane;  // of the operands; of Select, of x and y
  Finish finish;
  uint8_t arity;
  uint16_t operands[3];
  Lane result;
  Dtype::Val dtype;  // of the result
};

Lane lane_of(Dtype::Val dtype);
ElementType element_type_of(Dtype::Val dtype);

// Appends the steps of one op: of the table, or conversion_code. Their last result is the op's;
// returns its number. `operands` and `values`, how many there are, are numbers as above.
uint16_t lower(int16_t op, Dtype operand_dtype, Dtype dtype, std::span<const uint16_t> operands,
               uint16_t inputs, std::vector<LoweredStep>& steps);

struct LoweredGroup {
  std::vector<LoweredStep> steps;
  std::vector<uint16_t> results;  // the values that the group's steps give
};
LoweredGroup lower(std::span<const FusedStep> steps, size_t inputs);

}  // namespace holdfast::kernels
