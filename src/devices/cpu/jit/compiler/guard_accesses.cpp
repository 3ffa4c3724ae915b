#include "devices/cpu/jit/compiler/guard_accesses.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/ReplaceConstant.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>

#include <vector>

namespace holdfast::jit {
namespace {

using llvm::Instruction;
using llvm::IRBuilder;
using llvm::Value;

class Guards {
 public:
  Guards(llvm::Function& function, const GuardedKernel& kernel)
      : function_(function),
        module_(*function.getParent()),
        sites_(module_, kernel),
        i64_(llvm::Type::getInt64Ty(function.getContext())) {
    llvm::Type* i32 = llvm::Type::getInt32Ty(function.getContext());
    llvm::Type* pointer = llvm::PointerType::get(function.getContext(), 0);
    before_ = module_.getOrInsertFunction(range_before_function, i64_, i32);
    bytes_ = module_.getOrInsertFunction(range_bytes_function, i64_, i32);
    outside_ = module_.getOrInsertFunction(
        outside_function, llvm::Type::getVoidTy(function.getContext()), pointer, i64_);
  }

  void run() {
    llvm::SmallVector<llvm::Constant*, 16> globals;
    for (llvm::GlobalVariable& global : module_.globals()) globals.push_back(&global);
    llvm::convertUsersOfConstantsToInstructions(globals, &function_);
    std::vector<llvm::MemIntrinsic*> blocks;
    for (Instruction& instruction : llvm::instructions(function_)) {
      if (auto* block = llvm::dyn_cast<llvm::MemIntrinsic>(&instruction)) blocks.push_back(block);
    }
    for (const msl::UnprovedAccess& access : msl::find_unproved_accesses(function_)) {
      IRBuilder<> b(access.instruction);
      guard(*access.instruction, access.pointer, access.roots, b.getInt64(access.bytes),
            access.writes);
    }
    // The target inside of the branch of the source.
    for (llvm::MemIntrinsic* block : blocks) {
      auto* copy = llvm::dyn_cast<llvm::MemTransferInst>(block);
      if (copy) guard_block(*block, copy->getRawSource(), false);
      guard_block(*block, block->getRawDest(), true);
    }
  }

 private:
  void guard_block(llvm::MemIntrinsic& block, Value* pointer, bool writes) {
    auto* length = llvm::dyn_cast<llvm::ConstantInt>(block.getLength());
    llvm::SmallVector<Value*, 1> roots = msl::roots_of(pointer, function_);
    if (length && roots.size() == 1 && !llvm::isa<llvm::Argument>(roots[0])) {
      const llvm::DataLayout& layout = module_.getDataLayout();
      llvm::APInt offset(layout.getIndexTypeSizeInBits(pointer->getType()), 0);
      const Value* base = pointer->stripAndAccumulateConstantOffsets(layout, offset, true);
      const uint64_t size = msl::bytes_of_root(*roots[0], layout), used = length->getZExtValue();
      if (base == roots[0] && used <= size && offset.ule(size - used)) return;
    }
    IRBuilder<> b(&block);
    Value* bytes = b.CreateZExtOrTrunc(block.getLength(), i64_);
    llvm::BasicBlock* outside = guard(block, pointer, roots, bytes, writes);
    // What was to be copied from outside is 0.
    if (writes) return;
    IRBuilder<> at(outside->getTerminator());
    llvm::CallInst* zeros =
        at.CreateMemSet(block.getRawDest(), at.getInt8(0), block.getLength(), block.getDestAlign());
    guard_block(*llvm::cast<llvm::MemIntrinsic>(zeros), block.getRawDest(), true);
  }

  // Returns the block that is run instead of the access.
  llvm::BasicBlock* guard(Instruction& access, Value* pointer, llvm::ArrayRef<Value*> roots,
                          Value* bytes, bool writes) {
    IRBuilder<> b(&access);
    Value *inside = b.getFalse(), *distance = nullptr;
    for (Value* root : roots) {
      Value* offset =
          b.CreateAdd(b.CreateSub(b.CreatePtrToInt(pointer, i64_), b.CreatePtrToInt(root, i64_)),
                      before(*root));
      Value* size = size_of(*root);
      Value* one = b.CreateAnd(b.CreateICmpULE(bytes, size),
                               b.CreateICmpULE(offset, b.CreateSub(size, bytes)));
      inside = b.CreateOr(inside, one);
      if (!distance) distance = offset;
    }
    if (!distance) distance = b.CreatePtrToInt(pointer, i64_);
    Instruction *then = nullptr, *otherwise = nullptr;
    llvm::SplitBlockAndInsertIfThenElse(
        b.CreateFreeze(inside), &access, &then, &otherwise,
        llvm::MDBuilder(b.getContext()).createBranchWeights(2000, 1));
    llvm::BasicBlock* after = access.getParent();
    access.moveBefore(then);
    IRBuilder<>(otherwise).CreateCall(outside_, {sites_.site_of(access, roots, writes), distance});
    if (access.getType()->isVoidTy()) return otherwise->getParent();
    IRBuilder<> at_join(after, after->begin());
    llvm::PHINode* result = at_join.CreatePHI(access.getType(), 2);
    access.replaceAllUsesWith(result);
    result->addIncoming(&access, then->getParent());
    result->addIncoming(llvm::Constant::getNullValue(access.getType()), otherwise->getParent());
    return otherwise->getParent();
  }

  IRBuilder<> at_start() {
    llvm::BasicBlock& entry = function_.getEntryBlock();
    return IRBuilder<>(&entry, entry.getFirstNonPHIOrDbgOrAlloca());
  }
  Value* before(const Value& root) {
    auto* argument = llvm::dyn_cast<llvm::Argument>(&root);
    if (!argument) return llvm::ConstantInt::get(i64_, 0);
    Value*& known = before_of_[argument];
    if (!known) {
      IRBuilder<> b = at_start();
      known = b.CreateCall(before_, {b.getInt32(argument->getArgNo())});
    }
    return known;
  }
  Value* size_of(const Value& root) {
    auto* argument = llvm::dyn_cast<llvm::Argument>(&root);
    if (!argument)
      return llvm::ConstantInt::get(i64_, msl::bytes_of_root(root, module_.getDataLayout()));
    Value*& known = bytes_of_[argument];
    if (!known) {
      IRBuilder<> b = at_start();
      known = b.CreateCall(bytes_, {b.getInt32(argument->getArgNo())});
    }
    return known;
  }

  llvm::Function& function_;
  llvm::Module& module_;
  OutsideSites sites_;
  llvm::Type* const i64_;
  llvm::FunctionCallee before_, bytes_, outside_;
  llvm::DenseMap<const llvm::Argument*, Value*> before_of_, bytes_of_;
};

}  // namespace

void guard_accesses(llvm::Function& scalar, const GuardedKernel& kernel) {
  Guards(scalar, kernel).run();
}

}  // namespace holdfast::jit
