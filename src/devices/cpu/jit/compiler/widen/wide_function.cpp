#include "devices/cpu/jit/compiler/widen/wide_function.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/PostOrderIterator.h>
#include <llvm/Analysis/PostDominators.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/Module.h>

#include "devices/cpu/jit/compiler/widen/cross_lane.h"
#include "devices/cpu/jit/compiler/widen/operations.h"
#include "devices/cpu/jit/kernel_abi.h"

namespace holdfast::jit {
namespace {

using llvm::BasicBlock;
using llvm::dyn_cast;
using llvm::Instruction;
using llvm::isa;
using llvm::Value;

// Blocks one after the other, each under the mask of the lanes that come there.
class FunctionWriter {
 public:
  FunctionWriter(llvm::Function& shared, llvm::Function& made, InstructionSet set)
      : shared_(shared), made_(made), b_(shared.getContext()), lanes_(b_, set) {}

  void run() {
    llvm::PostDominatorTree always(shared_);
    BasicBlock* entry = &shared_.getEntryBlock();
    for (llvm::Argument& argument : shared_.args())
      values_[&argument] = made_.getArg(argument.getArgNo());
    if (made_.arg_size() > shared_.arg_size())
      mask_ = made_.getArg(static_cast<unsigned>(shared_.arg_size()));
    b_.SetInsertPoint(BasicBlock::Create(shared_.getContext(), "entry", &made_));
    llvm::ReversePostOrderTraversal<llvm::Function*> order(&shared_);
    for (BasicBlock* block : order) {
      // All lanes that are on come to a block that every way leads to.
      if (always.dominates(block, entry)) {
        masks_[block] = mask_;
        write(*block);
      } else {
        write_guarded(*block);
      }
    }
  }

 private:
  Value* vector_of(Value* value) {
    if (auto* constant = dyn_cast<llvm::Constant>(value)) return lanes_.splat(constant);
    return values_.lookup(value);
  }

  // The lanes that go from one block to another.
  Value* edge_mask(BasicBlock* from, BasicBlock* to) {
    auto* branch = llvm::cast<llvm::BranchInst>(from->getTerminator());
    Value* mask = masks_.lookup(from);
    if (branch->isUnconditional() || branch->getSuccessor(0) == branch->getSuccessor(1))
      return mask;
    Value* condition = b_.CreateFreeze(vector_of(branch->getCondition()));
    if (branch->getSuccessor(1) == to) condition = b_.CreateNot(condition);
    return b_.CreateAnd(mask, condition);
  }

  // Skipped when no lane comes here.
  void write_guarded(BasicBlock& block) {
    Value* mask = nullptr;
    for (BasicBlock* from : llvm::predecessors(&block)) {
      Value* edge = edge_mask(from, &block);
      mask = mask ? b_.CreateOr(mask, edge) : edge;
    }
    masks_[&block] = mask;
    BasicBlock* before = b_.GetInsertBlock();
    auto* inside = BasicBlock::Create(shared_.getContext(), "lanes", &made_);
    auto* after = BasicBlock::Create(shared_.getContext(), "", &made_);
    b_.CreateCondBr(lanes_.any(mask), inside, after);
    b_.SetInsertPoint(inside);
    write(block);
    BasicBlock* end = b_.GetInsertBlock();
    b_.CreateBr(after);
    b_.SetInsertPoint(after);
    for (Instruction& instruction : block) {
      // The condition of its branch is looked at where the next blocks begin.
      bool is_needed = llvm::any_of(instruction.users(), [&](const llvm::User* user) {
        auto* use = llvm::cast<Instruction>(user);
        return use->getParent() != &block || use->isTerminator();
      });
      if (!is_needed) continue;
      Value*& value = values_[&instruction];
      llvm::PHINode* merged = b_.CreatePHI(value->getType(), 2);
      merged->addIncoming(llvm::PoisonValue::get(value->getType()), before);
      merged->addIncoming(value, end);
      value = merged;
    }
  }

  void write(BasicBlock& block) {
    for (Instruction& instruction : block) {
      if (auto* phi = dyn_cast<llvm::PHINode>(&instruction)) {
        values_[phi] = choose(*phi);
      } else if (isa<llvm::ReturnInst>(instruction)) {
        b_.CreateRet(vector_of(instruction.getOperand(0)));
      } else if (!instruction.isTerminator()) {
        values_[&instruction] = widen_operation(b_, instruction, masks_.lookup(&block),
                                                [&](Value* v) { return vector_of(v); });
      }
    }
  }

  Value* choose(llvm::PHINode& phi) {
    Value* chosen = vector_of(phi.getIncomingValue(0));
    for (unsigned i = 1; i < phi.getNumIncomingValues(); ++i) {
      Value* here = edge_mask(phi.getIncomingBlock(i), phi.getParent());
      chosen = b_.CreateSelect(here, vector_of(phi.getIncomingValue(i)), chosen);
    }
    return chosen;
  }

  llvm::Function& shared_;
  llvm::Function& made_;
  llvm::IRBuilder<> b_;
  Lanes lanes_;
  Value* mask_ = nullptr;  // null: it makes no difference which lanes are on
  llvm::DenseMap<const Value*, Value*> values_;
  llvm::DenseMap<const BasicBlock*, Value*> masks_;
};

// Lanes that are off must not divide, and nothing has to be computed for them alone.
bool depends_on_mask(const llvm::Function& shared) {
  return shared.size() > 1 || llvm::any_of(llvm::instructions(shared),
                                           [](const Instruction& i) { return i.isIntDivRem(); });
}

}  // namespace

bool can_widen_function(const llvm::Function& shared) {
  for (const BasicBlock& block : shared) {
    for (const Instruction& instruction : block) {
      if (isa<llvm::PHINode>(instruction) || instruction.isTerminator()) continue;
      if (!has_wide_operation(instruction)) return false;
    }
    if (!isa<llvm::BranchInst, llvm::ReturnInst>(block.getTerminator())) return false;
  }
  // One way out, which all lanes take.
  return llvm::count_if(shared, [](const BasicBlock& block) {
           return isa<llvm::ReturnInst>(block.getTerminator());
         }) == 1;
}

llvm::Function* widen_function(llvm::Function& shared, llvm::StringRef name, InstructionSet set) {
  auto wide = [](llvm::Type* type) { return llvm::FixedVectorType::get(type, simdgroup_width); };
  llvm::SmallVector<llvm::Type*, 4> parameters;
  for (llvm::Argument& argument : shared.args()) parameters.push_back(wide(argument.getType()));
  if (depends_on_mask(shared))
    parameters.push_back(wide(llvm::Type::getInt1Ty(shared.getContext())));
  auto* type = llvm::FunctionType::get(wide(shared.getReturnType()), parameters, false);
  llvm::Function* made =
      llvm::Function::Create(type, llvm::GlobalValue::InternalLinkage, name, shared.getParent());
  made->setCallingConv(llvm::CallingConv::Intel_OCL_BI);
  made->addFnAttr(llvm::Attribute::NoInline);
  made->addFnAttr(llvm::Attribute::NoUnwind);
  made->addFnAttr(llvm::Attribute::WillReturn);
  made->setMemoryEffects(llvm::MemoryEffects::none());
  FunctionWriter(shared, *made, set).run();
  return made;
}

}  // namespace holdfast::jit
