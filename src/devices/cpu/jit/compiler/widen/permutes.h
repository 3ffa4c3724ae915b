// Shuffles whose lanes are known only when the kernel runs, made simpler once the optimiser has
// found out what they shuffle.
#pragma once

namespace llvm {
class Function;
}

namespace holdfast::jit {

// AVX-512: a permutation of two registers of sixteen looks at the low five bits of an index only.
// Where a table repeats itself, it needs fewer, and no instruction that clears the others; where it
// is all in one register, it needs no second one. Just before code generation.
void simplify_permutes(llvm::Function& function);

}  // namespace holdfast::jit
