// Constant memory becomes another memory: what MSL calls `constant` are buffers of any size and
// tables that lanes index as they like, both of which an NVIDIA GPU reads best from global memory;
// or bytes in the parameters of the launch.
#pragma once

namespace llvm {
class Function;
}

namespace holdfast::cuda {

// Returns the function that takes the place of `kernel`, with pointers to addrspace(space) where
// those to addrspace(5) were; so in the whole module. Scalar IR has no functions beside the kernel
// here.
llvm::Function& replace_constant_memory(llvm::Function& kernel, unsigned space);

}  // namespace holdfast::cuda
