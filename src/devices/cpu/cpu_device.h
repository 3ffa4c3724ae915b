// The CPU device: runs command lists on a pool of workers, and on the threads that wait for them.
#pragma once

#include <memory>

#include "devices/device.h"

namespace holdfast::exec {

// `threads` 0: what affinity and cgroup quota allow. Starts no thread before one is needed.
std::unique_ptr<Device> make_cpu_device(int threads);

}  // namespace holdfast::exec
