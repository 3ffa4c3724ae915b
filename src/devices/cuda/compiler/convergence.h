// Which lanes take part in a cross-lane operation: computed, never asked of the machine, which
// promises nothing about the lanes that happen to run together.
//
// Where control flow is structured, a mask is a value: a branch that may diverge (the uniformity
// analysis of widening says which) votes among the lanes that come to it, and a block that all of
// them come to again has the mask from before. Lanes at different operations then name different
// masks and never wait for each other.
//
// Elsewhere (a join of only some of the lanes that diverged, as behind `a || b` or two breaks)
// lanes gather: each comes with the number of its site (Sites), waits until all others have come to
// one or have returned, and goes on with those at the smallest. That is what the reference lowering
// does.
#pragma once

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/DenseSet.h>
#include <llvm/IR/Instructions.h>

namespace holdfast::cuda {

struct Convergence {
  // Lanes of the simdgroup at the start of the kernel; null: all 32.
  llvm::Value* everyone = nullptr;
  // By site (Sites); those that are not here: everyone.
  llvm::DenseMap<const llvm::Instruction*, llvm::Value*> masks;
  // Barriers of the threadgroup that some lanes of a simdgroup may not come to.
  llvm::DenseSet<const llvm::Instruction*> partial_barriers;
  bool gathers = false;
};

// Brings the kernel into normal form (widen/normal_form.h) when it has sites. `has_rows`: a
// simdgroup is 32 neighbours along x; `is_full`: it always has 32 threads.
Convergence find_convergence(llvm::Function& kernel, bool has_rows, bool is_full);

}  // namespace holdfast::cuda
