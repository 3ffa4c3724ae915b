// Where lanes part and meet again: varying branches, the joins behind them, the loops that lanes
// leave in different iterations.
#include <llvm/IR/CFG.h>
#include <llvm/IR/Instructions.h>

#include "devices/cpu/jit/compiler/widen/shapes.h"

namespace holdfast::jit {

using llvm::dyn_cast;

ControlFlow::ControlFlow(llvm::Function& function)
    : dominators(function), post_dominators(function), loops(dominators) {}

bool Shapes::propagate_control() {
  size_t before = joins_.size() + varying_loops_.size() + varying_branches_.size();
  for (llvm::BasicBlock& block : function_) {
    auto* branch = dyn_cast<llvm::BranchInst>(block.getTerminator());
    if (!branch || !branch->isConditional() || varying_branches_.contains(&block)) continue;
    if (of(branch->getCondition()).kind != Shape::varying) continue;
    varying_branches_.insert(&block);
    llvm::SmallVector<const llvm::BasicBlock*, 2> starts(llvm::succ_begin(&block),
                                                         llvm::succ_end(&block));
    part_to(starts, flow_.loops.getLoopFor(&block));
  }
  return joins_.size() + varying_loops_.size() + varying_branches_.size() != before;
}

// Lanes part where `starts` begin: at the end of a block, or when they leave a loop one after the
// other. Follows them within one iteration of the loops around, `inside` the innermost.
void Shapes::part_to(llvm::ArrayRef<const llvm::BasicBlock*> starts, const llvm::Loop* inside) {
  Labels labels = mark_joins(starts);
  for (const llvm::Loop* loop = inside; loop; loop = loop->getParentLoop()) {
    if (varying_loops_.contains(loop) || !parts_in(*loop, starts, labels)) continue;
    varying_loops_.insert(loop);
    llvm::SmallVector<llvm::BasicBlock*, 8> exits;
    loop->getUniqueExitBlocks(exits);
    llvm::SmallVector<const llvm::BasicBlock*, 8> exit_starts(exits.begin(), exits.end());
    part_to(exit_starts, loop->getParentLoop());
  }
}

// Whether lanes can be in different places when an iteration ends, some of them outside.
bool Shapes::parts_in(const llvm::Loop& loop, llvm::ArrayRef<const llvm::BasicBlock*> starts,
                      const Labels& labels) const {
  const llvm::BasicBlock* first = nullptr;
  bool differ = false, leaves = false;
  auto end = [&](const llvm::BasicBlock* target, const llvm::BasicBlock* label) {
    if (loop.contains(target) && target != loop.getHeader()) return;
    leaves |= !loop.contains(target);
    differ |= first && first != label;
    first = label;
  };
  for (const llvm::BasicBlock* start : starts) end(start, start);
  for (const llvm::BasicBlock* block : loop.blocks()) {
    auto label = labels.find(block);
    if (label == labels.end()) continue;
    for (const llvm::BasicBlock* next : llvm::successors(block)) end(next, label->second);
  }
  return differ && leaves;
}

// Each block's label is the last block that all ways to it have in common: a start, or a join,
// where two of the starts arrive by ways that have no block in common.
Shapes::Labels Shapes::mark_joins(llvm::ArrayRef<const llvm::BasicBlock*> starts) {
  Labels labels;
  for (const llvm::BasicBlock* start : starts) {
    if (!labels.try_emplace(start, start).second) joins_.insert(start);
  }
  llvm::DenseSet<const llvm::BasicBlock*> done;
  for (const llvm::BasicBlock* block : order_) {
    done.insert(block);
    auto found = labels.find(block);
    if (found == labels.end()) continue;
    const llvm::BasicBlock* own = found->second;
    for (const llvm::BasicBlock* next : llvm::successors(block)) {
      if (done.contains(next)) continue;  // a back edge
      auto [place, fresh] = labels.try_emplace(next, own);
      if (fresh || place->second == own) continue;
      place->second = next;
      joins_.insert(next);
    }
  }
  return labels;
}

}  // namespace holdfast::jit
