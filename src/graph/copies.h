// Copies of what ops work on between the memory of devices.
#pragma once

#include <span>
#include <vector>

#include <holdfast/array.h>

#include "exec/queue.h"

namespace holdfast::detail {

// Makes what an op reads valid in the memory of the queue's device before it encodes anything,
// where its first command would do so otherwise.
void bring_inputs(exec::Queue& queue, std::span<const array> inputs);

// The bytes of what an op reads that the space does not have.
size_t bytes_missing(const exec::MemorySpace& space, std::span<const array> inputs);

struct CopiedOutputs {
  Event event;
  size_t bytes = 0;
};
// What the host computed for a device that has no kernel for an op with this label: copies the
// memory of its outputs, which is there when `computed` is signaled, to the device of `queue`, and
// makes them refer to that. Memory that an output shares with an input stays. The event of the
// copies; `computed` where there are none, or where they cannot be encoded (no memory, say): then
// the host's serves.
CopiedOutputs copy_to_device(exec::Queue& queue, const Event& computed, const label::Label& label,
                             std::span<const array> inputs, std::span<array* const> outputs);

}  // namespace holdfast::detail
