// Memory as a GPU wants it: private arrays in registers, accesses as wide as can be proved.
#pragma once

#include <llvm/IR/PassManager.h>

namespace holdfast::cuda {

// Unrolls loops that index a private array and that leave after a number of turns of which only a
// small bound is known: with indices that are constants the array can be in registers.
void unroll_bounded_loops(llvm::Function& function);

// Asks for loops with a known, small number of turns to be unrolled as a whole: always where they
// index a private array, which has to be in local memory otherwise, and where it stays small. Short
// loops that read device memory, or that only compute, make several turns at once.
void ask_for_unrolling(llvm::Function& function);

// Two turns at once of loops with operations across all lanes, of which LLVM's own pass keeps off:
// what the next turn does not wait for runs beside it. For rotated loops. Whether there were some.
bool unroll_across_lanes(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);

// Gives each access the alignment that follows from those of the arguments and variables and from
// its index, also through loops, where LLVM's own passes do not look: wide accesses are made of it.
void raise_alignments(llvm::Function& function);

}  // namespace holdfast::cuda
