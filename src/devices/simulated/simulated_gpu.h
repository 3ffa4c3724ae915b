// The simulated GPU: a discrete GPU made of the host's cores, to test on. It has memory that the
// host cannot touch, and queues that run by themselves.
#pragma once

#include <memory>

#include "devices/cpu/cpu_device.h"

namespace holdfast::exec {

// Its lists run on the workers of `cores`.
std::unique_ptr<Device> make_simulated_gpu(CpuDevice& cores);

// Is `address` one of simulated GPU memory? The process of a host that uses it ends with SIGSEGV,
// and a line on stderr that says so (HOLDFAST_CATCH_FAULTS).
bool is_simulated_address(const void* address);

}  // namespace holdfast::exec
