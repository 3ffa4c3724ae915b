// add_dispatch: the one way in which a dispatch comes into a queue's open list, encoded anew or
// from a capture.
#pragma once

#include <cstdint>
#include <span>

#include "devices/pipeline.h"

namespace holdfast::exec {

class Queue;

struct DispatchSize {
  uint32_t grid[3];         // threads
  uint32_t threadgroup[3];  // threads; clamped to the grid
};

// Inside a transaction, when everything is bound. `slots` are what is bound to each slot
// ([[buffer(n)]]) of the kernel, in any order; inline bytes are copied, and the slots changed to
// where the copies are. `threadgroup_bytes` are sizes by threadgroup slot, `work` the bytes that
// are bound. The list owns the pipeline. Throws std::invalid_argument when the kernel wants an
// argument that is not there, or the size is not one that the device runs.
void add_dispatch(Queue& queue, const Pipeline& pipeline, std::span<BoundSlot> slots,
                  const DispatchSize& size, std::span<const uint32_t> threadgroup_bytes,
                  int64_t work);

}  // namespace holdfast::exec
