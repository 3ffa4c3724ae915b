// The order in which the blocks of the masked version run, and what may wait meanwhile.
//
// Lanes that part wait: each block has a mask of lanes that are to run it, and the blocks run in
// one fixed order (loops in one piece, topological without back edges), each skipped when no lane
// waits for it. A block's waiting set is what may be pending when it ends: then the next block is
// the first one with lanes, in order. Where nothing can be pending, a branch that is the same for
// all lanes stays a plain jump. (After partial control-flow linearisation, Moll and Hack, PLDI
// 2018, with a skip for each empty mask.)
#pragma once

#include <llvm/ADT/BitVector.h>
#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/Analysis/LoopInfo.h>

#include <vector>

#include "devices/cpu/jit/compiler/widen/shapes.h"

namespace holdfast::jit {

class Linearisation {
 public:
  Linearisation(llvm::Function& function, ControlFlow& flow, const Shapes& shapes);

  const std::vector<llvm::BasicBlock*>& order() const { return order_; }
  // What may be pending when `block` ends, without what its own branch adds.
  bool may_wait(const llvm::BasicBlock* block, const llvm::BasicBlock* waiting) const;
  // The targets to try, in this order, when lanes go from `block` to `to` (one or two blocks).
  std::vector<llvm::BasicBlock*> targets(llvm::BasicBlock* block,
                                         llvm::ArrayRef<llvm::BasicBlock*> to) const;
  // The block whose mask this one shares: it dominates it, and every lane that runs it comes here.
  llvm::BasicBlock* same_mask(llvm::BasicBlock* block) const;

 private:
  void visit(const llvm::Loop* loop, llvm::ArrayRef<llvm::BasicBlock*> blocks);
  bool flow_through(llvm::BasicBlock* block);
  static bool reaches_latch(llvm::BasicBlock* from, llvm::BasicBlock* without,
                            const llvm::Loop& loop);
  bool defer(llvm::ArrayRef<llvm::BasicBlock*> targets);

  ControlFlow& flow_;
  const Shapes& shapes_;
  std::vector<llvm::BasicBlock*> order_;
  llvm::DenseMap<const llvm::BasicBlock*, unsigned> index_;
  std::vector<llvm::BitVector> waiting_;  // by index: later blocks that may be pending
};

}  // namespace holdfast::jit
