// The functions of include/holdfast/tile.h as NVIDIA's instructions.
#pragma once

#include <cstdint>

namespace llvm {
class Function;
class TargetMachine;
}  // namespace llvm

namespace holdfast::cuda {

// Lowers all calls of these rows of intrinsics.def in the kernel. Whether it would lower them
// otherwise for another target.
bool lower_tiles(llvm::Function& kernel, uint32_t target);

// Streaming loads (!nontemporal) of arguments that the kernel does not write keep out of the first
// cache. For functions that are optimised.
void lower_streaming_loads(llvm::Function& entry, llvm::TargetMachine& machine);

}  // namespace holdfast::cuda
