#include "devices/cpu/jit/compiler/reference.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/DenseSet.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/ADT/StringSwitch.h>
#include <llvm/Analysis/AssumptionCache.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/ReplaceConstant.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>
#include <llvm/Transforms/Utils/Cloning.h>
#include <llvm/Transforms/Utils/LoopSimplify.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <stdexcept>
#include <vector>

#include "devices/cpu/jit/compiler/guard_accesses.h"
#include "devices/cpu/jit/compiler/instrument.h"
#include "devices/cpu/jit/compiler/messages.h"
#include "devices/cpu/jit/compiler/sites.h"
#include "devices/cpu/jit/compiler/widen/intrinsics.h"
#include "devices/cpu/jit/kernel_abi.h"
#include "msl/scalar_ir.h"

namespace holdfast::jit {
namespace {

using llvm::IRBuilder;
using llvm::Value;
using msl::Intrinsic;

class ThreadLowering {
 public:
  explicit ThreadLowering(llvm::Function& scalar)
      : scalar_(scalar), module_(*scalar.getParent()), context_(scalar.getContext()) {}

  llvm::Function* run(uint32_t& threadgroup_bytes, bool& parks) {
    make_function();
    define_arithmetic(*thread_);
    lower_loops_and_number_sites();
    threadgroup_bytes = place_threadgroup_variables();
    lower_calls();
    parks = sites_->count() != 0;
    return thread_;
  }

 private:
  llvm::Type* i8() { return llvm::Type::getInt8Ty(context_); }
  llvm::Type* i32() { return llvm::Type::getInt32Ty(context_); }
  llvm::Type* i64() { return llvm::Type::getInt64Ty(context_); }
  llvm::PointerType* pointer() { return llvm::PointerType::get(context_, 0); }

  Value* field(IRBuilder<>& b, Value* base, size_t offset, llvm::Type* type) {
    auto* load = b.CreateLoad(type, b.CreateConstInBoundsGEP1_64(i8(), base, offset));
    load->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(context_, {}));
    return load;
  }

  // The body moves into a function of one parameter; the old parameters are loaded at its start.
  void make_function() {
    auto* type = llvm::FunctionType::get(llvm::Type::getVoidTy(context_), {pointer()}, false);
    thread_ = llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage,
                                     scalar_.getName() + ".thread", module_);
    thread_->copyAttributesFrom(&scalar_);
    thread_->setAttributes(llvm::AttributeList::get(
        context_, llvm::AttributeList::FunctionIndex,
        llvm::AttrBuilder(context_, scalar_.getAttributes().getFnAttrs())));
    for (auto attribute : {llvm::Attribute::Memory, llvm::Attribute::NoSync,
                           llvm::Attribute::WillReturn, llvm::Attribute::MustProgress}) {
      thread_->removeFnAttr(attribute);
    }
    thread_->setVisibility(llvm::GlobalValue::DefaultVisibility);
    thread_->setLinkage(llvm::GlobalValue::ExternalLinkage);
    thread_->setCallingConv(llvm::CallingConv::C);
    thread_->setComdat(nullptr);
    thread_->splice(thread_->end(), &scalar_);
    argument_ = thread_->getArg(0);
    argument_->setName("thread");
    argument_->addAttr(llvm::Attribute::NoAlias);

    llvm::BasicBlock& old_entry = thread_->getEntryBlock();
    IRBuilder<> b(&old_entry, old_entry.getFirstNonPHIOrDbgOrAlloca());
    group_ = field(b, argument_, offsetof(ThreadContext, group), pointer());
    runtime_ = field(b, argument_, offsetof(ThreadContext, runtime), pointer());
    memory_ = field(b, group_, offsetof(GroupContext, threadgroup_memory), pointer());
    cancelled_ = field(b, group_, offsetof(GroupContext, cancelled), pointer());
    Value* buffers = field(b, group_, offsetof(GroupContext, buffers), pointer());
    for (llvm::Argument& parameter : scalar_.args()) {
      Value* value = field(b, buffers, parameter.getArgNo() * sizeof(void*), pointer());
      if (parameter.getType() != value->getType())
        value = b.CreateAddrSpaceCast(value, parameter.getType());
      value->takeName(&parameter);
      parameter.replaceAllUsesWith(value);
    }
    scalar_.eraseFromParent();
  }

  // Every back edge polls; the sites get their numbers (see ReferenceRuntime), and loops that hold
  // one bring their lanes together on the back edge.
  void lower_loops_and_number_sites() {
    llvm::DominatorTree dominators(*thread_);
    llvm::LoopInfo loops(dominators);
    llvm::AssumptionCache assumptions(*thread_);
    for (llvm::Loop* loop : loops) {
      llvm::simplifyLoop(loop, &dominators, &loops, nullptr, &assumptions, nullptr,
                         /*PreserveLCSSA=*/false);
    }
    sites_.emplace(*thread_, loops, dominators);
    llvm::BasicBlock* leave = nullptr;
    for (llvm::Loop* loop : loops.getLoopsInPreorder()) {
      llvm::BasicBlock* header = loop->getHeader();
      llvm::SmallVector<llvm::BasicBlock*, 4> latches;
      loop->getLoopLatches(latches);
      for (llvm::BasicBlock* latch : latches) {
        if (!leave) {
          leave = llvm::BasicBlock::Create(context_, "cancelled", thread_);
          llvm::ReturnInst::Create(context_, leave);
        }
        llvm::BasicBlock* edge = llvm::SplitEdge(latch, header, &dominators, &loops);
        IRBuilder<> b(edge->getTerminator());
        if (std::optional<uint32_t> site = sites_->end_of(header))
          wait(b, values_of(b), *site, converge);
        llvm::LoadInst* flag = b.CreateAlignedLoad(i32(), cancelled_, llvm::Align(4));
        flag->setAtomic(llvm::AtomicOrdering::Monotonic);
        llvm::Instruction* jump = edge->getTerminator();
        b.CreateCondBr(b.CreateICmpNE(flag, b.getInt32(0)), leave, header);
        jump->eraseFromParent();
      }
    }
  }

  uint32_t place_threadgroup_variables() {
    uint64_t used = 0;
    llvm::SmallVector<llvm::GlobalVariable*, 8> variables;
    for (llvm::GlobalVariable& global : module_.globals()) {
      if (global.getAddressSpace() == msl::address_space::threadgroup) variables.push_back(&global);
    }
    llvm::SmallVector<llvm::Constant*, 8> constants(variables.begin(), variables.end());
    llvm::convertUsersOfConstantsToInstructions(constants);
    IRBuilder<> b(llvm::cast<llvm::Instruction>(memory_)->getNextNode());
    const llvm::DataLayout& layout = module_.getDataLayout();
    for (llvm::GlobalVariable* variable : variables) {
      llvm::Align alignment = std::max(
          llvm::Align(16),
          variable->getAlign().value_or(layout.getPrefTypeAlign(variable->getValueType())));
      used = llvm::alignTo(used, alignment);
      Value* place = b.CreateConstInBoundsGEP1_64(i8(), memory_, used);
      place = b.CreateAddrSpaceCast(place, variable->getType());
      place->setName(variable->getName());
      used += layout.getTypeAllocSize(variable->getValueType());
      variable->replaceAllUsesWith(place);
      variable->eraseFromParent();
    }
    return static_cast<uint32_t>(std::min<uint64_t>(used, UINT32_MAX));
  }

  void lower_calls() {
    llvm::SmallVector<llvm::CallInst*, 32> calls;
    for (llvm::Instruction& instruction : llvm::instructions(*thread_)) {
      if (kernel_intrinsic(instruction)) calls.push_back(llvm::cast<llvm::CallInst>(&instruction));
    }
    for (llvm::CallInst* call : calls) {
      Intrinsic intrinsic = *kernel_intrinsic(*call);
      IRBuilder<> b(call);
      Value* result = nullptr;
      switch (behaviour_of(intrinsic)) {
        case Behaviour::cross_lane:
          result = lower_cross_lane(b, *call, intrinsic);
          break;
        case Behaviour::barrier:
          wait(b, values_of(b), sites_->of(*call), static_cast<uint32_t>(intrinsic));
          break;
        default:
          result = intrinsic == Intrinsic::log ? lower_log(b, *call)
                                               : lower_position(b, *call, intrinsic);
      }
      if (result && !call->getType()->isVoidTy()) {
        if (result->getType() != call->getType())
          result = b.CreateZExtOrTrunc(result, call->getType());
        call->replaceAllUsesWith(result);
      }
      call->eraseFromParent();
    }
    lower_checks(check_access_function, offsetof(ReferenceRuntime, access));
    lower_checks(check_barrier_function, offsetof(ReferenceRuntime, reach));
    lower_checks(check_fence_function, offsetof(ReferenceRuntime, fence));
    lower_turns();
    lower_free_ranges();
    lower_guards();
    for (llvm::Function& function : llvm::make_early_inc_range(module_)) {
      if (function.isDeclaration() && function.use_empty()) function.eraseFromParent();
    }
  }

  // What instrument() has put in: the runtime wants the thread as well.
  void lower_checks(const char* name, size_t offset) {
    lower_calls_of(name, [&](IRBuilder<>& b, llvm::CallInst& call) -> Value* {
      llvm::SmallVector<llvm::Type*, 8> types{pointer()};
      llvm::SmallVector<Value*, 8> arguments{argument_};
      for (Value* one : call.args()) {
        types.push_back(one->getType());
        arguments.push_back(one);
      }
      auto* type = llvm::FunctionType::get(call.getType(), types, false);
      return call_runtime(b, type, offset, arguments);
    });
  }

  template <class Lower>
  void lower_calls_of(const char* name, Lower lower) {
    llvm::Function* function = module_.getFunction(name);
    if (!function) return;
    for (llvm::User* user : llvm::make_early_inc_range(function->users())) {
      auto* call = llvm::cast<llvm::CallInst>(user);
      IRBuilder<> b(call);
      Value* result = lower(b, *call);
      if (result && !call->getType()->isVoidTy()) call->replaceAllUsesWith(result);
      call->eraseFromParent();
    }
  }

  // A turn of a loop is often short: two stores and no call.
  void lower_turns() {
    lower_calls_of(check_turn_function, [&](IRBuilder<>& b, llvm::CallInst& call) -> Value* {
      Value* last = field(b, group_, offsetof(GroupContext, last_turn), pointer());
      b.CreateStore(call.getArgOperand(0),
                    b.CreateConstInBoundsGEP1_64(i8(), last, offsetof(LastTurn, site)));
      b.CreateStore(field(b, argument_, offsetof(ThreadContext, index), i32()),
                    b.CreateConstInBoundsGEP1_64(i8(), last, offsetof(LastTurn, thread)));
      return nullptr;
    });
  }

  void lower_free_ranges() {
    auto field_of = [&](size_t offset, llvm::Type* type) {
      return [=, this](IRBuilder<>& b, llvm::CallInst& call) -> Value* {
        Value* ranges = field(b, group_, offsetof(GroupContext, free_ranges), pointer());
        const uint64_t index = llvm::cast<llvm::ConstantInt>(call.getArgOperand(0))->getZExtValue();
        return field(b, ranges, index * sizeof(FreeRange) + offset, type);
      };
    };
    lower_calls_of(free_begin_function, field_of(offsetof(FreeRange, begin), pointer()));
    lower_calls_of(free_bytes_function, field_of(offsetof(FreeRange, bytes), i64()));
  }

  // What guard_accesses() has put in.
  void lower_guards() {
    auto field_of = [&](size_t offset) {
      return [=, this](IRBuilder<>& b, llvm::CallInst& call) -> Value* {
        Value* ranges = field(b, group_, offsetof(GroupContext, ranges), pointer());
        const uint64_t index = llvm::cast<llvm::ConstantInt>(call.getArgOperand(0))->getZExtValue();
        return field(b, ranges, index * sizeof(ArgumentRange) + offset, i64());
      };
    };
    lower_calls_of(range_before_function, field_of(offsetof(ArgumentRange, before)));
    lower_calls_of(range_bytes_function, field_of(offsetof(ArgumentRange, bytes)));
    // The first is kept; a group is run by one OS thread.
    lower_calls_of(outside_function, [&](IRBuilder<>& b, llvm::CallInst& call) -> Value* {
      Value* site = call.getArgOperand(0);
      Value* writes = b.CreateICmpNE(
          b.CreateLoad(b.getInt8Ty(),
                       b.CreateConstInBoundsGEP1_64(i8(), site, offsetof(OutsideSite, writes))),
          b.getInt8(0));
      auto place = [&](size_t offset) {
        return b.CreateConstInBoundsGEP1_64(i8(), group_, offset);
      };
      Value* noted = b.CreateSelect(writes, place(offsetof(GroupContext, outside_write)),
                                    place(offsetof(GroupContext, outside_read)));
      Value* at =
          b.CreateConstInBoundsGEP1_64(i8(), noted, offsetof(GroupContext::OutsideAccess, offset));
      Value* known = b.CreateLoad(pointer(), noted);
      Value* is_first = b.CreateIsNull(known);
      b.CreateStore(b.CreateSelect(is_first, call.getArgOperand(1), b.CreateLoad(i64(), at)), at);
      b.CreateStore(b.CreateSelect(is_first, site, known), noted);
      return nullptr;
    });
  }

  Value* lower_log(IRBuilder<>& b, llvm::CallInst& call) {
    if (!message_) {
      IRBuilder<> at_start(&thread_->getEntryBlock(), thread_->getEntryBlock().begin());
      message_ = at_start.CreateAlloca(llvm::ArrayType::get(i64(), sizeof(LogMessage) / 8), nullptr,
                                       "message");
    }
    Value* format = b.CreateAddrSpaceCast(call.getArgOperand(0), pointer());
    store_message(b, message_, format, [&](unsigned i) { return call.getArgOperand(i); });
    auto* type =
        llvm::FunctionType::get(llvm::Type::getVoidTy(context_), {pointer(), pointer()}, false);
    b.CreateCall(type, field(b, group_, offsetof(GroupContext, log), pointer()),
                 {group_, message_});
    return nullptr;
  }

  // Element `axis` of three uint32_t at `offset`.
  Value* axis_field(IRBuilder<>& b, Value* base, size_t offset, Value* axis) {
    if (auto* constant = llvm::dyn_cast<llvm::ConstantInt>(axis))
      return field(b, base, offset + std::min<uint64_t>(constant->getZExtValue(), 2) * 4, i32());
    Value* bounded = b.CreateBinaryIntrinsic(llvm::Intrinsic::umin, axis,
                                             llvm::ConstantInt::get(axis->getType(), 2));
    Value* start = b.CreateConstInBoundsGEP1_64(i8(), base, offset);
    return b.CreateLoad(i32(), b.CreateInBoundsGEP(i32(), start, bounded));
  }

  Value* lower_position(IRBuilder<>& b, llvm::CallInst& call, Intrinsic intrinsic) {
    auto group = [&](size_t offset) {
      return axis_field(b, group_, offset, call.getArgOperand(0));
    };
    switch (intrinsic) {
      case Intrinsic::thread_position_in_threadgroup:
        return axis_field(b, argument_, offsetof(ThreadContext, position), call.getArgOperand(0));
      case Intrinsic::threadgroup_position_in_grid:
        return group(offsetof(GroupContext, group));
      case Intrinsic::threads_per_threadgroup:
        return group(offsetof(GroupContext, size));
      case Intrinsic::dispatch_threads_per_threadgroup:
        return group(offsetof(GroupContext, full_size));
      case Intrinsic::threadgroups_per_grid:
        return group(offsetof(GroupContext, groups));
      case Intrinsic::threads_per_grid:
        return group(offsetof(GroupContext, grid));
      case Intrinsic::simdgroups_per_threadgroup:
        return field(b, group_, offsetof(GroupContext, simdgroups), i32());
      case Intrinsic::simdgroup_index_in_threadgroup:
        return field(b, argument_, offsetof(ThreadContext, simdgroup), i32());
      case Intrinsic::thread_index_in_simdgroup:
        return field(b, argument_, offsetof(ThreadContext, lane), i32());
      case Intrinsic::poll: {
        llvm::LoadInst* flag = b.CreateAlignedLoad(i32(), cancelled_, llvm::Align(4));
        flag->setAtomic(llvm::AtomicOrdering::Monotonic);
        return b.CreateZExt(b.CreateICmpNE(flag, b.getInt32(0)), i32());
      }
      default:
        throw std::logic_error("[jit] no lowering of " + call.getCalledFunction()->getName().str());
    }
  }

  llvm::CallInst* call_runtime(IRBuilder<>& b, llvm::FunctionType* type, size_t offset,
                               llvm::ArrayRef<Value*> arguments) {
    llvm::CallInst* call = b.CreateCall(type, field(b, runtime_, offset, pointer()), arguments);
    call->setConvergent();
    call->setDoesNotThrow();
    return call;
  }

  Value* lower_cross_lane(IRBuilder<>& b, llvm::CallInst& call, Intrinsic intrinsic) {
    if (call.arg_size() > LaneValues::most_operands)
      throw std::logic_error("[jit] too many operands");
    Value* values = values_of(b);
    for (unsigned i = 0; i < call.arg_size(); ++i) {
      Value* bits = call.getArgOperand(i);
      if (bits->getType()->isFloatTy()) bits = b.CreateBitCast(bits, i32());
      bits = b.CreateZExt(bits, i64());
      b.CreateStore(bits, b.CreateConstInBoundsGEP1_64(i64(), values, i * simdgroup_width));
    }
    Value* result = wait(b, values, sites_->of(call), static_cast<uint32_t>(intrinsic));
    if (call.getType()->isFloatTy())
      return b.CreateBitCast(b.CreateTrunc(result, i32()), call.getType());
    return result;
  }

  Value* values_of(IRBuilder<>& b) {
    return field(b, argument_, offsetof(ThreadContext, values), pointer());
  }

  Value* wait(IRBuilder<>& b, Value* values, uint32_t site, uint32_t operation) {
    auto* type = llvm::FunctionType::get(i64(), {pointer(), i64()}, false);
    llvm::CallInst* call = call_runtime(b, type, offsetof(ReferenceRuntime, wait),
                                        {values, b.getInt64(wait_at(site, operation))});
    call->setCallingConv(llvm::CallingConv::PreserveNone);
    return call;
  }

  llvm::Function& scalar_;
  llvm::Module& module_;
  llvm::LLVMContext& context_;
  llvm::Function* thread_ = nullptr;
  llvm::Argument* argument_ = nullptr;
  Value *group_ = nullptr, *runtime_ = nullptr, *memory_ = nullptr, *cancelled_ = nullptr;
  llvm::AllocaInst* message_ = nullptr;
  std::optional<Sites> sites_;
};

}  // namespace

llvm::Function* lower_to_thread(llvm::Function& scalar, uint32_t& threadgroup_bytes, bool* parks) {
  bool can_park = false;
  llvm::Function* thread = ThreadLowering(scalar).run(threadgroup_bytes, can_park);
  if (parks) *parks = can_park;
  return thread;
}

}  // namespace holdfast::jit
