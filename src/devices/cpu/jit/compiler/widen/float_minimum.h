// Minimum and maximum of floats in the form that processors have an instruction for.
#pragma once

namespace llvm {
class Function;
}

namespace holdfast::jit {

// AVX-512 has instructions in which a quiet NaN loses against a number and -0 against 0 is the
// smaller one: they are written for llvm.minnum and llvm.maxnum of float, of any number of lanes.
//
// Elsewhere, and in comparisons that the kernel's author wrote: of `a` and `c` a number wins
// against a NaN, and `a` stays when both are equal. Optimising makes `isnan(a) || c < a ? c : a` of
// that: two comparisons. After it, just before code generation, this writes `isnan(a) ? c : (c < a
// ? c : a)`, whose inner part is one instruction; and where two such results meet in a choice,
// looks for the NaN once.
void form_float_minimum(llvm::Function& function);

}  // namespace holdfast::jit
