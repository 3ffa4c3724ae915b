// The places of a function where lanes of a simdgroup wait for each other.
//
// Sites are numbered so that every path visits them in rising order but for the back edges of
// loops: blocks in topological order, a loop's blocks next to each other, then the loop's back edge
// (only in loops in whose sites lanes of different turns could meet), then what follows the loop.
// When no lane of a simdgroup can run, those at the smallest site go on, as one operation. These
// are exactly the lanes that a mask would hold there.
#pragma once

#include <llvm/ADT/DenseMap.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/Dominators.h>

#include <cstdint>
#include <optional>

namespace holdfast::jit {

// Whether the instruction is a barrier or a cross-lane operation.
bool is_site(const llvm::Instruction& instruction);

class Sites {
 public:
  // Loops have one way in (LoopSimplify).
  Sites(llvm::Function& function, const llvm::LoopInfo& loops,
        const llvm::DominatorTree& dominators);

  uint32_t of(const llvm::Instruction& site) const { return numbers_.lookup(&site); }
  // The site on the back edges of the loop with this header, if lanes have to wait there.
  std::optional<uint32_t> end_of(const llvm::BasicBlock* header) const;
  uint32_t count() const { return count_; }

 private:
  llvm::DenseMap<const llvm::Instruction*, uint32_t> numbers_;
  llvm::DenseMap<const llvm::BasicBlock*, uint32_t> ends_;
  uint32_t count_ = 0;
};

}  // namespace holdfast::jit
