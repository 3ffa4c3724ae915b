// The .entry of a kernel: its parameters (ptx_kernel.h), and how threads learn their positions.
#pragma once

#include "devices/cuda/ptx_kernel.h"

namespace llvm {
class Function;
}

namespace holdfast::cuda {

// The function that guards call for an access that is outside: its site, the distance in bytes, the
// address of the GuardReport.
inline constexpr const char* report_function_name = "holdfast_report";

// Returns the entry, called `symbol`, that takes the place of `kernel`. Cross-lane operations have
// been lowered.
llvm::Function& make_entry(llvm::Function& kernel, const msl::KernelInterface& interface,
                           const PtxOptions& options, const std::string& symbol);

}  // namespace holdfast::cuda
