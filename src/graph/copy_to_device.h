// What the host computed for a device that has no kernel for an op.
#pragma once

#include <span>
#include <vector>

#include <holdfast/array.h>

#include "exec/queue.h"

namespace holdfast::detail {

// Copies the memory of an op's outputs, which is there when `computed` is signaled, to the device
// of `queue`, and makes them refer to that. Memory that an output shares with an input stays. The
// event of the copies; `computed` where there are none, or where the device has no memory left:
// then the host's serves.
Event copy_to_device(exec::Queue& queue, const Event& computed, std::span<const array> inputs,
                     std::span<array* const> outputs);

}  // namespace holdfast::detail
