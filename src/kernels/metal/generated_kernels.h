// The second way to run a group of element-wise steps, as a kernel that was written for it.
//
// A new group is interpreted (encode/fused.cpp). Once groups like it have worked so much that
// compiling would have paid, another thread makes the kernel, and later groups use it. Both call
// the same functions and give the same bits, so that it does not matter when that happens.
#pragma once

#include <string>
#include <vector>

#include "devices/device.h"
#include "devices/pipeline.h"
#include "kernels/elementwise/lowered_steps.h"

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

// The kernel for groups like this one, of `elements` elements; null while there is none. Any
// thread, also with a queue locked: never compiles or waits.
Ref<const exec::Pipeline> find_generated(exec::Device& device, const GeneratedGroup& group,
                                         int64_t elements);
// Compiles it now, where HOLDFAST_COMPILE_KERNELS asks for that. With no queue locked.
void make_generated(exec::Device& device, const GeneratedGroup& group);

}  // namespace holdfast::kernels::metal
