// Products with powers of two, in the form that the processor does best.
#pragma once

#include "devices/cpu/jit/compiler.h"

namespace llvm {
class Function;
}

namespace holdfast::jit {

// The scalar IR holds `llvm.ldexp(x, n)` where our metal_stdlib scales a float that is near 1 (or
// NaN) by 2^n, -252 <= n <= 254 (__hf::scale). After optimising, just before code generation, this
// writes one instruction for it, or two multiplications by powers made of bits: equal results, both
// round once.
void expand_powers_of_two(llvm::Function& function, InstructionSet set);

}  // namespace holdfast::jit
