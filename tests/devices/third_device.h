// A device that knows nothing but to copy: no kernels, and memory of its own that is reached
// through its MemorySpace only. What a new device has to bring, at the least.
#pragma once

#include <memory>

#include "devices/device.h"

namespace holdfast::testing {

std::unique_ptr<exec::Device> make_third_device();

// Bytes that went into its memory and out of it so far.
struct Traffic {
  size_t in = 0, out = 0;
};
Traffic third_device_traffic();

}  // namespace holdfast::testing
