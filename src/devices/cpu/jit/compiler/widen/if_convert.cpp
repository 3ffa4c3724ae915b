#include "devices/cpu/jit/compiler/widen/if_convert.h"

#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>

namespace holdfast::jit {
namespace {

using llvm::BasicBlock;
using llvm::Instruction;

// What both sides together may cost. A divergent branch costs a few masks, jumps and blends; a
// uniform one next to nothing, and which it is, is not known here.
constexpr unsigned most_instructions = 16;

bool may_run_anywhere(const Instruction& instruction) {
  if (llvm::isa<llvm::PHINode>(instruction) || instruction.getType()->isTokenTy()) return false;
  // Divisions are slow and loads may fault: those stay where they are.
  switch (instruction.getOpcode()) {
    case Instruction::SDiv:
    case Instruction::UDiv:
    case Instruction::SRem:
    case Instruction::URem:
    case Instruction::FDiv:
    case Instruction::FRem:
    case Instruction::Load:
    case Instruction::Alloca:
      return false;
    case Instruction::Call:
      if (!llvm::isa<llvm::IntrinsicInst>(instruction)) return false;
      break;
    default:
      break;
  }
  return llvm::isSafeToSpeculativelyExecute(&instruction);
}

// A side of a branch at `from` that goes on to `join`: an empty one is the edge itself.
struct Side {
  BasicBlock* block = nullptr;  // null: the edge from `from`
  BasicBlock* join = nullptr;
  unsigned cost = 0;
  bool is_simple = false;
};

Side side_of(BasicBlock* from, BasicBlock* to) {
  Side side;
  if (to->getSinglePredecessor() != from || !to->getSingleSuccessor())
    return {nullptr, to, 0, true};
  side.block = to;
  side.join = to->getSingleSuccessor();
  for (const Instruction& instruction : *to) {
    if (instruction.isTerminator() || instruction.isDebugOrPseudoInst()) continue;
    if (!may_run_anywhere(instruction)) return side;
    ++side.cost;
  }
  side.is_simple = true;
  return side;
}

bool convert(BasicBlock& block) {
  auto* branch = llvm::dyn_cast<llvm::BranchInst>(block.getTerminator());
  if (!branch || !branch->isConditional() || branch->getSuccessor(0) == branch->getSuccessor(1))
    return false;
  Side taken = side_of(&block, branch->getSuccessor(0)),
       other = side_of(&block, branch->getSuccessor(1));
  // One side may be empty: then the other one's join is where it leads.
  if (taken.block && !other.block && taken.join != other.join) return false;
  if (!taken.block && other.block && other.join != taken.join) return false;
  if (!taken.block && !other.block) return false;
  if (!taken.is_simple || !other.is_simple || taken.join != other.join || taken.join == &block)
    return false;
  BasicBlock* join = taken.join;
  auto selects = static_cast<unsigned>(std::distance(join->phis().begin(), join->phis().end()));
  if (taken.cost + other.cost + selects > most_instructions) return false;

  for (BasicBlock* side : {taken.block, other.block}) {
    if (!side) continue;
    for (Instruction& instruction : llvm::make_early_inc_range(*side)) {
      if (instruction.isTerminator()) break;
      instruction.dropUBImplyingAttrsAndMetadata();
      instruction.moveBefore(branch);
    }
  }
  llvm::IRBuilder<> builder(branch);
  BasicBlock* taken_from = taken.block ? taken.block : &block;
  BasicBlock* other_from = other.block ? other.block : &block;
  for (llvm::PHINode& phi : join->phis()) {
    llvm::Value* yes = phi.getIncomingValueForBlock(taken_from);
    llvm::Value* no = phi.getIncomingValueForBlock(other_from);
    llvm::Value* chosen =
        yes == no ? yes : builder.CreateSelect(branch->getCondition(), yes, no, phi.getName());
    for (BasicBlock* gone : {taken.block, other.block}) {
      if (gone) phi.removeIncomingValue(gone, false);
    }
    if (int place = phi.getBasicBlockIndex(&block); place >= 0) {
      phi.setIncomingValue(static_cast<unsigned>(place), chosen);
    } else {
      phi.addIncoming(chosen, &block);
    }
  }
  builder.CreateBr(join);
  branch->eraseFromParent();
  for (BasicBlock* side : {taken.block, other.block}) {
    if (!side) continue;
    side->getTerminator()->eraseFromParent();
    side->eraseFromParent();
  }
  return true;
}

}  // namespace

void if_convert(llvm::Function& function) {
  bool changed = true;
  while (changed) {
    changed = false;
    for (BasicBlock& block : function) {
      if (convert(block)) {
        // What was the join may now be the end of this block, and a side of another branch.
        llvm::MergeBlockIntoPredecessor(block.getSingleSuccessor());
        changed = true;
        break;
      }
    }
  }
}

}  // namespace holdfast::jit
