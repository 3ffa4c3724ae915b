#include "devices/cpu/jit/compiler/sites.h"

#include <llvm/ADT/DenseSet.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/CFG.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/Instructions.h>

#include <algorithm>
#include <vector>

#include "devices/cpu/jit/compiler/widen/intrinsics.h"

namespace holdfast::jit {
namespace {

using llvm::Value;

// The blocks in topological order, those of a loop next to each other. After each loop's blocks
// comes its header once more with `is_end` set: the place of its back edge.
struct Step {
  llvm::BasicBlock* block;
  bool is_end;
};
class StructuredOrder {
 public:
  explicit StructuredOrder(const llvm::LoopInfo& loops) : loops_(loops) {}

  std::vector<Step> run(llvm::Function& function) {
    visit(nullptr, &function.getEntryBlock());
    return std::move(steps_);
  }

 private:
  // The block that stands for `block` directly inside `inside`: itself, or the header of an inner
  // loop; null when it is outside.
  llvm::BasicBlock* representative(const llvm::Loop* inside, llvm::BasicBlock* block) const {
    const llvm::Loop* loop = loops_.getLoopFor(block);
    if (loop == inside) return block;
    while (loop && loop->getParentLoop() != inside) loop = loop->getParentLoop();
    return loop ? loop->getHeader() : nullptr;
  }

  void successors(const llvm::Loop* inside, llvm::BasicBlock* block,
                  llvm::SmallVectorImpl<llvm::BasicBlock*>& result) const {
    const llvm::Loop* inner = loops_.getLoopFor(block);
    llvm::SmallVector<llvm::BasicBlock*, 8> targets;
    if (inner == inside) {
      targets.append(llvm::succ_begin(block), llvm::succ_end(block));
    } else {
      while (inner->getParentLoop() != inside) inner = inner->getParentLoop();
      inner->getExitBlocks(targets);
    }
    for (llvm::BasicBlock* target : targets) {
      if (inside && target == inside->getHeader()) continue;
      if (llvm::BasicBlock* r = representative(inside, target)) result.push_back(r);
    }
  }

  void visit(const llvm::Loop* inside, llvm::BasicBlock* entry) {
    std::vector<llvm::BasicBlock*> finished;
    struct Frame {
      llvm::BasicBlock* block;
      llvm::SmallVector<llvm::BasicBlock*, 4> rest;
    };
    std::vector<Frame> stack;
    llvm::DenseSet<llvm::BasicBlock*> seen;
    auto push = [&](llvm::BasicBlock* block) {
      if (!seen.insert(block).second) return;
      stack.push_back({block, {}});
      successors(inside, block, stack.back().rest);
    };
    push(entry);
    while (!stack.empty()) {
      if (stack.back().rest.empty()) {
        finished.push_back(stack.back().block);
        stack.pop_back();
      } else {
        push(stack.back().rest.pop_back_val());
      }
    }
    for (auto block = finished.rbegin(); block != finished.rend(); ++block) {
      if (loops_.getLoopFor(*block) == inside) {
        steps_.push_back({*block, false});
      } else {
        const llvm::Loop* inner = loops_.getLoopFor(*block);
        while (inner->getParentLoop() != inside) inner = inner->getParentLoop();
        visit(inner, *block);
        steps_.push_back({*block, true});
      }
    }
  }

  const llvm::LoopInfo& loops_;
  std::vector<Step> steps_;
};

llvm::Loop* loop_of(const llvm::LoopInfo& loops, llvm::BasicBlock* header) {
  llvm::Loop* loop = loops.getLoopFor(header);
  while (loop->getHeader() != header) loop = loop->getParentLoop();
  return loop;
}

bool is_uniform(const Value* value, const llvm::Loop& loop, llvm::DenseSet<const Value*>& seen) {
  if (llvm::isa<llvm::ConstantInt>(value) || !seen.insert(value).second) return true;
  auto* instruction = llvm::dyn_cast<llvm::Instruction>(value);
  if (!instruction) return false;
  auto* phi = llvm::dyn_cast<llvm::PHINode>(instruction);
  if (phi) {
    // Of a loop that has one way in and one way round.
    const llvm::Loop* counted = &loop;
    while (counted && counted->getHeader() != phi->getParent()) counted = counted->getParentLoop();
    if (!counted || phi->getNumIncomingValues() != 2 || !counted->getLoopLatch()) return false;
  } else if (!llvm::isa<llvm::BinaryOperator, llvm::CastInst, llvm::ICmpInst>(instruction)) {
    return false;
  }
  return std::all_of(instruction->op_begin(), instruction->op_end(),
                     [&](const llvm::Use& use) { return is_uniform(use.get(), loop, seen); });
}

// Whether all lanes make the same number of turns: what decides comes from constants alone, and
// from what counts the turns of this loop and of those around it.
bool has_uniform_turns(const llvm::Loop& loop) {
  llvm::SmallVector<llvm::BasicBlock*, 4> exiting;
  loop.getExitingBlocks(exiting);
  llvm::DenseSet<const Value*> seen;
  return std::all_of(exiting.begin(), exiting.end(), [&](llvm::BasicBlock* block) {
    auto* branch = llvm::dyn_cast<llvm::BranchInst>(block->getTerminator());
    return branch && branch->isConditional() && is_uniform(branch->getCondition(), loop, seen);
  });
}

bool holds_site(const llvm::Loop& loop) {
  return std::any_of(loop.block_begin(), loop.block_end(), [](const llvm::BasicBlock* block) {
    return std::any_of(block->begin(), block->end(), is_site);
  });
}

// Whether lanes can be in different turns of the loop while they wait at its sites. Not when each
// turn comes by all of them, and by those of inner loops equally often: then those that are
// inside are always at one place, and those that have left wait behind the loop.
bool may_come_apart(const llvm::Loop& loop, const llvm::LoopInfo& loops,
                    const llvm::DominatorTree& dominators) {
  llvm::SmallVector<llvm::BasicBlock*, 4> latches;
  loop.getLoopLatches(latches);
  auto is_passed_each_turn = [&](const llvm::BasicBlock* block) {
    return std::all_of(latches.begin(), latches.end(), [&](const llvm::BasicBlock* latch) {
      return dominators.dominates(block, latch);
    });
  };
  for (llvm::BasicBlock* block : loop.blocks()) {
    if (loops.getLoopFor(block) != &loop) continue;
    if (std::any_of(block->begin(), block->end(), is_site) && !is_passed_each_turn(block))
      return true;
  }
  for (const llvm::Loop* inner : loop) {
    if (!holds_site(*inner)) continue;
    if (!is_passed_each_turn(inner->getHeader()) || !has_uniform_turns(*inner) ||
        may_come_apart(*inner, loops, dominators))
      return true;
  }
  return false;
}

}  // namespace

bool is_site(const llvm::Instruction& instruction) {
  std::optional<msl::Intrinsic> intrinsic = kernel_intrinsic(instruction);
  return intrinsic && behaviour_of(*intrinsic) >= Behaviour::cross_lane;
}

Sites::Sites(llvm::Function& function, const llvm::LoopInfo& loops,
             const llvm::DominatorTree& dominators) {
  for (const Step& step : StructuredOrder(loops).run(function)) {
    if (!step.is_end) {
      for (const llvm::Instruction& instruction : *step.block) {
        if (is_site(instruction)) numbers_[&instruction] = count_++;
      }
    } else if (const llvm::Loop& loop = *loop_of(loops, step.block);
               holds_site(loop) && may_come_apart(loop, loops, dominators)) {
      ends_[step.block] = count_++;
    }
  }
}

std::optional<uint32_t> Sites::end_of(const llvm::BasicBlock* header) const {
  auto found = ends_.find(header);
  return found == ends_.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace holdfast::jit
