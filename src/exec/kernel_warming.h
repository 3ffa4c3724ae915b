// Filling the kernel cache on disk for a target that is not that of this process: for machines that
// have no compiler.
#pragma once

#include <string>

#include "exec/kernel_request.h"

namespace holdfast::exec {

// Compiles the kernel into the cache of the user, unless it is there. Throws what the target's
// compiler throws, and std::runtime_error where there is no cache (HOLDFAST_DISK_CACHE,
// HOLDFAST_DUMP_KERNELS). False: it was there.
bool warm_kernel(const msl::KernelSource& source, const KernelOptions& options, Target& target);

// From now on each kernel that the process asks for is compiled for `target` as well. What does not
// compile for it is said on stderr.
void warm_for(Target& target);

}  // namespace holdfast::exec
