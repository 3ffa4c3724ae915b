// The second way to run a group of element-wise steps, as a kernel that was written for it.
//
// A new group is interpreted (encode/fused.cpp). Once groups like it have worked so much that
// compiling would have paid, another thread makes the kernel, and later groups use it. Both call
// the same functions and give the same bits, so that it does not matter when that happens.
#pragma once

#include "devices/device.h"
#include "devices/pipeline.h"
#include "kernels/metal/generated_source.h"

namespace holdfast::kernels::metal {

// The kernel for groups like this one, of `elements` elements; null while there is none. Any
// thread, also with a queue locked: never compiles or waits.
Ref<const exec::Pipeline> find_generated(exec::Device& device, const GeneratedGroup& group,
                                         int64_t elements);
// Compiles it now, where HOLDFAST_COMPILE_KERNELS asks for that. With no queue locked.
void make_generated(exec::Device& device, const GeneratedGroup& group);

}  // namespace holdfast::kernels::metal
