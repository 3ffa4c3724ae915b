// Kernels in scalar IR, compiled and run by themselves: no front-end, no queue.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "devices/cpu/jit/dispatch.h"

namespace holdfast::jit::testing {

// The instruction sets that this machine runs.
std::vector<InstructionSet> instruction_sets();

// Compiles the function @kernel of a module in LLVM's text form (msl/scalar_ir.h). Its parameters
// in addrspace(3) become threadgroup arguments.
CompiledKernel compile_ir(const std::string& text, Lowering lowering, InstructionSet set);
Ref<CpuPipeline> load_ir(const std::string& text, Lowering lowering, InstructionSet set);

// Declarations of everything that kernels call, to be put after a kernel's text.
std::string intrinsic_declarations();

using Size = std::array<uint32_t, 3>;

// Runs all groups of a grid on this thread.
void run(const CpuPipeline& pipeline, std::vector<void*> buffers, Size grid, Size threadgroup,
         std::vector<uint32_t> threadgroup_bytes = {},
         const std::vector<ArgumentRange>& ranges = {});

}  // namespace holdfast::jit::testing
