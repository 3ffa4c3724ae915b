// The source of a kernel for a group of element-wise steps, of the functions that the interpreter
// calls: the same bits.
#pragma once

#include <string>
#include <vector>

#include "kernels/metal/lowered_steps.h"

namespace holdfast::kernels::metal {

struct GeneratedGroup {
  struct Input {
    Dtype::Val dtype;
    FusedAccess access;
    uint8_t dimensions;  // strided
  };
  std::vector<LoweredStep> steps;
  std::vector<Input> inputs;
  std::vector<uint16_t> outputs;  // values
  bool is_large;                  // 2^31 elements and more
};

// Elements of a thread: 16 bytes of the smallest of them, or fewer where others are much larger.
int elements_per_thread(const GeneratedGroup& group);
// Everything that the source follows from.
std::string key_of(const GeneratedGroup& group);
// A kernel `compiled` with these arguments: the number of elements, a list of GeneratedAccess
// (support/generated.h) of inputs and outputs, extents, inputs, outputs.
std::string source_of(const GeneratedGroup& group);

}  // namespace holdfast::kernels::metal
