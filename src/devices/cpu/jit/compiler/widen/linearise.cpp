#include "devices/cpu/jit/compiler/widen/linearise.h"

#include <llvm/ADT/PostOrderIterator.h>
#include <llvm/IR/CFG.h>
#include <llvm/IR/Instructions.h>

#include <algorithm>

namespace holdfast::jit {

Linearisation::Linearisation(llvm::Function& function, ControlFlow& flow, const Shapes& shapes)
    : flow_(flow), shapes_(shapes) {
  llvm::ReversePostOrderTraversal<llvm::Function*> reverse(&function);
  std::vector<llvm::BasicBlock*> blocks(reverse.begin(), reverse.end());
  visit(nullptr, blocks);
  for (unsigned i = 0; i < order_.size(); ++i) index_[order_[i]] = i;
  waiting_.assign(order_.size(), llvm::BitVector(static_cast<unsigned>(order_.size())));
  // What waits around a back edge waits in the header too: until nothing is added.
  for (bool changed = true; changed;) {
    changed = false;
    for (llvm::BasicBlock* block : order_) changed |= flow_through(block);
  }
}

// A loop's blocks follow its header at once.
void Linearisation::visit(const llvm::Loop* loop, llvm::ArrayRef<llvm::BasicBlock*> blocks) {
  for (llvm::BasicBlock* block : blocks) {
    const llvm::Loop* innermost = flow_.loops.getLoopFor(block);
    if (innermost == loop) {
      order_.push_back(block);
    } else if (innermost && innermost->getHeader() == block && innermost->getParentLoop() == loop) {
      std::vector<llvm::BasicBlock*> inner;
      for (llvm::BasicBlock* other : blocks) {
        if (innermost->contains(other)) inner.push_back(other);
      }
      visit(innermost, inner);
    }
  }
}

bool Linearisation::may_wait(const llvm::BasicBlock* block, const llvm::BasicBlock* waiting) const {
  return waiting_[index_.lookup(block)].test(index_.lookup(waiting));
}

std::vector<llvm::BasicBlock*> Linearisation::targets(llvm::BasicBlock* block,
                                                      llvm::ArrayRef<llvm::BasicBlock*> to) const {
  unsigned own = index_.lookup(block);
  llvm::BitVector all = waiting_[own];
  std::vector<llvm::BasicBlock*> result;
  for (llvm::BasicBlock* target : to) {
    unsigned i = index_.lookup(target);
    // The back edge: first, since all that waits is outside the loop.
    if (i <= own) {
      result.push_back(target);
    } else {
      all.set(i);
    }
  }
  for (unsigned i : all.set_bits()) result.push_back(order_[i]);
  return result;
}

bool Linearisation::flow_through(llvm::BasicBlock* block) {
  llvm::SmallVector<llvm::BasicBlock*, 2> next(llvm::succ_begin(block), llvm::succ_end(block));
  if (next.empty()) return false;
  bool changed = false;
  if (shapes_.branch_varies(block)) return defer(targets(block, next));
  for (llvm::BasicBlock* target : next) {
    std::vector<llvm::BasicBlock*> all = targets(block, target);
    // All lanes go to `target`, so nothing after it is tried.
    changed |= defer(all);
  }
  return changed;
}

bool Linearisation::defer(llvm::ArrayRef<llvm::BasicBlock*> targets) {
  bool changed = false;
  llvm::BitVector later(static_cast<unsigned>(order_.size()));
  for (llvm::BasicBlock* target : llvm::reverse(targets)) {
    llvm::BitVector& waiting = waiting_[index_.lookup(target)];
    // Some that do not wait there yet.
    if (later.test(waiting)) {
      waiting |= later;
      changed = true;
    }
    later.set(index_.lookup(target));
  }
  return changed;
}

llvm::BasicBlock* Linearisation::same_mask(llvm::BasicBlock* block) const {
  const llvm::Loop* loop = flow_.loops.getLoopFor(block);
  auto* node = flow_.dominators.getNode(block)->getIDom();
  while (node && flow_.loops.getLoopFor(node->getBlock()) != loop) node = node->getIDom();
  if (!node) return nullptr;
  llvm::BasicBlock* above = node->getBlock();
  if (!flow_.post_dominators.dominates(block, above)) return nullptr;
  // In the same iteration: no way from there to the back edge leaves this block out.
  if (loop && reaches_latch(above, block, *loop)) return nullptr;
  return above;
}

bool Linearisation::reaches_latch(llvm::BasicBlock* from, llvm::BasicBlock* without,
                                  const llvm::Loop& loop) {
  llvm::SmallVector<llvm::BasicBlock*, 16> rest{from};
  llvm::DenseSet<llvm::BasicBlock*> seen{from};
  while (!rest.empty()) {
    llvm::BasicBlock* block = rest.pop_back_val();
    for (llvm::BasicBlock* next : llvm::successors(block)) {
      if (next == loop.getHeader()) return true;
      if (next == without || !loop.contains(next) || !seen.insert(next).second) continue;
      rest.push_back(next);
    }
  }
  return false;
}

}  // namespace holdfast::jit
