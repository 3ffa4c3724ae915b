// A kernel for NVIDIA GPUs, run on this processor: what the lowering to NVPTX has made is read back
// as scalar IR, each instruction of the GPU as the function of intrinsics.def that it is, and goes
// through the reference lowering.
#pragma once

#include "jit/ptx/gpu_cases.h"

namespace holdfast::jit::testing {

struct TwinResult {
  std::vector<GpuArgument> arguments;  // after the run, by KernelInterface::arguments
  // Cross-lane instructions whose mask was not that of the lanes that came to them in the reference
  // lowering, and shuffles from lanes that take no part: what the GPU would hang or guess at.
  uint32_t wrong_masks = 0;
  bool gathers = false;
  uint32_t outside = 0;  // accesses of a guarded kernel that were not made
};

// How a kernel is compiled, beside what its case says.
struct TwinOptions {
  // Each argument ends where its bytes do.
  bool guarded = false;
  bool has_inline_constants = false;
};

// `optimised`: after LLVM's optimisations for the GPU, too. `cancelled`:
// LaunchParameters::cancelled is set from the start, and the kernel looks at it.
TwinResult run_twin(const GpuCase& gpu_case, cuda::Positions positions, bool optimised,
                    bool cancelled = false, const TwinOptions& how = {});

// What differs between two runs of a case, in a sentence; empty: nothing.
std::string difference(const std::vector<GpuArgument>& got,
                       const std::vector<GpuArgument>& expected);

}  // namespace holdfast::jit::testing
