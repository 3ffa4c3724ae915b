// The function that a kernel becomes: loops over groups and simdgroups, what is known about them,
// where memory lies.
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Module.h>

#include <algorithm>
#include <cstddef>

#include "devices/cpu/jit/compiler/widen/emitter.h"
#include "devices/cpu/jit/compiler/widen/intrinsics.h"
#include "devices/cpu/jit/kernel_abi.h"

namespace holdfast::jit {

using llvm::cast;
using llvm::dyn_cast;
using llvm::Instruction;
using msl::Intrinsic;

void Emitter::make_function() {
  auto* pointer = llvm::PointerType::get(context_, 0);
  auto* type = llvm::FunctionType::get(llvm::Type::getVoidTy(context_), {pointer}, false);
  llvm::StringRef name = scalar_.getName();
  name.consume_back(".normal");
  group_ =
      llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage, name + ".group", module_);
  group_->addFnAttr(llvm::Attribute::NoUnwind);
  group_->addFnAttr("prefer-vector-width", "512");
  group_->addFnAttr("min-legal-vector-width", "512");
  context_pointer_ = group_->getArg(0);
  context_pointer_->setName("context");
  group_->getArg(0)->addAttr(llvm::Attribute::NoAlias);
  out_.function = group_;
  entry_ = new_block("entry");
  out_.group = new_block("group");
  out_.head = new_block("simdgroup");
  out_.start = new_block("simdgroup.start");
  out_.next = new_block("simdgroup.next");
  out_.done = new_block("done");
  if (uses_barrier_) {
    auto* marker = llvm::FunctionType::get(llvm::Type::getVoidTy(context_), {}, false);
    out_.barrier = llvm::Function::Create(marker, llvm::GlobalValue::InternalLinkage,
                                          "holdfast.barrier", module_);
  }

  b_.SetInsertPoint(entry_);
  auto field = [&](size_t offset, llvm::Type* field_type, const llvm::Twine& field_name) {
    auto* load = b_.CreateLoad(
        field_type, b_.CreateConstInBoundsGEP1_64(b_.getInt8Ty(), context_pointer_, offset),
        field_name);
    load->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(context_, {}));
    return load;
  };
  auto three = [&](size_t offset, Value* values[3], const char* what) {
    for (size_t i = 0; i < 3; ++i) values[i] = field(offset + 4 * i, b_.getInt32Ty(), what);
  };
  cancelled_ = field(offsetof(GroupContext, cancelled), pointer, "cancelled");
  Value* buffers = field(offsetof(GroupContext, buffers), pointer, "buffers");
  for (llvm::Argument& argument : scalar_.args()) {
    auto* load = b_.CreateLoad(
        pointer, b_.CreateConstInBoundsGEP1_64(b_.getPtrTy(), buffers, argument.getArgNo()),
        argument.getName());
    load->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(context_, {}));
    known_[&argument] = load;
  }
  Value *first[3], *group[3], *full[3], *groups[3], *grid[3];
  three(offsetof(GroupContext, group), first, "first");
  three(offsetof(GroupContext, size), size_, "size");
  three(offsetof(GroupContext, full_size), full, "full_size");
  three(offsetof(GroupContext, groups), groups, "groups");
  three(offsetof(GroupContext, grid), grid, "grid");
  out_.simdgroups = field(offsetof(GroupContext, simdgroups), b_.getInt32Ty(), "simdgroups");
  Value* count = field(offsetof(GroupContext, count), b_.getInt64Ty(), "count");
  threadgroup_memory_ =
      field(offsetof(GroupContext, threadgroup_memory), pointer, "threadgroup_memory");
  Value* frames = field(offsetof(GroupContext, frame), pointer, "frames");
  b_.CreateBr(out_.group);
  b_.SetInsertPoint(out_.group);
  llvm::PHINode *rest = b_.CreatePHI(count->getType(), 2, "groups.left"), *places[3];
  rest->addIncoming(count, entry_);
  for (int axis = 0; axis < 3; ++axis) {
    group[axis] = places[axis] = b_.CreatePHI(b_.getInt32Ty(), 2, "group");
    places[axis]->addIncoming(first[axis], entry_);
  }
  for (Instruction& instruction : llvm::instructions(scalar_)) {
    std::optional<Intrinsic> intrinsic = kernel_intrinsic(instruction);
    if (!intrinsic) continue;
    auto axis = [&] {
      return cast<llvm::ConstantInt>(cast<llvm::CallInst>(instruction).getArgOperand(0))
          ->getZExtValue();
    };
    switch (*intrinsic) {
      case Intrinsic::threadgroup_position_in_grid:
        known_[&instruction] = group[axis()];
        break;
      case Intrinsic::threads_per_threadgroup:
        known_[&instruction] = size_[axis()];
        break;
      case Intrinsic::dispatch_threads_per_threadgroup:
        known_[&instruction] = full[axis()];
        break;
      case Intrinsic::threadgroups_per_grid:
        known_[&instruction] = groups[axis()];
        break;
      case Intrinsic::threads_per_grid:
        known_[&instruction] = grid[axis()];
        break;
      case Intrinsic::simdgroups_per_threadgroup:
        known_[&instruction] = out_.simdgroups;
        break;
      case Intrinsic::thread_index_in_simdgroup:
        known_[&instruction] = b_.getInt32(0);
        break;
      default:
        break;
    }
  }
  Value* threads = b_.CreateMul(b_.CreateMul(size_[0], size_[1]), size_[2]);
  Value* flat = b_.CreateICmpEQ(b_.CreateMul(size_[1], size_[2]), b_.getInt32(1));
  // What the converged version takes for granted: see Assumption.
  Value* group_eligible = b_.getTrue();
  if (uses_position_) {
    Value* all = b_.CreateOr(b_.CreateOr(grid[0], grid[1]), grid[2]);
    group_eligible = b_.CreateICmpSGE(all, b_.getInt32(0));
    if (shapes_[converged]->needs_aligned_grid()) {
      Value* start = b_.CreateMul(group[0], full[0]);
      Value* aligned =
          b_.CreateICmpEQ(b_.CreateAnd(start, b_.getInt32(simdgroup_width - 1)), b_.getInt32(0));
      group_eligible = b_.CreateAnd(group_eligible, aligned);
    }
  }
  b_.CreateBr(out_.head);

  b_.SetInsertPoint(out_.head);
  out_.simdgroup = b_.CreatePHI(b_.getInt32Ty(), 2, "simdgroup");
  out_.simdgroup->addIncoming(b_.getInt32(0), out_.group);
  Value* index = b_.CreateMul(out_.simdgroup, b_.getInt32(simdgroup_width));
  remaining_ = b_.CreateSub(threads, index);
  eligible_ =
      b_.CreateAnd(group_eligible, b_.CreateICmpUGE(remaining_, b_.getInt32(simdgroup_width)));
  // Stand-ins until the frame's size is known.
  out_.frame_size = cast<Instruction>(b_.CreateFreeze(b_.getInt64(0), "frame_size"));
  out_.frame = cast<Instruction>(b_.CreateGEP(
      b_.getInt8Ty(), frames,
      b_.CreateMul(b_.CreateZExt(out_.simdgroup, b_.getInt64Ty()), out_.frame_size), "frame"));
  for (Instruction& instruction : llvm::instructions(scalar_)) {
    if (is_call_of(instruction, Intrinsic::simdgroup_index_in_threadgroup))
      known_[&instruction] = out_.simdgroup;
  }
  if (uses_position_) place_positions(index, flat);
  b_.CreateBr(out_.start);

  b_.SetInsertPoint(out_.next);
  Value* following = b_.CreateAdd(out_.simdgroup, b_.getInt32(1));
  out_.simdgroup->addIncoming(following, out_.next);
  b_.CreateCondBr(b_.CreateICmpULT(following, out_.simdgroups), out_.head, out_.done);
  b_.SetInsertPoint(out_.done);
  Value* left = b_.CreateSub(rest, llvm::ConstantInt::get(rest->getType(), 1));
  rest->addIncoming(left, out_.done);
  Value* carry = b_.getTrue();
  for (int axis = 0; axis < 3; ++axis) {
    Value* next = b_.CreateAdd(group[axis], b_.CreateZExt(carry, b_.getInt32Ty()));
    carry = b_.CreateICmpEQ(next, groups[axis]);
    places[axis]->addIncoming(b_.CreateSelect(carry, b_.getInt32(0), next), out_.done);
  }
  llvm::LoadInst* stop = b_.CreateAlignedLoad(b_.getInt32Ty(), cancelled_, llvm::Align(4));
  stop->setAtomic(llvm::AtomicOrdering::Monotonic);
  Value* go_on = b_.CreateAnd(b_.CreateICmpNE(left, llvm::ConstantInt::get(left->getType(), 0)),
                              b_.CreateICmpEQ(stop, b_.getInt32(0)));
  Block* end = new_block("end");
  b_.CreateCondBr(go_on, out_.group, end);
  b_.SetInsertPoint(end);
  b_.CreateRetVoid();
}

// Positions of threads in the group, as they are in the converged version: of lane 0.
void Emitter::place_positions(Value* index, Value* in_one_row) {
  // A group of one row needs no division.
  Block* divide = new_block("positions");
  Block* positions = new_block("simdgroup.positions");
  Block* from = b_.GetInsertBlock();
  b_.CreateCondBr(in_one_row, positions, divide);
  b_.SetInsertPoint(divide);
  Value* row = b_.CreateUDiv(index, size_[0]);
  Value* x = b_.CreateSub(index, b_.CreateMul(row, size_[0]));
  Value* z = b_.CreateUDiv(row, size_[1]);
  Value* y = b_.CreateSub(row, b_.CreateMul(z, size_[1]));
  Value* fits = b_.CreateICmpULE(b_.CreateAdd(x, b_.getInt32(simdgroup_width)), size_[0]);
  Value* aligned =
      b_.CreateICmpEQ(b_.CreateAnd(x, b_.getInt32(simdgroup_width - 1)), b_.getInt32(0));
  Value* regular = b_.CreateAnd(eligible_, b_.CreateAnd(fits, aligned));
  b_.CreateBr(positions);
  b_.SetInsertPoint(positions);
  auto choose = [&](Value* in_row, Value* divided) {
    llvm::PHINode* phi = b_.CreatePHI(divided->getType(), 2);
    phi->addIncoming(in_row, from);
    phi->addIncoming(divided, divide);
    return phi;
  };
  position_[0] = choose(index, x);
  position_[1] = choose(b_.getInt32(0), y);
  position_[2] = choose(b_.getInt32(0), z);
  eligible_ = choose(eligible_, regular);
  for (Instruction& instruction : llvm::instructions(scalar_)) {
    if (!is_call_of(instruction, Intrinsic::thread_position_in_threadgroup)) continue;
    uint64_t axis =
        cast<llvm::ConstantInt>(cast<llvm::CallInst>(instruction).getArgOperand(0))->getZExtValue();
    known_converged_[&instruction] = position_[axis];
  }
}

void Emitter::place_globals() {
  b_.SetInsertPoint(entry_->getTerminator());
  uint64_t used = 0;
  for (llvm::GlobalVariable& global : module_.globals()) {
    if (global.getAddressSpace() == msl::address_space::threadgroup) {
      llvm::Align alignment =
          std::max(llvm::Align(16),
                   global.getAlign().value_or(layout_.getPrefTypeAlign(global.getValueType())));
      used = llvm::alignTo(used, alignment);
      known_[&global] = b_.CreateConstInBoundsGEP1_64(b_.getInt8Ty(), threadgroup_memory_, used,
                                                      global.getName());
      used += layout_.getTypeAllocSize(global.getValueType());
    } else {
      bool is_used = llvm::any_of(global.users(), [&](const llvm::User* user) {
        auto* instruction = dyn_cast<Instruction>(user);
        return instruction && instruction->getFunction() == &scalar_;
      });
      if (!is_used) continue;
      known_[&global] = global.getAddressSpace() == 0
                            ? static_cast<Value*>(&global)
                            : llvm::ConstantExpr::getAddrSpaceCast(&global, b_.getPtrTy());
    }
  }
  result_.threadgroup_bytes = static_cast<uint32_t>(used);
}

// Private memory lies in the frame when a simdgroup stops at barriers, or when it is large; else it
// is one piece of stack for all simdgroups.
void Emitter::place_private_memory() {
  constexpr uint64_t most_on_stack = 64 * 1024;
  uint64_t total = 0;
  for (const auto& [place, block] : memory_.blocks) total += block.lane_bytes * simdgroup_width;
  bool in_frame = uses_barrier_ || total > most_on_stack;
  if (uses_barrier_) out_.frame_bytes = 64;  // where the simdgroup goes on
  for (Instruction& instruction : llvm::instructions(scalar_)) {
    auto* place = dyn_cast<llvm::AllocaInst>(&instruction);
    if (!place) continue;
    const PrivateMemory::Block& block = memory_.blocks.find(place)->second;
    uint64_t bytes = block.lane_bytes * simdgroup_width;
    if (in_frame) {
      out_.frame_bytes = llvm::alignTo(out_.frame_bytes, std::max<uint64_t>(64, block.alignment));
      b_.SetInsertPoint(out_.head, std::next(out_.frame->getIterator()));
      known_[place] =
          b_.CreateConstInBoundsGEP1_64(b_.getInt8Ty(), out_.frame, out_.frame_bytes, "private");
      out_.frame_bytes += bytes;
    } else {
      b_.SetInsertPoint(entry_, entry_->begin());
      llvm::AllocaInst* made =
          b_.CreateAlloca(llvm::ArrayType::get(b_.getInt8Ty(), bytes), nullptr, "private");
      made->setAlignment(llvm::Align(std::max<uint64_t>(64, block.alignment)));
      known_[place] = made;
    }
  }
  if (out_.frame_bytes > (uint64_t{1} << 30)) throw Declined{"too much private memory"};
}

}  // namespace holdfast::jit
