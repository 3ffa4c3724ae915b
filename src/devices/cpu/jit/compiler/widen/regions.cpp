#include "devices/cpu/jit/compiler/widen/regions.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/DenseSet.h>
#include <llvm/ADT/SetVector.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/Module.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>
#include <llvm/Transforms/Utils/Cloning.h>
#include <llvm/Transforms/Utils/PromoteMemToReg.h>
#include <llvm/Transforms/Utils/SSAUpdater.h>

#include <stdexcept>
#include <vector>

#include "devices/cpu/jit/compiler/widen/describe.h"
#include "devices/cpu/jit/compiler/widen/emitter.h"

namespace holdfast::jit {
namespace {

using llvm::BasicBlock;
using llvm::cast;
using llvm::dyn_cast;
using llvm::Instruction;
using llvm::isa;
using llvm::Value;

constexpr uint32_t finished_state = ~0u;

class Cutter {
 public:
  Cutter(GroupFunction& group, const Growth& growth)
      : group_(group),
        growth_(growth),
        function_(*group.function),
        b_(group.function->getContext()) {}

  void run() {
    find_prologue();
    split_blocks();
    find_live();
    // At each cut what is live is stored and loaded.
    uint64_t size = Growth::size_of(function_);
    for (const Cut& cut : cuts_) size += 2 * cut.live.size();
    growth_.check(size);
    find_reachable();
    write_rounds();
    for (size_t k = 0; k < cuts_.size(); ++k) write_cut(k);
    for (auto& [value, place] : slots_) rewrite_uses(value);
    growth_.check(Growth::size_of(function_));
    llvm::DominatorTree dominators(function_);
    llvm::PromoteMemToReg({waiting_, first_round_}, dominators);
  }

 private:
  struct Cut {
    BasicBlock* before = nullptr;
    BasicBlock* after = nullptr;
    BasicBlock* resume = nullptr;
    llvm::SetVector<Instruction*> live;
    llvm::DenseMap<Instruction*, Value*> restored;
  };

  // Blocks that run for every simdgroup in every round: their values are at hand everywhere.
  void find_prologue() {
    llvm::DominatorTree dominators(function_);
    for (BasicBlock& block : function_) {
      if (dominators.properlyDominates(&block, group_.start)) prologue_.insert(&block);
    }
  }

  void split_blocks() {
    llvm::SmallVector<llvm::CallInst*, 8> barriers;
    for (Instruction& instruction : llvm::instructions(function_)) {
      auto* call = dyn_cast<llvm::CallInst>(&instruction);
      if (call && call->getCalledFunction() == group_.barrier) barriers.push_back(call);
    }
    for (llvm::CallInst* barrier : barriers) {
      BasicBlock* before = barrier->getParent();
      BasicBlock* after =
          before->splitBasicBlock(barrier->getNextNode(), before->getName() + ".resumed");
      barrier->eraseFromParent();
      cuts_.emplace_back();
      cuts_.back().before = before;
      cuts_.back().after = after;
    }
    // `before` of an earlier cut may have been split again: its end is what counts.
    for (Cut& cut : cuts_) cut.before = cut.after->getSinglePredecessor();
  }

  bool is_at_hand(const Value* value) const {
    auto* instruction = dyn_cast<Instruction>(value);
    return !instruction || prologue_.contains(instruction->getParent());
  }

  // What is live at each cut, found from the uses backwards.
  void find_live() {
    llvm::DenseMap<BasicBlock*, Cut*> cut_after;
    for (Cut& cut : cuts_) cut_after[cut.after] = &cut;
    for (Instruction& value : llvm::instructions(function_)) {
      if (value.getType()->isVoidTy() || is_at_hand(&value)) continue;
      llvm::SmallVector<BasicBlock*, 16> rest;
      llvm::DenseSet<BasicBlock*> seen;
      auto add = [&](BasicBlock* live_at_end) {
        if (live_at_end != value.getParent()) rest.push_back(live_at_end);
      };
      for (llvm::Use& use : value.uses()) {
        auto* user = cast<Instruction>(use.getUser());
        if (auto* phi = dyn_cast<llvm::PHINode>(user)) {
          add(phi->getIncomingBlock(use));
        } else {
          add(user->getParent());
        }
      }
      while (!rest.empty()) {
        BasicBlock* block = rest.pop_back_val();
        if (!seen.insert(block).second) continue;
        if (auto found = cut_after.find(block); found != cut_after.end())
          found->second->live.insert(&value);
        for (BasicBlock* before : llvm::predecessors(block)) add(before);
      }
    }
  }

  // Which blocks a simdgroup can come to from a block without a barrier between.
  void find_reachable() {
    for (Cut& cut : cuts_) cut_before_.insert(cut.before);
  }
  bool reaches(BasicBlock* from, BasicBlock* to) {
    auto [found, fresh] = reachable_.try_emplace(from);
    if (fresh) {
      llvm::SmallVector<BasicBlock*, 16> rest{from};
      llvm::DenseSet<BasicBlock*> seen{from};
      while (!rest.empty()) {
        BasicBlock* block = rest.pop_back_val();
        if (cut_before_.contains(block) || block == group_.next || block == group_.done) continue;
        for (BasicBlock* next : llvm::successors(block)) {
          if (seen.insert(next).second) rest.push_back(next);
        }
      }
      reachable_[from] = std::move(seen);
    }
    return reachable_[from].contains(to);
  }

  void write_rounds() {
    llvm::LLVMContext& context = function_.getContext();
    BasicBlock& entry = function_.getEntryBlock();
    b_.SetInsertPoint(&entry, entry.begin());
    waiting_ = b_.CreateAlloca(b_.getInt1Ty(), nullptr, "waiting");
    first_round_ = b_.CreateAlloca(b_.getInt1Ty(), nullptr, "first_round");
    b_.SetInsertPoint(group_.group->getTerminator());
    b_.CreateStore(b_.getFalse(), waiting_);
    b_.CreateStore(b_.getTrue(), first_round_);

    // Every way out of the body but for barriers ends the simdgroup.
    BasicBlock* finished = BasicBlock::Create(context, "finished", &function_, group_.next);
    llvm::SmallVector<BasicBlock*, 8> ends(llvm::predecessors(group_.next));
    for (BasicBlock* end : ends) end->getTerminator()->replaceSuccessorWith(group_.next, finished);
    b_.SetInsertPoint(finished);
    b_.CreateStore(b_.getInt32(finished_state), group_.frame);
    b_.CreateBr(group_.next);

    BasicBlock* dispatch = group_.start->getSinglePredecessor();
    Instruction* jump = dispatch->getTerminator();
    b_.SetInsertPoint(jump);
    Value* state = b_.CreateLoad(b_.getInt32Ty(), group_.frame);
    Value* first = b_.CreateLoad(b_.getInt1Ty(), first_round_);
    states_ = b_.CreateSwitch(b_.CreateSelect(first, b_.getInt32(0), state), group_.next);
    states_->addCase(b_.getInt32(0), group_.start);
    jump->eraseFromParent();

    // The end of a round: another one if someone waits.
    auto* end = cast<llvm::BranchInst>(group_.next->getTerminator());
    BasicBlock* round = BasicBlock::Create(context, "round", &function_, group_.done);
    BasicBlock* again = BasicBlock::Create(context, "round.again", &function_, group_.done);
    end->setSuccessor(1, round);
    b_.SetInsertPoint(round);
    b_.CreateCondBr(b_.CreateLoad(b_.getInt1Ty(), waiting_), again, group_.done);
    b_.SetInsertPoint(again);
    b_.CreateStore(b_.getFalse(), waiting_);
    b_.CreateStore(b_.getFalse(), first_round_);
    b_.CreateBr(group_.head);
    group_.simdgroup->addIncoming(b_.getInt32(0), again);
  }

  Value* slot(Instruction* value, bool save) {
    auto [found, fresh] = slots_.try_emplace(value, 0);
    if (fresh) {
      const llvm::DataLayout& layout = function_.getParent()->getDataLayout();
      uint64_t bytes = layout.getTypeStoreSize(value->getType());
      group_.frame_bytes =
          llvm::alignTo(group_.frame_bytes, value->getType()->isVectorTy() && bytes >= 32 ? 64 : 8);
      found->second = group_.frame_bytes;
      group_.frame_bytes += bytes;
    }
    (void)save;
    return b_.CreateConstInBoundsGEP1_64(b_.getInt8Ty(), group_.frame, slots_.lookup(value));
  }

  // Cheap to compute again from what is at hand.
  bool is_cheap(Value* value, int depth) const {
    if (is_at_hand(value)) return true;
    if (depth == 0) return false;
    auto* instruction = cast<Instruction>(value);
    if (!isa<llvm::BinaryOperator, llvm::CastInst, llvm::GetElementPtrInst, llvm::InsertElementInst,
             llvm::ShuffleVectorInst, llvm::CmpInst, llvm::FreezeInst>(instruction))
      return false;
    if (instruction->isIntDivRem() || instruction->getType()->isFPOrFPVectorTy() ||
        isa<llvm::FreezeInst>(instruction))
      return false;
    return llvm::all_of(instruction->operands(),
                        [&](Value* operand) { return is_cheap(operand, depth - 1); });
  }

  Value* compute_again(Value* value, Cut& cut) {
    if (is_at_hand(value)) return value;
    auto* instruction = cast<Instruction>(value);
    Value*& made = cut.restored[instruction];
    if (made) return made;
    Instruction* copy = instruction->clone();
    for (llvm::Use& operand : copy->operands()) operand.set(compute_again(operand.get(), cut));
    b_.Insert(copy);
    cut.restored[instruction] = copy;
    return copy;
  }

  void write_cut(size_t k) {
    constexpr int cheap_depth = 5;
    Cut& cut = cuts_[k];
    cut.resume = BasicBlock::Create(function_.getContext(), "resume", &function_, cut.after);
    Instruction* jump = cut.before->getTerminator();
    // To go on: what was live.
    b_.SetInsertPoint(cut.resume);
    llvm::SmallVector<Instruction*, 32> saved;
    for (Instruction* value : cut.live) {
      if (is_cheap(value, cheap_depth)) {
        compute_again(value, cut);
        recomputed_.insert(value);
      } else {
        Value* place = slot(value, false);
        cut.restored[value] = b_.CreateAlignedLoad(value->getType(), place, alignment(value));
        saved.push_back(value);
      }
    }
    b_.CreateBr(cut.after);
    // To stop: what was not kept at an earlier barrier.
    b_.SetInsertPoint(jump);
    for (Instruction* value : saved) {
      if (reaches(value->getParent(), cut.before))
        b_.CreateAlignedStore(value, slot(value, true), alignment(value));
    }
    b_.CreateStore(b_.getInt32(static_cast<uint32_t>(k) + 1), group_.frame);
    b_.CreateStore(b_.getTrue(), waiting_);
    b_.CreateBr(group_.next);
    jump->eraseFromParent();
    states_->addCase(b_.getInt32(static_cast<uint32_t>(k) + 1), cut.resume);
    if (k + 1 == cuts_.size()) {
      for (Instruction* value : recomputed_) slots_.try_emplace(value, 0);
    }
  }

  static llvm::Align alignment(const Instruction* value) {
    return llvm::Align(
        value->getType()->isVectorTy() && value->getType()->getPrimitiveSizeInBits() >= 256 ? 64
                                                                                            : 8);
  }

  void rewrite_uses(Instruction* value) {
    llvm::SmallVector<llvm::PHINode*, 16> made;
    llvm::SSAUpdater updater(&made);
    updater.Initialize(value->getType(), value->getName());
    updater.AddAvailableValue(value->getParent(), value);
    for (Cut& cut : cuts_) {
      if (auto found = cut.restored.find(value);
          found != cut.restored.end() && cut.live.contains(value)) {
        updater.AddAvailableValue(cut.resume, found->second);
      }
    }
    llvm::SmallVector<llvm::Use*, 16> uses;
    for (llvm::Use& use : value->uses()) uses.push_back(&use);
    for (llvm::Use* use : uses) {
      auto* user = cast<Instruction>(use->getUser());
      if (!isa<llvm::PHINode>(user) && user->getParent() == value->getParent()) continue;
      updater.RewriteUse(*use);
    }
    // On each way to a use the value was computed or restored: nothing comes from before.
    for (llvm::PHINode* phi : made) {
      bool misses = llvm::any_of(phi->incoming_values(),
                                 [](Value* incoming) { return isa<llvm::UndefValue>(incoming); });
      if (misses)
        throw std::logic_error("a value is missing: " + describe(*value) +
                               " is not kept across a barrier");
    }
  }

  GroupFunction& group_;
  const Growth& growth_;
  llvm::Function& function_;
  llvm::IRBuilder<> b_;
  std::vector<Cut> cuts_;
  llvm::DenseSet<BasicBlock*> prologue_, cut_before_;
  llvm::DenseMap<BasicBlock*, llvm::DenseSet<BasicBlock*>> reachable_;
  llvm::MapVector<Instruction*, uint64_t> slots_;
  llvm::SetVector<Instruction*> recomputed_;
  llvm::AllocaInst *waiting_ = nullptr, *first_round_ = nullptr;
  llvm::SwitchInst* states_ = nullptr;
};

void settle_frame_size(Instruction* placeholder, uint64_t bytes) {
  placeholder->replaceAllUsesWith(llvm::ConstantInt::get(placeholder->getType(), bytes));
  placeholder->eraseFromParent();
}

void erase_barriers(llvm::Function& function, llvm::Function* barrier) {
  for (Instruction& instruction : llvm::make_early_inc_range(llvm::instructions(function))) {
    auto* call = dyn_cast<llvm::CallInst>(&instruction);
    if (call && call->getCalledFunction() == barrier) call->eraseFromParent();
  }
}

}  // namespace

void cut_at_barriers(GroupFunction& group, const Growth& growth) {
  // Beyond, compiling it twice would cost more than a few stores and loads at each barrier.
  constexpr size_t most_to_copy = 1200;
  if (!group.barrier) {
    group.frame_bytes = llvm::alignTo(group.frame_bytes, 128);
    settle_frame_size(group.frame_size, group.frame_bytes);
    return;
  }
  llvm::Function* alone = nullptr;
  Instruction* alone_frame_size = nullptr;
  if (group.function->getInstructionCount() <= most_to_copy) {
    llvm::ValueToValueMapTy copies;
    alone = llvm::CloneFunction(group.function, copies);
    alone->setName(group.function->getName() + ".alone");
    alone->setLinkage(llvm::GlobalValue::InternalLinkage);
    alone->addFnAttr(llvm::Attribute::NoInline);
    alone_frame_size = cast<Instruction>(copies[group.frame_size]);
    erase_barriers(*alone, group.barrier);
  }
  Cutter(group, growth).run();
  group.frame_bytes = llvm::alignTo(group.frame_bytes, 128);
  settle_frame_size(group.frame_size, group.frame_bytes);
  if (alone) {
    settle_frame_size(alone_frame_size, group.frame_bytes);
    BasicBlock* old = &group.function->getEntryBlock();
    BasicBlock* rest = old->splitBasicBlock(old->getTerminator(), "several");
    auto* one = BasicBlock::Create(old->getContext(), "one", group.function, rest);
    old->getTerminator()->eraseFromParent();
    llvm::IRBuilder<> b(old);
    b.CreateCondBr(b.CreateICmpEQ(group.simdgroups, b.getInt32(1)), one, rest);
    b.SetInsertPoint(one);
    b.CreateCall(alone, {group.function->getArg(0)})->setTailCall();
    b.CreateRetVoid();
  }
  group.barrier->eraseFromParent();
  group.barrier = nullptr;
}

}  // namespace holdfast::jit
