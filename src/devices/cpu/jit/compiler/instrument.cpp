#include "devices/cpu/jit/compiler/instrument.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/DebugInfoMetadata.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/ReplaceConstant.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>
#include <llvm/Transforms/Utils/Local.h>

#include <algorithm>
#include <cstring>
#include <string_view>
#include <vector>

#include "devices/cpu/jit/compiler/source_lines.h"
#include "devices/cpu/jit/kernel_abi.h"
#include "msl/frontend/frontend.h"
#include "msl/scalar_ir.h"

namespace holdfast::jit {
namespace {

using llvm::cast;
using llvm::dyn_cast;
using llvm::Instruction;
using llvm::IRBuilder;
using llvm::isa;
using llvm::Value;

AccessObject::Space space_of(unsigned address_space) {
  switch (address_space) {
    case msl::address_space::device:
      return AccessObject::device;
    case msl::address_space::constant:
      return AccessObject::constant;
    case msl::address_space::threadgroup:
      return AccessObject::threadgroup;
    default:
      return AccessObject::thread;
  }
}

class Instrumentation {
 public:
  Instrumentation(llvm::Function& scalar, const msl::KernelInterface& interface,
                  const msl::KernelSource* source)
      : function_(scalar),
        module_(*scalar.getParent()),
        layout_(module_.getDataLayout()),
        interface_(interface),
        source_(source),
        pointer_(llvm::PointerType::get(scalar.getContext(), 0)) {
    llvm::Type* i32 = llvm::Type::getInt32Ty(scalar.getContext());
    llvm::Type* i64 = llvm::Type::getInt64Ty(scalar.getContext());
    access_ = module_.getOrInsertFunction(check_access_function, i32, pointer_, pointer_, pointer_,
                                          pointer_, i64, i64);
    llvm::Type* nothing = llvm::Type::getVoidTy(scalar.getContext());
    reach_ = module_.getOrInsertFunction(check_barrier_function, nothing, pointer_);
    fence_ = module_.getOrInsertFunction(check_fence_function, nothing);
    turn_ = module_.getOrInsertFunction(check_turn_function, nothing, pointer_);
    free_begin_ = module_.getOrInsertFunction(free_begin_function, pointer_, i32);
    free_bytes_ = module_.getOrInsertFunction(free_bytes_function, i64, i32);
  }

  bool run() {
    std::vector<llvm::Constant*> globals;
    for (llvm::GlobalVariable& global : module_.globals()) globals.push_back(&global);
    llvm::convertUsersOfConstantsToInstructions(globals);
    mark_loops();
    std::vector<Instruction*> found;
    for (Instruction& instruction : llvm::instructions(function_)) found.push_back(&instruction);
    for (Instruction* instruction : found) visit(*instruction);
    return has_fences_;
  }

 private:
  // Where a pointer comes from: an object (a constant of AccessObject) and where it begins.
  struct Origin {
    Value* object;
    Value* base;
    Value* root = nullptr;  // the argument or variable that it is; null: one of several, or unknown
  };

  void mark_loops() {
    llvm::DominatorTree dominators(function_);
    llvm::LoopInfo loops(dominators);
    for (llvm::Loop* loop : loops.getLoopsInPreorder()) {
      llvm::SmallVector<llvm::BasicBlock*, 4> latches;
      loop->getLoopLatches(latches);
      for (llvm::BasicBlock* latch : latches) {
        Instruction* end = latch->getTerminator();
        IRBuilder<> b(end);
        const llvm::DILocation* place = place_of(loop->getStartLoc());
        b.CreateCall(turn_, {site(place ? place : place_of(end->getDebugLoc()), 0, 1)});
      }
    }
  }

  void visit(Instruction& instruction) {
    const bool is_atomic = instruction.isAtomic();
    const uint8_t order = is_atomic ? uint8_t{AccessSite::atomic} : uint8_t{0};
    if (auto* load = dyn_cast<llvm::LoadInst>(&instruction)) {
      check(instruction, load->getPointerOperand(), size_of(load->getType()), load->getAlign(),
            AccessSite::reads | order, nullptr);
    } else if (auto* store = dyn_cast<llvm::StoreInst>(&instruction)) {
      Value* value = store->getValueOperand();
      check(instruction, store->getPointerOperand(), size_of(value->getType()), store->getAlign(),
            AccessSite::writes | order, value);
    } else if (auto* atomic = dyn_cast<llvm::AtomicRMWInst>(&instruction)) {
      check(instruction, atomic->getPointerOperand(), size_of(atomic->getType()),
            atomic->getAlign(), AccessSite::reads | AccessSite::writes | AccessSite::atomic,
            nullptr);
    } else if (auto* exchange = dyn_cast<llvm::AtomicCmpXchgInst>(&instruction)) {
      check(instruction, exchange->getPointerOperand(),
            size_of(exchange->getCompareOperand()->getType()), exchange->getAlign(),
            AccessSite::reads | AccessSite::writes | AccessSite::atomic, nullptr);
    } else if (auto* block = dyn_cast<llvm::MemIntrinsic>(&instruction)) {
      auto* copy = dyn_cast<llvm::MemTransferInst>(block);
      Value* length = block->getLength();
      if (copy)
        check(instruction, copy->getRawSource(), length, {},
              AccessSite::reads | AccessSite::block | (may_be_gap(*copy) ? AccessSite::gap : 0),
              nullptr);
      check(instruction, block->getRawDest(), length, {}, AccessSite::writes, nullptr);
    } else if (auto* call = dyn_cast<llvm::CallInst>(&instruction); call && is_barrier(*call)) {
      IRBuilder<> b(&instruction);
      b.CreateCall(reach_, {site(place_of(instruction.getDebugLoc()), 0, 1)});
    } else if (isa<llvm::FenceInst>(instruction)) {
      has_fences_ = true;
      IRBuilder<> b(&instruction);
      b.CreateCall(fence_, {});
    }
  }

  // Of a struct that is copied into a variable, which was then taken apart.
  static bool may_be_gap(const llvm::MemTransferInst& copy) {
    constexpr uint64_t largest_alignment = 16;
    auto* length = dyn_cast<llvm::ConstantInt>(copy.getLength());
    return length && length->getZExtValue() < largest_alignment &&
           isa<llvm::AllocaInst>(llvm::getUnderlyingObject(copy.getRawDest()));
  }

  static bool is_barrier(const llvm::CallInst& call) {
    const llvm::Function* function = call.getCalledFunction();
    return function && (function->getName() == "__hf_threadgroup_barrier" ||
                        function->getName() == "__hf_simdgroup_barrier");
  }

  Value* size_of(llvm::Type* type) {
    return llvm::ConstantInt::get(llvm::Type::getInt64Ty(type->getContext()),
                                  layout_.getTypeStoreSize(type).getFixedValue());
  }

  // A place of a variable of the thread that is there for certain.
  bool is_safe(Value* pointer, Value* bytes) const {
    llvm::APInt offset(64, 0);
    auto* length = dyn_cast<llvm::ConstantInt>(bytes);
    auto* variable = dyn_cast<llvm::AllocaInst>(
        pointer->stripAndAccumulateConstantOffsets(layout_, offset, true));
    if (!variable || !length || offset.isNegative()) return false;
    uint64_t size = layout_.getTypeAllocSize(variable->getAllocatedType()).getFixedValue();
    return length->getZExtValue() <= size && offset.ule(size - length->getZExtValue());
  }

  void check(Instruction& instruction, Value* pointer, Value* bytes, llvm::Align alignment,
             int kind, Value* value) {
    if (is_safe(pointer, bytes)) return;
    const Origin origin = origin_of(pointer);
    IRBuilder<> b(&instruction);
    Value* written = b.getInt64(0);
    if (value && !value->getType()->isAggregateType() &&
        layout_.getTypeStoreSize(value->getType()) <= 8) {
      if (value->getType()->isPointerTy()) {
        written = b.CreatePtrToInt(value, b.getInt64Ty());
      } else {
        unsigned bits = static_cast<unsigned>(layout_.getTypeSizeInBits(value->getType()));
        written = b.CreateZExt(b.CreateBitCast(value, b.getIntNTy(bits)), b.getInt64Ty());
      }
    }
    Value* address = b.CreateAddrSpaceCast(pointer, pointer_);
    // Only when it may: else a load gives 0.
    Instruction* ask = nullptr;
    llvm::BasicBlock* looked = nullptr;
    if (Value* is_free = is_known_free(b, pointer, origin, address, bytes, alignment)) {
      looked = b.GetInsertBlock();
      ask = llvm::SplitBlockAndInsertIfThen(
          b.CreateNot(is_free), &instruction, false,
          llvm::MDBuilder(b.getContext()).createUnlikelyBranchWeights());
      b.SetInsertPoint(ask);
    }
    Value* answer =
        b.CreateCall(access_, {site(place_of(instruction.getDebugLoc()), static_cast<uint8_t>(kind),
                                    static_cast<uint8_t>(alignment.value())),
                               origin.object, origin.base, address,
                               b.CreateZExtOrTrunc(bytes, b.getInt64Ty()), written});
    Value* allowed = b.CreateICmpNE(answer, b.getInt32(0));
    if (looked) {
      IRBuilder<> at_join(&instruction);
      llvm::PHINode* either = at_join.CreatePHI(b.getInt1Ty(), 2);
      either->addIncoming(b.getTrue(), looked);
      either->addIncoming(allowed, ask->getParent());
      allowed = either;
    }
    Instruction* end = llvm::SplitBlockAndInsertIfThen(allowed, &instruction, false);
    llvm::BasicBlock* before = end->getParent()->getSinglePredecessor();
    llvm::BasicBlock* behind = end->getSuccessor(0);
    instruction.moveBefore(end);
    if (instruction.getType()->isVoidTy()) return;
    IRBuilder<> at_join(behind, behind->begin());
    llvm::PHINode* result = at_join.CreatePHI(instruction.getType(), 2);
    instruction.replaceAllUsesWith(result);
    result->addIncoming(&instruction, instruction.getParent());
    result->addIncoming(llvm::Constant::getNullValue(instruction.getType()), before);
  }

  // Whether an access lies where it cannot be wrong; null when only the runtime can tell.
  Value* is_known_free(IRBuilder<>& b, Value* pointer, const Origin& origin, Value* address,
                       Value* bytes, llvm::Align alignment) {
    auto* length = dyn_cast<llvm::ConstantInt>(bytes);
    if (!origin.root || !length || length->isZero()) return nullptr;
    if (origin.root->getType()->getPointerAddressSpace() == msl::address_space::threadgroup)
      return nullptr;
    Value *begin = origin.base, *size = nullptr;
    if (auto* argument = dyn_cast<llvm::Argument>(origin.root)) {
      IRBuilder<> at_start = behind(argument);
      Value* number = at_start.getInt32(argument->getArgNo());
      begin = at_start.CreateCall(free_begin_, {number});
      size = at_start.CreateCall(free_bytes_, {number});
    } else {
      auto* global = dyn_cast<llvm::GlobalVariable>(origin.root);
      llvm::Type* type =
          global ? global->getValueType() : cast<llvm::AllocaInst>(origin.root)->getAllocatedType();
      size = b.getInt64(layout_.getTypeAllocSize(type).getFixedValue());
    }
    Value* offset = b.CreateSub(b.CreatePtrToInt(address, b.getInt64Ty()),
                                b.CreatePtrToInt(begin, b.getInt64Ty()));
    Value* places = b.CreateBinaryIntrinsic(llvm::Intrinsic::usub_sat, size,
                                            b.getInt64(length->getZExtValue() - 1));
    Value* result = b.CreateICmpULT(offset, places);
    if (alignment > llvm::getKnownAlignment(pointer, layout_)) {
      Value* rest = b.CreateAnd(b.CreatePtrToInt(address, b.getInt64Ty()), alignment.value() - 1);
      result = b.CreateAnd(result, b.CreateICmpEQ(rest, b.getInt64(0)));
    }
    return result;
  }

  // As the bytes that the runtime reads.
  template <class Struct>
  llvm::Constant* bytes_of(const Struct& values) {
    llvm::StringRef text(reinterpret_cast<const char*>(&values), sizeof(values));
    llvm::Constant* data =
        llvm::ConstantDataArray::getString(function_.getContext(), text, /*AddNull=*/false);
    auto* global = new llvm::GlobalVariable(module_, data->getType(), true,
                                            llvm::GlobalValue::InternalLinkage, data);
    global->setAlignment(llvm::Align(alignof(Struct)));
    global->setUnnamedAddr(llvm::GlobalValue::UnnamedAddr::None);
    return global;
  }

  llvm::Constant* site(const llvm::DILocation* place, uint8_t kind, uint8_t alignment) {
    AccessSite site;
    std::memset(&site, 0, sizeof(site));
    site.kind = kind;
    site.alignment = std::max<uint8_t>(alignment, 1);
    if (place) {
      SourceLine line = source_line(source_, place->getLine());
      site.line = line.line;
      site.column = place->getColumn();
      set_text(site.part, line.part);
    }
    return bytes_of(site);
  }

  llvm::Constant* object(uint64_t bytes, uint32_t argument, unsigned address_space,
                         std::string_view name) {
    AccessObject object;
    std::memset(&object, 0, sizeof(object));
    object.bytes = bytes;
    object.argument = argument;
    object.space = space_of(address_space);
    set_text(object.name, name);
    return bytes_of(object);
  }

  Origin origin_of(Value* pointer) {
    auto known = origins_.find(pointer);
    if (known != origins_.end()) return known->second;
    Origin origin = find_origin(pointer);
    origins_[pointer] = origin;
    return origin;
  }

  // The place right behind a value.
  IRBuilder<> behind(Value* value) {
    auto* instruction = dyn_cast<Instruction>(value);
    if (!instruction) {
      llvm::BasicBlock& entry = function_.getEntryBlock();
      return IRBuilder<>(&entry, entry.getFirstNonPHIOrDbgOrAlloca());
    }
    return IRBuilder<>(instruction->getParent(),
                       isa<llvm::PHINode>(instruction)
                           ? instruction->getParent()->getFirstInsertionPt()
                           : std::next(instruction->getIterator()));
  }

  // Of a pointer that moves in a loop, or is one of two into the same array.
  static Value* only_root(Value* pointer) {
    llvm::SmallVector<const Value*, 4> roots;
    llvm::getUnderlyingObjects(pointer, roots, nullptr, /*MaxLookup=*/0);
    if (roots.size() != 1 || roots[0] == pointer) return nullptr;
    if (!isa<llvm::Argument, llvm::GlobalVariable, llvm::AllocaInst>(roots[0])) return nullptr;
    return const_cast<Value*>(roots[0]);
  }

  Origin find_origin(Value* pointer) {
    unsigned space = pointer->getType()->getPointerAddressSpace();
    auto beginning = [&](llvm::Constant* what) {
      return Origin{what, behind(pointer).CreateAddrSpaceCast(pointer, pointer_), pointer};
    };
    if (auto* argument = dyn_cast<llvm::Argument>(pointer))
      return beginning(
          object(0, argument->getArgNo(), space, interface_.arguments[argument->getArgNo()].name));
    if (auto* global = dyn_cast<llvm::GlobalVariable>(pointer))
      return beginning(object(layout_.getTypeAllocSize(global->getValueType()).getFixedValue(),
                              AccessObject::no_argument, space, variable_name(global->getName())));
    if (auto* variable = dyn_cast<llvm::AllocaInst>(pointer))
      return beginning(
          object(layout_.getTypeAllocSize(variable->getAllocatedType()).getFixedValue(),
                 AccessObject::no_argument, space, variable_name(variable->getName())));
    if (auto* gep = dyn_cast<llvm::GetElementPtrInst>(pointer))
      return origin_of(gep->getPointerOperand());
    if (isa<llvm::AddrSpaceCastInst, llvm::BitCastInst, llvm::FreezeInst>(pointer))
      return origin_of(cast<Instruction>(pointer)->getOperand(0));
    if (Value* root = only_root(pointer)) return origin_of(root);
    if (auto* select = dyn_cast<llvm::SelectInst>(pointer)) {
      Origin yes = origin_of(select->getTrueValue()), no = origin_of(select->getFalseValue());
      IRBuilder<> b(select);
      return {b.CreateSelect(select->getCondition(), yes.object, no.object),
              b.CreateSelect(select->getCondition(), yes.base, no.base)};
    }
    if (auto* phi = dyn_cast<llvm::PHINode>(pointer)) {
      IRBuilder<> b(phi);
      llvm::PHINode* objects = b.CreatePHI(pointer_, phi->getNumIncomingValues());
      llvm::PHINode* bases = b.CreatePHI(pointer_, phi->getNumIncomingValues());
      // It may come round to itself.
      origins_[phi] = {objects, bases};
      for (unsigned i = 0; i < phi->getNumIncomingValues(); ++i) {
        Origin one = origin_of(phi->getIncomingValue(i));
        objects->addIncoming(one.object, phi->getIncomingBlock(i));
        bases->addIncoming(one.base, phi->getIncomingBlock(i));
      }
      return {objects, bases};
    }
    // Out of memory, or made of a number.
    return {object(0, AccessObject::no_argument, space, ""),
            llvm::ConstantPointerNull::get(pointer_)};
  }

  llvm::Function& function_;
  llvm::Module& module_;
  const llvm::DataLayout& layout_;
  const msl::KernelInterface& interface_;
  const msl::KernelSource* source_;
  llvm::PointerType* pointer_;
  llvm::FunctionCallee access_, reach_, fence_, turn_, free_begin_, free_bytes_;
  bool has_fences_ = false;
  llvm::DenseMap<Value*, Origin> origins_;
};

}  // namespace

bool instrument(llvm::Function& scalar, const msl::KernelInterface& interface,
                const msl::KernelSource* source) {
  return Instrumentation(scalar, interface, source).run();
}

}  // namespace holdfast::jit
