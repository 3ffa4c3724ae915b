// Finds values that are read where they never arrive, before a kernel stores to wrong addresses.
//
// A variable of the emitter holds nothing until it is stored to. Promoting it to SSA makes poison
// of that, and poison folds: `sext i32 poison` is whatever the optimiser likes. So a variable
// starts with a marker instead. On some way a marker may come to a phi, or to a select that adds
// lanes to those that have come before: blocks that are skipped store nothing, and what they would
// have stored is not looked at. Anywhere else it is a value that is missing on every way.
#pragma once

#include <llvm/ADT/MapVector.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/Instructions.h>

#include <string>

namespace holdfast::jit {

class MissingValues {
 public:
  // What `variable`, an alloca of the entry block, holds before the first store. One marker per
  // variable.
  llvm::Instruction* marker_of(llvm::AllocaInst* variable);
  // After the variables have been promoted: throws std::logic_error that names the value and its
  // reader. Then the markers are poison and gone, and the phis that they kept apart are folded.
  void check_and_erase(llvm::DominatorTree& dominators);

 private:
  llvm::SmallVector<std::pair<llvm::Instruction*, std::string>, 64> markers_;
};

}  // namespace holdfast::jit
