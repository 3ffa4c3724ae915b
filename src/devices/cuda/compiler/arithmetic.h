// Arithmetic in the form that NVPTX does best, with the bits of every other lowering.
#pragma once

namespace llvm {
class Function;
}

namespace holdfast::cuda {

// Before optimising: arithmetic of half and bfloat that the GPU does not have is done in float and
// rounded; fast-math flags are gone.
void prepare_arithmetic(llvm::Function& function);

// After optimising: conversions that saturate, and exp2 and log2 (which scalar IR has only where
// approximations are wanted), are the GPU's own, products with powers of two are
// multiplications (widen/powers_of_two.h), fences are of the GPU, not of the system.
void finish_arithmetic(llvm::Function& function);

}  // namespace holdfast::cuda
