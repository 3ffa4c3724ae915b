// LLVM's NVPTX target: optimising for it, and PTX text.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace llvm {
class Function;
class Module;
class TargetMachine;
}  // namespace llvm

namespace holdfast::cuda {

// For the architecture sm_<target>. Throws std::runtime_error for one that this LLVM does not know.
// Not shared between threads.
std::unique_ptr<llvm::TargetMachine> make_target_machine(uint32_t target);

// Leaves loops on the spot: what the language's front-end has put between a `break` and the end of
// its loop is gone. Blocks with operations across lanes are not duplicated.
void thread_jumps(llvm::Function& function);

// LLVM's -O3 with the target's costs, without the vectorisers: unrolling, private arrays into
// registers.
void optimise(llvm::Module& module, llvm::TargetMachine& machine);

// Neighbouring accesses become wide ones, as far as alignments allow. Code generation does it too,
// but nothing could look at the result there.
void merge_accesses(llvm::Function& function, llvm::TargetMachine& machine);

// Consumes the module.
std::string emit_ptx(llvm::Module& module, llvm::TargetMachine& machine);

}  // namespace holdfast::cuda
