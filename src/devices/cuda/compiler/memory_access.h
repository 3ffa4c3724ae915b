// Memory as a GPU wants it: private arrays in registers, accesses as wide as can be proved.
#pragma once

namespace llvm {
class Function;
}

namespace holdfast::cuda {

// Asks for loops with a known, small number of turns to be unrolled as a whole: always where they
// index a private array, which has to be in local memory otherwise, and where it stays small. Short
// loops that read device memory make four turns at once.
void ask_for_unrolling(llvm::Function& function);

// Gives each access the alignment that follows from those of the arguments and variables and from
// its index, also through loops, where LLVM's own passes do not look: wide accesses are made of it.
void raise_alignments(llvm::Function& function);

}  // namespace holdfast::cuda
