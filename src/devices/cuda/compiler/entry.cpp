#include "devices/cuda/compiler/entry.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicsNVPTX.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/IR/Module.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <stdexcept>

#include "devices/argument_range.h"
#include "devices/cpu/jit/compiler/guard_accesses.h"
#include "devices/cpu/jit/compiler/widen/intrinsics.h"
#include "devices/cpu/jit/kernel_abi.h"
#include "msl/scalar_ir.h"

namespace holdfast::cuda {
namespace {

using llvm::IRBuilder;
using llvm::Value;
using msl::Intrinsic;

constexpr uint32_t simdgroup_width = 32, threadgroup_alignment = 16;

class EntryBuilder {
 public:
  EntryBuilder(llvm::Function& kernel, const msl::KernelInterface& interface,
               const PtxOptions& options)
      : kernel_(kernel),
        module_(*kernel.getParent()),
        interface_(interface),
        options_(options),
        layout_(parameter_layout(interface, options.guarded, options.has_inline_constants)),
        b_(kernel.getContext()) {}

  llvm::Function& run(const std::string& symbol) {
    create(symbol);
    mark();
    auto* start =
        llvm::BasicBlock::Create(module_.getContext(), "start", entry_, &entry_->getEntryBlock());
    llvm::BasicBlock* body = start->getNextNode();
    b_.SetInsertPoint(start);
    read_parameters();
    if (options_.positions == Positions::general) {
      compute_positions(body);
    } else {
      read_positions();
      b_.CreateBr(body);
    }
    // Private arrays are in the entry block.
    for (llvm::Instruction& instruction : llvm::make_early_inc_range(*body)) {
      if (auto* memory = llvm::dyn_cast<llvm::AllocaInst>(&instruction))
        memory->moveBefore(*start, start->begin());
    }
    lower_calls();
    kernel_.eraseFromParent();
    return *entry_;
  }

 private:
  llvm::Type* i32() { return b_.getInt32Ty(); }
  Value* number(uint32_t value) { return b_.getInt32(value); }

  void create(const std::string& symbol) {
    llvm::LLVMContext& context = module_.getContext();
    launch_type_ = llvm::ArrayType::get(b_.getInt8Ty(), layout_.bytes - layout_.launch);
    llvm::SmallVector<llvm::Type*, 16> types;
    for (llvm::Argument& argument : kernel_.args()) {
      const bool is_number =
          is_threadgroup(argument) || layout_.inline_places[argument.getArgNo()] != 0;
      types.push_back(is_number ? static_cast<llvm::Type*>(b_.getInt64Ty())
                                : llvm::PointerType::get(context, msl::address_space::device));
    }
    types.push_back(llvm::PointerType::get(context, 0));
    entry_ = llvm::Function::Create(llvm::FunctionType::get(b_.getVoidTy(), types, false),
                                    llvm::GlobalValue::ExternalLinkage, "", module_);
    entry_->setName(symbol);
    entry_->setCallingConv(llvm::CallingConv::PTX_Kernel);
    entry_->addFnAttr(llvm::Attribute::NoUnwind);
    entry_->addFnAttr("target-cpu", "sm_" + std::to_string(options_.target));
    entry_->splice(entry_->end(), &kernel_);
    for (unsigned i = 0; i < kernel_.arg_size(); ++i) {
      llvm::Argument& argument = *entry_->getArg(i);
      argument.takeName(kernel_.getArg(i));
      if (!argument.getType()->isPointerTy()) continue;
      const msl::KernelArgument& described = interface_.arguments[i];
      if (options_.distinct) argument.addAttr(llvm::Attribute::NoAlias);
      if (!described.written) argument.addAttr(llvm::Attribute::ReadOnly);
      uint32_t alignment = std::max(1u, described.alignment);
      if (i < options_.alignment.size()) alignment = std::max(alignment, options_.alignment[i]);
      argument.addAttr(llvm::Attribute::getWithAlignment(context, llvm::Align(alignment)));
    }
    launch_ = entry_->getArg(static_cast<unsigned>(kernel_.arg_size()));
    launch_->setName("launch");
    launch_->addAttr(llvm::Attribute::getWithByValType(context, launch_type_));
    launch_->addAttr(llvm::Attribute::getWithAlignment(
        context, llvm::Align(options_.has_inline_constants ? 16 : alignof(LaunchParameters))));
  }

  static bool is_threadgroup(const llvm::Argument& argument) {
    return argument.getType()->getPointerAddressSpace() == msl::address_space::threadgroup;
  }

  void mark() {
    llvm::LLVMContext& context = module_.getContext();
    auto annotate = [&](const char* what, uint32_t value) {
      module_.getOrInsertNamedMetadata("nvvm.annotations")
          ->addOperand(llvm::MDNode::get(
              context, {llvm::ValueAsMetadata::get(entry_), llvm::MDString::get(context, what),
                        llvm::ConstantAsMetadata::get(b_.getInt32(value))}));
    };
    annotate("kernel", 1);
    annotate("maxntidx", options_.max_threads);  // of the product of all three sides
    if (!options_.has_inline_constants) return;
    // Where pointers to the block are not followed, it is not copied.
    llvm::Metadata* number = llvm::ConstantAsMetadata::get(b_.getInt32(launch_->getArgNo() + 1));
    module_.getOrInsertNamedMetadata("nvvm.annotations")
        ->addOperand(llvm::MDNode::get(context, {llvm::ValueAsMetadata::get(entry_),
                                                 llvm::MDString::get(context, "grid_constant"),
                                                 llvm::MDNode::get(context, {number})}));
  }

  // A field of LaunchParameters.
  Value* field(size_t offset, llvm::Type* type) {
    llvm::LoadInst* load =
        b_.CreateLoad(type, b_.CreateConstInBoundsGEP1_64(b_.getInt8Ty(), launch_, offset));
    load->setMetadata(llvm::LLVMContext::MD_invariant_load,
                      llvm::MDNode::get(module_.getContext(), {}));
    return load;
  }

  void read_parameters() {
    for (llvm::Argument& old : kernel_.args()) {
      llvm::Argument* argument = entry_->getArg(old.getArgNo());
      Value* value = argument;
      if (const uint32_t place = layout_.inline_places[old.getArgNo()]) {
        value = b_.CreateConstInBoundsGEP1_64(b_.getInt8Ty(), launch_, place - layout_.launch);
      } else if (is_threadgroup(old)) {
        value = threadgroup_argument(argument, old);
      } else if (value->getType() != old.getType()) {
        value = b_.CreateAddrSpaceCast(value, old.getType());
      }
      old.replaceAllUsesWith(value);
    }
    for (uint32_t axis = 0; axis < 3; ++axis) {
      grid_[axis] = field(offsetof(LaunchParameters, grid) + 4 * axis, i32());
      full_size_[axis] = field(offsetof(LaunchParameters, threadgroup) + 4 * axis, i32());
      groups_[axis] = field(offsetof(LaunchParameters, groups) + 4 * axis, i32());
    }
  }

  Value* threadgroup_argument(Value* offset, const llvm::Argument& argument) {
    constexpr const char* name = "holdfast_dynamic";
    llvm::GlobalVariable* memory = module_.getNamedGlobal(name);
    if (!memory) {
      memory = new llvm::GlobalVariable(module_, llvm::ArrayType::get(b_.getInt8Ty(), 0), false,
                                        llvm::GlobalValue::ExternalLinkage, nullptr, name, nullptr,
                                        llvm::GlobalValue::NotThreadLocal,
                                        msl::address_space::threadgroup);
      memory->setAlignment(llvm::Align(threadgroup_alignment));
    }
    Value* rounded = b_.CreateAnd(offset, ~uint64_t{threadgroup_alignment - 1});
    Value* pointer = b_.CreateGEP(b_.getInt8Ty(), memory, rounded);
    pointer->setName(argument.getName());
    return pointer;
  }

  Value* special(llvm::Intrinsic::ID id, uint32_t least, uint32_t end) {
    llvm::CallInst* value = b_.CreateIntrinsic(id, {}, {});
    value->setMetadata(llvm::LLVMContext::MD_range,
                       llvm::MDBuilder(module_.getContext())
                           .createRange(llvm::APInt(32, least), llvm::APInt(32, end)));
    return value;
  }

  // The launch is the dispatch.
  void read_positions() {
    using namespace llvm::Intrinsic;
    constexpr ID thread[] = {nvvm_read_ptx_sreg_tid_x, nvvm_read_ptx_sreg_tid_y,
                             nvvm_read_ptx_sreg_tid_z};
    constexpr ID group[] = {nvvm_read_ptx_sreg_ctaid_x, nvvm_read_ptx_sreg_ctaid_y,
                            nvvm_read_ptx_sreg_ctaid_z};
    constexpr ID size[] = {nvvm_read_ptx_sreg_ntid_x, nvvm_read_ptx_sreg_ntid_y,
                           nvvm_read_ptx_sreg_ntid_z};
    const uint32_t most = options_.max_threads;
    for (uint32_t axis = 0; axis < 3; ++axis) {
      const uint32_t most_here = axis == 2 ? std::min(64u, most) : most;
      thread_[axis] = special(thread[axis], 0, most_here);
      group_[axis] = special(group[axis], 0, axis == 0 ? 0x7fffffffu : 0xffffu);
      size_[axis] = special(size[axis], 1, most_here + 1);
      full_size_[axis] = size_[axis];
    }
    count_ = b_.CreateMul(b_.CreateMul(size_[0], size_[1]), size_[2]);
    index_ = b_.CreateAdd(
        thread_[0],
        b_.CreateMul(size_[0], b_.CreateAdd(thread_[1], b_.CreateMul(size_[1], thread_[2]))));
  }

  // One row of blocks, each of as many threads as a whole threadgroup has.
  void compute_positions(llvm::BasicBlock* body) {
    index_ = special(llvm::Intrinsic::nvvm_read_ptx_sreg_tid_x, 0, options_.max_threads);
    Value* group = special(llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_x, 0, 0x7fffffffu);
    for (uint32_t axis = 0; axis < 3; ++axis) {
      if (axis < 2) {
        group_[axis] = b_.CreateURem(group, groups_[axis]);
        group = b_.CreateUDiv(group, groups_[axis]);
      } else {
        group_[axis] = group;
      }
      // Of a partial threadgroup at the edge of the grid: what is left.
      Value* rest = b_.CreateSub(grid_[axis], b_.CreateMul(group_[axis], full_size_[axis]));
      size_[axis] = b_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, full_size_[axis], rest);
    }
    count_ = b_.CreateMul(b_.CreateMul(size_[0], size_[1]), size_[2]);
    auto* leave = llvm::BasicBlock::Create(module_.getContext(), "leave", entry_);
    auto* stay = llvm::BasicBlock::Create(module_.getContext(), "stay", entry_, body);
    b_.CreateCondBr(b_.CreateICmpULT(index_, count_), stay, leave);
    b_.SetInsertPoint(leave);
    b_.CreateRetVoid();
    b_.SetInsertPoint(stay);
    thread_[0] = b_.CreateURem(index_, size_[0]);
    Value* row = b_.CreateUDiv(index_, size_[0]);
    thread_[1] = b_.CreateURem(row, size_[1]);
    thread_[2] = b_.CreateUDiv(row, size_[1]);
    b_.CreateBr(body);
  }

  // What guards (guard_accesses.h) leave to their target.
  void lower_guards() {
    auto replace = [&](const char* name, auto value_of_call) {
      llvm::Function* function = module_.getFunction(name);
      if (!function) return;
      for (llvm::User* user : llvm::make_early_inc_range(function->users())) {
        auto* call = llvm::cast<llvm::CallInst>(user);
        b_.SetInsertPoint(call);
        Value* value = value_of_call(*call);
        if (!call->getType()->isVoidTy()) call->replaceAllUsesWith(value);
        call->eraseFromParent();
      }
      function->eraseFromParent();
    };
    auto range = [&](size_t member) {
      return [this, member](llvm::CallInst& call) -> Value* {
        const auto number = llvm::cast<llvm::ConstantInt>(call.getArgOperand(0))->getZExtValue();
        return field(layout_.guard - layout_.launch + sizeof(GuardParameters) +
                         number * sizeof(exec::ArgumentRange) + member,
                     b_.getInt64Ty());
      };
    };
    replace(jit::range_before_function, range(offsetof(exec::ArgumentRange, before)));
    replace(jit::range_bytes_function, range(offsetof(exec::ArgumentRange, bytes)));
    replace(jit::outside_function, [&](llvm::CallInst& call) -> Value* {
      Value* report = field(layout_.guard - layout_.launch + offsetof(GuardParameters, report),
                            b_.getInt64Ty());
      llvm::Function& reporting = report_function();
      return b_.CreateCall(&reporting, {call.getArgOperand(0), call.getArgOperand(1), report});
    });
  }

  // Writes the OutsideReport of an access, if it is the first one of its kind.
  llvm::Function& report_function() {
    if (llvm::Function* known = module_.getFunction(report_function_name)) return *known;
    llvm::LLVMContext& context = module_.getContext();
    auto* pointer = llvm::PointerType::get(context, 0);
    auto* function = llvm::Function::Create(
        llvm::FunctionType::get(b_.getVoidTy(), {pointer, b_.getInt64Ty(), b_.getInt64Ty()}, false),
        llvm::GlobalValue::InternalLinkage, report_function_name, module_);
    function->addFnAttr(llvm::Attribute::NoInline);
    function->addFnAttr(llvm::Attribute::NoUnwind);
    function->addFnAttr("target-cpu", "sm_" + std::to_string(options_.target));
    auto* start = llvm::BasicBlock::Create(context, "start", function);
    auto* first = llvm::BasicBlock::Create(context, "first", function);
    auto* end = llvm::BasicBlock::Create(context, "end", function);
    IRBuilder<> b(start);
    auto at = [&](Value* base, size_t offset) {
      return b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), base, offset);
    };
    Value* site = function->getArg(0);
    Value* writes = b.CreateICmpNE(
        b.CreateLoad(b.getInt8Ty(), at(site, offsetof(jit::OutsideSite, writes))), b.getInt8(0));
    Value* reports = b.CreateIntToPtr(function->getArg(2),
                                      llvm::PointerType::get(context, msl::address_space::device));
    Value* report = b.CreateSelect(writes, at(reports, offsetof(GuardReport, write)),
                                   at(reports, offsetof(GuardReport, read)));
    Value* claimed = b.CreateAtomicRMW(llvm::AtomicRMWInst::Xchg, report, b.getInt32(1),
                                       llvm::Align(4), llvm::AtomicOrdering::Monotonic);
    b.CreateCondBr(b.CreateICmpEQ(claimed, b.getInt32(0)), first, end);
    b.SetInsertPoint(first);
    b.CreateStore(function->getArg(1), at(report, offsetof(OutsideReport, offset)));
    b.CreateMemCpy(at(report, offsetof(OutsideReport, site)), llvm::Align(8), site, llvm::Align(4),
                   sizeof(jit::OutsideSite));
    b.CreateBr(end);
    b.SetInsertPoint(end);
    b.CreateRetVoid();
    return *function;
  }

  void lower_calls() {
    if (options_.guarded) lower_guards();
    llvm::SmallVector<llvm::CallInst*, 32> calls;
    for (llvm::Instruction& instruction : llvm::instructions(*entry_)) {
      if (jit::kernel_intrinsic(instruction))
        calls.push_back(llvm::cast<llvm::CallInst>(&instruction));
    }
    for (llvm::CallInst* call : calls) {
      b_.SetInsertPoint(call);
      call->replaceAllUsesWith(value_of(*call, *jit::kernel_intrinsic(*call)));
      call->eraseFromParent();
    }
  }

  Value* value_of(llvm::CallInst& call, Intrinsic intrinsic) {
    auto axis_of = [&](const std::array<Value*, 3>& values) -> Value* {
      Value* axis = call.getArgOperand(0);
      if (auto* constant = llvm::dyn_cast<llvm::ConstantInt>(axis))
        return values[std::min<uint64_t>(constant->getZExtValue(), 2)];
      return b_.CreateSelect(
          b_.CreateICmpEQ(axis, number(0)), values[0],
          b_.CreateSelect(b_.CreateICmpEQ(axis, number(1)), values[1], values[2]));
    };
    switch (intrinsic) {
      case Intrinsic::thread_position_in_threadgroup:
        return axis_of(thread_);
      case Intrinsic::threadgroup_position_in_grid:
        return axis_of(group_);
      case Intrinsic::threads_per_threadgroup:
        return axis_of(size_);
      case Intrinsic::dispatch_threads_per_threadgroup:
        return axis_of(full_size_);
      case Intrinsic::threadgroups_per_grid:
        return axis_of(groups_);
      case Intrinsic::threads_per_grid:
        return axis_of(grid_);
      case Intrinsic::simdgroups_per_threadgroup:
        return b_.CreateUDiv(b_.CreateAdd(count_, number(simdgroup_width - 1)),
                             number(simdgroup_width));
      case Intrinsic::simdgroup_index_in_threadgroup:
        return b_.CreateUDiv(index_, number(simdgroup_width));
      case Intrinsic::thread_index_in_simdgroup:
        return special(llvm::Intrinsic::nvvm_read_ptx_sreg_laneid, 0, simdgroup_width);
      case Intrinsic::poll:
        return poll();
      default:
        throw std::logic_error("[jit] no lowering of " + call.getCalledFunction()->getName().str());
    }
  }

  Value* poll() {
    Value* address =
        b_.CreateLoad(llvm::PointerType::get(module_.getContext(), msl::address_space::device),
                      b_.CreateConstInBoundsGEP1_64(b_.getInt8Ty(), launch_,
                                                    offsetof(LaunchParameters, cancelled)));
    Value* flag = b_.CreateLoad(i32(), address, /*isVolatile=*/true);
    return b_.CreateZExt(b_.CreateICmpNE(flag, number(0)), i32());
  }

  llvm::Function& kernel_;
  llvm::Module& module_;
  const msl::KernelInterface& interface_;
  const PtxOptions& options_;
  const ParameterLayout layout_;
  IRBuilder<> b_;
  llvm::Function* entry_ = nullptr;
  llvm::ArrayType* launch_type_ = nullptr;
  llvm::Argument* launch_ = nullptr;
  // By axis, as in intrinsics.def.
  std::array<Value*, 3> thread_{}, group_{}, size_{}, full_size_{}, groups_{}, grid_{};
  Value *index_ = nullptr, *count_ = nullptr;  // of the thread in its threadgroup, of threads
};

}  // namespace

llvm::Function& make_entry(llvm::Function& kernel, const msl::KernelInterface& interface,
                           const PtxOptions& options, const std::string& symbol) {
  return EntryBuilder(kernel, interface, options).run(symbol);
}

}  // namespace holdfast::cuda
