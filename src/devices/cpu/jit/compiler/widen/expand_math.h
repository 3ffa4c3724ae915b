// Operations that a target would do by calling a library, as code in place. Works on scalars and on
// vectors, so that both lowerings, which both run it, round alike.
#pragma once

#include "devices/cpu/jit/compiler.h"

namespace llvm {
class Function;
}

namespace holdfast::jit {

// After it, the function's arithmetic needs nothing from outside its object:
//   - arithmetic on half and bfloat is done in float, rounded after each operation;
//   - conversions to and from bfloat, and from and to half where the processor has none, are
//   integer
//     arithmetic (to nearest, ties to even);
//   - fma without hardware is exact in double arithmetic;
//   - round, and without SSE4.1 floor, ceil, trunc, rint and their kind, are arithmetic;
//   - minimum and maximum of floats are comparisons, but for AVX-512, where form_float_minimum
//   gives
//     them an instruction at the end: which zero wins must not depend on what the optimiser finds;
//   - fast-math flags are gone: they would let the lowerings differ.
void expand_math(llvm::Function& function, InstructionSet set);

}  // namespace holdfast::jit
