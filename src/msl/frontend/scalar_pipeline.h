// From what clang emits to scalar IR (msl/scalar_ir.h).
#pragma once

#include <string>

#include "msl/kernel_source.h"
#include "msl/scalar_ir.h"

namespace llvm {
class Module;
}

namespace holdfast::msl {

// Reduces `module` to the function `symbol`, inlines and optimises it, and calls it
// `interface.entry`. Fills in what only IR tells: which buffers are written, bytes of threadgroup
// memory. Returns what the kernel does that a kernel cannot do (recursion, calls of unknown
// functions, …); empty when nothing.
std::string make_scalar(llvm::Module& module, const char* symbol, MathMode math, ScalarForm form,
                        const LoweringTraits& traits, KernelInterface& interface);

}  // namespace holdfast::msl
