// The CPU device: runs command lists on a pool of workers, and on the threads that wait for them.
#pragma once

#include <memory>

#include "devices/device.h"

namespace holdfast::exec {

class CpuDevice : public Scheduler, public Device {
 public:
  CpuDevice() : Device(host_memory(), *this) {}
  // A queue of another device, whose lists run on this one's workers: not on threads that wait for
  // them, as long as there are workers.
  virtual std::unique_ptr<DeviceQueue> create_asynchronous_queue(Device& device) = 0;
};

// `threads` 0: what affinity and cgroup quota allow. Starts no thread before one is needed.
std::unique_ptr<CpuDevice> make_cpu_device(int threads);

}  // namespace holdfast::exec
