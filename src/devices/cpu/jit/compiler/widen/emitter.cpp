#include "devices/cpu/jit/compiler/widen/emitter.h"

#include <llvm/ADT/PostOrderIterator.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/IR/Module.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>
#include <llvm/Transforms/Utils/PromoteMemToReg.h>

#include <algorithm>
#include <cstddef>

#include "devices/cpu/jit/compiler/widen/intrinsics.h"
#include "devices/cpu/jit/kernel_abi.h"

namespace holdfast::jit {

using llvm::cast;
using llvm::dyn_cast;
using llvm::Instruction;
using llvm::isa;
using msl::Intrinsic;

Emitter::Emitter(llvm::Function& scalar, ControlFlow& flow, const PrivateMemory& memory,
                 const Shapes& converged_shapes, const Shapes& masked_shapes,
                 const Linearisation& linearisation, const LoopFacts& loops, InstructionSet set,
                 WidenResult& result)
    : scalar_(scalar),
      module_(*scalar.getParent()),
      context_(scalar.getContext()),
      layout_(scalar.getParent()->getDataLayout()),
      flow_(flow),
      memory_(memory),
      shapes_{&converged_shapes, &masked_shapes},
      linearisation_(linearisation),
      loops_(loops),
      set_(set),
      result_(result),
      b_(scalar.getContext()),
      lanes_(b_, set) {}

GroupFunction Emitter::run() {
  for (const Instruction& instruction : llvm::instructions(scalar_)) {
    if (is_call_of(instruction, Intrinsic::threadgroup_barrier)) uses_barrier_ = true;
    if (is_call_of(instruction, Intrinsic::thread_position_in_threadgroup)) uses_position_ = true;
  }
  make_function();
  place_globals();
  place_private_memory();
  hoist_uniform();
  find_escaping();
  find_live();
  for (Version version : {converged, masked}) {
    for (Block* block : linearisation_.order())
      blocks_[version][block] =
          new_block((version == converged ? "converged." : "masked.") + block->getName());
  }
  Block* first = &scalar_.getEntryBlock();
  b_.SetInsertPoint(out_.start);
  // The threads of the group that this simdgroup has.
  Value* exists = b_.CreateICmpULT(lanes_.index(b_.getInt32Ty()), lanes_.splat(remaining_));
  b_.CreateStore(exists, pending(first));
  b_.CreateCondBr(eligible_, blocks_[converged][first], blocks_[masked][first]);
  for (Block* block : linearisation_.order()) {
    emit_block(converged, block);
    emit_block(masked, block);
  }
  // No lane waits anywhere when a simdgroup begins, and nothing is left of the one before.
  b_.SetInsertPoint(out_.start, out_.start->begin());
  llvm::DenseSet<const llvm::AllocaInst*> waiting;
  for (auto& [block, place] : pending_) waiting.insert(place);
  for (llvm::AllocaInst* place : all_variables_) {
    if (place == pending(first)) continue;
    llvm::Type* type = place->getAllocatedType();
    bool is_pending = waiting.contains(place);
    b_.CreateStore(is_pending ? llvm::Constant::getNullValue(type) : llvm::PoisonValue::get(type),
                   place);
  }
  llvm::DominatorTree dominators(*group_);
  llvm::PromoteMemToReg(all_variables_, dominators);
  return out_;
}

Emitter::Block* Emitter::new_block(const llvm::Twine& name) {
  return Block::Create(context_, name, group_);
}

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
  if (uses_position_) {
    // A group of one row needs no division.
    Block* divide = new_block("positions");
    Block* positions = new_block("simdgroup.positions");
    Block* from = b_.GetInsertBlock();
    b_.CreateCondBr(flat, positions, divide);
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
      uint64_t axis = cast<llvm::ConstantInt>(cast<llvm::CallInst>(instruction).getArgOperand(0))
                          ->getZExtValue();
      known_converged_[&instruction] = position_[axis];
    }
  }
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

bool Emitter::can_hoist(const Instruction& instruction) const {
  if (isa<llvm::PHINode, llvm::AllocaInst>(instruction) || instruction.isTerminator()) return false;
  if (kernel_intrinsic(instruction)) return false;
  if (instruction.mayReadOrWriteMemory() || !llvm::isSafeToSpeculativelyExecute(&instruction))
    return false;
  return llvm::all_of(instruction.operands(), [&](const Value* operand) {
    return isa<llvm::Constant>(operand) || known_.contains(operand);
  });
}

// What depends on the group alone is computed once, before the loop over simdgroups.
void Emitter::hoist_uniform() {
  b_.SetInsertPoint(out_.group->getTerminator());
  version_ = converged;
  auto of_group = [&](const Value* value) {
    auto* held = llvm::dyn_cast_or_null<Instruction>(known_.lookup(value));
    return isa<llvm::Constant>(value) || !held || held->getParent() == entry_ ||
           held->getParent() == out_.group;
  };
  llvm::ReversePostOrderTraversal<llvm::Function*> order(&scalar_);
  for (Block* block : order) {
    for (Instruction& instruction : *block) {
      if (known_.contains(&instruction) || !can_hoist(instruction)) continue;
      if (!llvm::all_of(instruction.operands(), of_group)) continue;
      if (shapes_[converged]->of(&instruction).kind != Shape::uniform ||
          shapes_[masked]->of(&instruction).kind != Shape::uniform)
        continue;
      if (auto* gep = dyn_cast<llvm::GetElementPtrInst>(&instruction)) {
        known_[&instruction] = emit_pointer(*gep);
      } else {
        known_[&instruction] = emit_scalar(instruction);
      }
    }
  }
  held_.clear();
  vectors_.clear();
}

void Emitter::find_escaping() {
  for (Instruction& instruction : llvm::instructions(scalar_)) {
    if (instruction.getType()->isVoidTy() || known_.contains(&instruction)) continue;
    bool escapes = isa<llvm::PHINode>(instruction);
    for (const llvm::User* user : instruction.users()) {
      auto* use = cast<Instruction>(user);
      escapes |= use->getParent() != instruction.getParent() || isa<llvm::PHINode>(use);
    }
    if (isa<llvm::AtomicCmpXchgInst>(instruction)) {
      continue;
    }
    if (escapes) escaping_.insert(&instruction);
  }
}

// Held differently in the two versions.
bool Emitter::is_dual(const Value* value) const {
  if (!isa<Instruction>(value) || known_.contains(value)) return false;
  Shape a = shapes_[converged]->of(value), b = shapes_[masked]->of(value);
  return !a.moves_like(b);
}

void Emitter::find_live() {
  llvm::DenseMap<const Block*, llvm::DenseSet<const Value*>> defined;
  for (Block& block : scalar_) {
    live_in_[&block];
    live_out_[&block];
    for (Instruction& instruction : block) defined[&block].insert(&instruction);
  }
  for (bool changed = true; changed;) {
    changed = false;
    for (auto it = linearisation_.order().rbegin(); it != linearisation_.order().rend(); ++it) {
      Block* block = *it;
      llvm::DenseSet<const Value*> out;
      for (Block* next : llvm::successors(block)) {
        for (const Value* value : live_in_[next]) {
          auto* phi = dyn_cast<llvm::PHINode>(value);
          if (!phi || phi->getParent() != next) out.insert(value);
        }
        for (llvm::PHINode& phi : next->phis()) {
          const Value* incoming = phi.getIncomingValueForBlock(block);
          if (is_dual(incoming)) out.insert(incoming);
        }
      }
      llvm::DenseSet<const Value*> in;
      for (const Value* value : out) {
        if (!defined[block].contains(value)) in.insert(value);
      }
      for (Instruction& instruction : *block) {
        if (isa<llvm::PHINode>(instruction)) {
          if (is_dual(&instruction)) in.insert(&instruction);
          continue;
        }
        for (const Value* operand : instruction.operands()) {
          if (is_dual(operand) && !defined[block].contains(operand)) in.insert(operand);
        }
      }
      if (in.size() != live_in_[block].size() || out.size() != live_out_[block].size()) {
        live_in_[block] = std::move(in);
        live_out_[block] = std::move(out);
        changed = true;
      }
    }
  }
}

llvm::AllocaInst* Emitter::make_variable(llvm::Type* type, const llvm::Twine& name) {
  llvm::IRBuilder<> at_start(entry_, entry_->begin());
  llvm::AllocaInst* made = at_start.CreateAlloca(type, nullptr, name);
  all_variables_.push_back(made);
  return made;
}

llvm::AllocaInst* Emitter::variable(const Value* value, Version version) {
  if (!is_dual(value)) version = converged;
  llvm::AllocaInst*& place = variables_[version][value];
  if (!place) {
    Shape s = shapes_[version]->of(value);
    place = make_variable(s.is_scalar() ? plain(value->getType()) : wide(value->getType()),
                          value->getName());
  }
  return place;
}

llvm::AllocaInst* Emitter::pending(Block* block) {
  llvm::AllocaInst*& place = pending_[block];
  if (!place) place = make_variable(lanes_.all_ones()->getType(), "pending." + block->getName());
  return place;
}

llvm::AllocaInst* Emitter::mask_of(Block* block) {
  llvm::AllocaInst*& place = masks_[block];
  if (!place) place = make_variable(lanes_.all_ones()->getType(), "mask." + block->getName());
  return place;
}

llvm::AllocaInst* Emitter::condition_of(Block* block) {
  llvm::AllocaInst*& place = conditions_[block];
  if (!place) place = make_variable(lanes_.all_ones()->getType(), "condition." + block->getName());
  return place;
}

void Emitter::emit_block(Version version, Block* block) {
  version_ = version;
  held_.clear();
  vectors_.clear();
  exchanges_.clear();
  products_.clear();
  current_mask_ = nullptr;
  b_.SetInsertPoint(blocks_[version][block]);
  if (version == masked) {
    emit_mask(block);
  } else {
    // Wherever the masked version asks for this block's mask later.
    b_.CreateStore(lanes_.all_ones(), mask_of(block));
    emit_guards(block);
  }
  for (Instruction& instruction : *block) {
    if (isa<llvm::PHINode>(instruction)) continue;
    if (instruction.isTerminator()) break;
    emit_instruction(instruction);
  }
  emit_end(block);
}

// The extensions at the start of a block that hold only if no lane wraps around. Where one does,
// the simdgroup goes on in the masked version, which takes nothing for granted.
void Emitter::emit_guards(Block* block) {
  const auto& guarded = shapes_[converged]->guarded();
  Value* holds = nullptr;
  for (Instruction& instruction : *block) {
    if (isa<llvm::PHINode>(instruction)) continue;
    if (!guarded.contains(&instruction)) break;
    if (known_.contains(&instruction)) continue;
    Value* base = scalar_of(instruction.getOperand(0));
    Shape s = shape(instruction.getOperand(0));
    int64_t lowest = 0, highest = 0;
    for (int64_t lane = 0; lane < simdgroup_width; ++lane) {
      lowest = std::min(lowest, s.offset(lane));
      highest = std::max(highest, s.offset(lane));
    }
    bool is_signed = isa<llvm::SExtInst>(instruction);
    auto in_order = [&](int64_t offset) {
      Value* end = b_.CreateAdd(
          base, llvm::ConstantInt::get(base->getType(), static_cast<uint64_t>(offset), true));
      Value *above = offset > 0 ? end : base, *below = offset > 0 ? base : end;
      return is_signed ? b_.CreateICmpSGE(above, below) : b_.CreateICmpUGE(above, below);
    };
    Value* fits = in_order(highest != 0 ? highest : lowest);
    if (highest != 0 && lowest != 0) fits = b_.CreateAnd(fits, in_order(lowest));
    holds = holds ? b_.CreateAnd(holds, fits) : fits;
  }
  if (!holds) return;
  Block* go_on = new_block(block->getName() + ".fits");
  Block* leave = new_block(block->getName() + ".wraps");
  llvm::MDBuilder metadata(context_);
  b_.CreateCondBr(b_.CreateFreeze(holds), go_on, leave, metadata.createBranchWeights(2000, 1));
  b_.SetInsertPoint(leave);
  auto held = held_;
  auto vectors = vectors_;
  to_masked(live_in_[block]);
  b_.CreateStore(lanes_.all_ones(), pending(block));
  b_.CreateBr(blocks_[masked][block]);
  b_.SetInsertPoint(go_on);
  held_ = std::move(held);
  vectors_ = std::move(vectors);
}

// From the converged version: what the masked one holds as vectors.
void Emitter::to_masked(const llvm::DenseSet<const Value*>& live) {
  for (const Value* value : live) {
    Value* vector = as_vector(scalar_of(value), shapes_[converged]->of(value));
    b_.CreateStore(vector, variable(value, masked));
  }
}

void Emitter::emit_mask(Block* block) {
  Value* now = nullptr;
  if (Block* above = linearisation_.same_mask(block)) {
    now = b_.CreateLoad(lanes_.all_ones()->getType(), mask_of(above));
  } else {
    now = b_.CreateLoad(lanes_.all_ones()->getType(), pending(block));
  }
  b_.CreateStore(llvm::Constant::getNullValue(now->getType()), pending(block));
  b_.CreateStore(now, mask_of(block));
  current_mask_ = now;
  if (may_reenter(block)) emit_reentry(block, now);
}

// Where lanes that parted have come together again.
bool Emitter::may_reenter(Block* block) const {
  if (!linearisation_.same_mask(block)) return false;
  if (isa<llvm::ReturnInst>(block->getTerminator())) return false;
  if (llvm::pred_size(block) >= 2) return true;
  Block* only = block->getSinglePredecessor();
  return only && flow_.loops.getLoopFor(only) != flow_.loops.getLoopFor(block);
}

void Emitter::emit_reentry(Block* block, Value* now) {
  Value* possible = b_.CreateAnd(eligible_, lanes_.all(now));
  Block* together = new_block(block->getName() + ".together");
  Block* apart = new_block(block->getName() + ".apart");
  b_.CreateCondBr(possible, together, apart);
  b_.SetInsertPoint(together);
  // What the converged version takes to be uniform or linear must be so.
  Value* holds = nullptr;
  std::vector<Assignment> assignments;
  for (const Value* value : live_in_[block]) {
    llvm::AllocaInst* place = variable(value, masked);
    Value* vector = b_.CreateLoad(place->getAllocatedType(), place);
    Value* first = b_.CreateExtractElement(vector, uint64_t{0});
    Value* expected = as_vector(first, shapes_[converged]->of(value));
    if (vector->getType()->isFPOrFPVectorTy()) {
      auto* integers = llvm::FixedVectorType::get(
          b_.getIntNTy(vector->getType()->getScalarSizeInBits()), simdgroup_width);
      vector = b_.CreateBitCast(vector, integers);
      expected = b_.CreateBitCast(expected, integers);
    }
    Value* equal = lanes_.all(b_.CreateFreeze(b_.CreateICmpEQ(vector, expected)));
    holds = holds ? b_.CreateAnd(holds, equal) : equal;
    assignments.push_back({variable(value, converged), first});
  }
  perform(assignments);
  if (holds) {
    b_.CreateCondBr(holds, blocks_[converged][block], apart);
  } else {
    b_.CreateBr(blocks_[converged][block]);
  }
  b_.SetInsertPoint(apart);
}

void Emitter::emit_end(Block* block) {
  Instruction* end = block->getTerminator();
  if (isa<llvm::ReturnInst>(end)) {
    b_.CreateBr(out_.next);
  } else if (version_ == converged) {
    emit_converged_end(*cast<llvm::BranchInst>(end));
  } else {
    emit_masked_end(*cast<llvm::BranchInst>(end));
  }
}

// The phis of `to` as they are when lanes come from `from`.
void Emitter::collect_edge(Block* from, Block* to, Value* edge_mask,
                           std::vector<Assignment>& result) {
  for (llvm::PHINode& phi : to->phis()) {
    const Value* incoming = phi.getIncomingValueForBlock(from);
    Shape s = shape(&phi);
    llvm::AllocaInst* place = variable(&phi, version_);
    if (s.is_scalar()) {
      result.push_back({place, scalar_of(incoming)});
      continue;
    }
    Value* value = vector_of(incoming);
    if (edge_mask)
      value = b_.CreateSelect(edge_mask, value, b_.CreateLoad(place->getAllocatedType(), place));
    result.push_back({place, value});
  }
}

void Emitter::perform(llvm::ArrayRef<Assignment> assignments) {
  for (const Assignment& assignment : assignments)
    b_.CreateStore(assignment.value, assignment.variable);
}

// On the back edge of a loop that may not end.
void Emitter::poll(Block* from, Block* to) {
  const llvm::Loop* loop = flow_.loops.getLoopFor(to);
  if (!loop || loop->getHeader() != to || !loop->contains(from) || !loops_.polled.contains(to))
    return;
  llvm::LoadInst* flag = b_.CreateAlignedLoad(b_.getInt32Ty(), cancelled_, llvm::Align(4));
  flag->setAtomic(llvm::AtomicOrdering::Monotonic);
  Block* go_on = new_block("go_on");
  llvm::MDBuilder metadata(context_);
  b_.CreateCondBr(b_.CreateICmpNE(flag, b_.getInt32(0)), out_.done, go_on,
                  metadata.createBranchWeights(1, 2000));
  b_.SetInsertPoint(go_on);
}

void Emitter::jump_converged(Block* from, Block* to) {
  std::vector<Assignment> assignments;
  collect_edge(from, to, nullptr, assignments);
  perform(assignments);
  poll(from, to);
  b_.CreateBr(blocks_[converged][to]);
}

// A comparison of a linear value with a uniform one is decided by the first and the last lane,
// unless lanes wrap around: `all` and `none` as scalars, both false when lanes may part.
bool Emitter::decide_by_ends(const llvm::BranchInst& branch, Value*& all, Value*& none) {
  auto* compare = dyn_cast<llvm::ICmpInst>(branch.getCondition());
  if (!compare || compare->isEquality() || known_.contains(compare)) return false;
  // Of another block: its vector is at hand, its operands need not be.
  if (compare->getParent() != branch.getParent()) return false;
  const Value *left = compare->getOperand(0), *right = compare->getOperand(1);
  llvm::CmpInst::Predicate predicate = compare->getPredicate();
  if (shape(right).kind == Shape::linear && shape(left).kind == Shape::uniform) {
    std::swap(left, right);
    predicate = compare->getSwappedPredicate();
  }
  Shape s = shape(left);
  if (s.kind != Shape::linear || shape(right).kind != Shape::uniform ||
      !left->getType()->isIntegerTy())
    return false;
  unsigned width = left->getType()->getIntegerBitWidth();
  if (width < 32) return false;
  Value* first = scalar_of(left);
  Value* limit = scalar_of(right);
  Value* last = b_.CreateAdd(
      first, llvm::ConstantInt::get(first->getType(), static_cast<uint64_t>(s.stride * 31), true));
  bool is_signed = compare->isSigned();
  Value* first_holds = b_.CreateICmp(predicate, first, limit);
  Value* last_holds = b_.CreateICmp(predicate, last, limit);
  llvm::CmpInst::Predicate rises = is_signed ? llvm::CmpInst::ICMP_SGE : llvm::CmpInst::ICMP_UGE;
  Value* in_order =
      s.stride > 0 ? b_.CreateICmp(rises, last, first) : b_.CreateICmp(rises, first, last);
  if (shapes_[version_]->is_small(left)) in_order = b_.getTrue();
  all = b_.CreateAnd(in_order, b_.CreateAnd(first_holds, last_holds));
  none = b_.CreateAnd(in_order, b_.CreateNot(b_.CreateOr(first_holds, last_holds)));
  return true;
}

// Whether the instructions of a side can be written under a mask while lanes stay together.
bool Emitter::may_predicate(const Block& side) const {
  // Written twice, for all lanes and for some.
  constexpr size_t most_instructions = 32;
  if (side.size() > most_instructions) return false;
  const Shapes& shapes = *shapes_[converged];
  return llvm::all_of(side, [&](const Instruction& instruction) {
    if (isa<llvm::PHINode>(instruction) || shapes.guarded().contains(&instruction)) return false;
    if (auto* extension = dyn_cast<llvm::ZExtInst>(&instruction)) {
      // See extend_base: the base may be of a lane that is off.
      Shape s = shapes.of(extension);
      for (int64_t lane = 0; s.has_base() && lane < simdgroup_width; ++lane) {
        if (extension->hasNonNeg() && s.offset(lane) < 0) return false;
      }
    }
    return !is_call_of(instruction, Intrinsic::threadgroup_barrier);
  });
}

// `if (lane == 0) out[i] = sum;`: sides of one block each that come together at once. An empty side
// is null.
bool Emitter::find_sides(const llvm::BranchInst& branch, Sides& result) const {
  Block* block = const_cast<Block*>(branch.getParent());
  auto joined = [&](Block* next) {
    return next->getSinglePredecessor() == block ? next->getSingleSuccessor() : nullptr;
  };
  Block *first = branch.getSuccessor(0), *second = branch.getSuccessor(1);
  if (joined(first) == second) {
    result = {first, nullptr, second};
  } else if (joined(second) == first) {
    result = {nullptr, second, first};
  } else if (joined(first) && joined(first) == joined(second)) {
    result = {first, second, joined(first)};
  } else {
    return false;
  }
  return first != second && (!result.taken || may_predicate(*result.taken)) &&
         (!result.other || may_predicate(*result.other));
}

// Both sides one after the other, each in the lanes that go there, without leaving the converged
// version.
void Emitter::emit_predicated(Block* block, const Sides& sides, Value* lanes) {
  Value* others = b_.CreateNot(lanes);
  for (Block* side : linearisation_.order()) {
    if (side != sides.taken && side != sides.other) continue;
    predicate_ = side == sides.taken ? lanes : others;
    for (Instruction& instruction : *side) {
      if (!instruction.isTerminator()) emit_instruction(instruction);
    }
  }
  predicate_ = nullptr;
  std::vector<Assignment> assignments;
  for (llvm::PHINode& phi : sides.join->phis()) {
    const Value* taken = phi.getIncomingValueForBlock(sides.taken ? sides.taken : block);
    const Value* other = phi.getIncomingValueForBlock(sides.other ? sides.other : block);
    Value* value = nullptr;
    if (shape(&phi).is_scalar()) {
      value = scalar_of(isa<llvm::UndefValue>(taken) ? other : taken);
    } else {
      value = b_.CreateSelect(lanes, vector_of(taken), vector_of(other));
    }
    assignments.push_back({variable(&phi, version_), value});
  }
  perform(assignments);
  b_.CreateBr(blocks_[converged][sides.join]);
}

void Emitter::emit_converged_end(llvm::BranchInst& branch) {
  Block* block = branch.getParent();
  if (!branch.isConditional()) return jump_converged(block, branch.getSuccessor(0));
  const Value* condition = branch.getCondition();
  Block* taken = new_block(block->getName() + ".taken");
  Block* other = new_block(block->getName() + ".other");
  Block* parted = nullptr;
  Value* lanes = nullptr;
  if (shape(condition).kind != Shape::varying) {
    b_.CreateCondBr(scalar_of(condition), taken, other);
  } else {
    lanes = b_.CreateFreeze(vector_of(condition));
    Value *all = nullptr, *none = nullptr;
    if (!decide_by_ends(branch, all, none)) {
      all = lanes_.all(lanes);
      none = b_.CreateNot(lanes_.any(lanes));
    }
    Block* not_all = new_block(block->getName() + ".not_all");
    parted = new_block(block->getName() + ".parted");
    b_.CreateCondBr(all, taken, not_all);
    b_.SetInsertPoint(not_all);
    b_.CreateCondBr(none, other, parted);
  }
  auto held = held_;
  auto vectors = vectors_;
  Sides sides;
  bool in_place = parted && find_sides(branch, sides);
  if (parted) {
    const llvm::Loop* loop = flow_.loops.getLoopFor(block);
    const char* what = in_place ? "parts lanes; its small sides run in place, under masks"
                       : loop && loop->isLoopExiting(block)
                           ? "lets lanes leave a loop in different iterations"
                           : "parts lanes; both sides run one after the other, under masks";
    remark(branch, what, condition);
  }
  if (in_place) {
    b_.SetInsertPoint(parted);
    emit_predicated(block, sides, lanes);
  } else if (parted) {
    b_.SetInsertPoint(parted);
    to_masked(live_out_[block]);
    b_.CreateStore(lanes, condition_of(block));
    Block*& end = end_blocks_[block];
    if (!end) end = new_block(block->getName() + ".end");
    b_.CreateBr(end);
  }
  b_.SetInsertPoint(taken);
  held_ = held;
  vectors_ = vectors;
  jump_converged(block, branch.getSuccessor(0));
  b_.SetInsertPoint(other);
  held_ = std::move(held);
  vectors_ = std::move(vectors);
  jump_converged(block, branch.getSuccessor(1));
}

// To the first of the blocks that has lanes. `certain`: has some for sure.
void Emitter::jump_to_first(Block* from, llvm::ArrayRef<Block*> to, Block* certain) {
  for (size_t i = 0; i < to.size(); ++i) {
    bool last = i + 1 == to.size() || to[i] == certain;
    Block* next = nullptr;
    if (!last) {
      Block* go = new_block("go");
      next = new_block("skip");
      Value* waiting = b_.CreateLoad(lanes_.all_ones()->getType(), pending(to[i]));
      b_.CreateCondBr(lanes_.any(waiting), go, next);
      b_.SetInsertPoint(go);
    }
    poll(from, to[i]);
    b_.CreateBr(blocks_[masked][to[i]]);
    if (last) return;
    b_.SetInsertPoint(next);
  }
}

void Emitter::emit_masked_end(llvm::BranchInst& branch) {
  Block* block = branch.getParent();
  auto send = [&](Block* to, Value* lanes, std::vector<Assignment>& assignments) {
    bool merges = linearisation_.may_wait(block, to);
    collect_edge(block, to, merges ? lanes : nullptr, assignments);
    Value* waiting = lanes;
    if (merges) waiting = b_.CreateOr(lanes, b_.CreateLoad(lanes->getType(), pending(to)));
    assignments.push_back({pending(to), waiting});
  };
  bool parts = branch.isConditional() && shapes_[masked]->branch_varies(block);
  if (!parts) {
    auto one_way = [&](Block* to) {
      std::vector<Assignment> assignments;
      send(to, current_mask_, assignments);
      perform(assignments);
      jump_to_first(block, linearisation_.targets(block, to), to);
    };
    if (!branch.isConditional()) {
      one_way(branch.getSuccessor(0));
    } else {
      Block* taken = new_block(block->getName() + ".taken");
      Block* other = new_block(block->getName() + ".other");
      b_.CreateCondBr(scalar_of(branch.getCondition()), taken, other);
      auto held = held_;
      auto vectors = vectors_;
      b_.SetInsertPoint(taken);
      one_way(branch.getSuccessor(0));
      b_.SetInsertPoint(other);
      held_ = std::move(held);
      vectors_ = std::move(vectors);
      one_way(branch.getSuccessor(1));
    }
  } else {
    b_.CreateStore(b_.CreateFreeze(vector_of(branch.getCondition())), condition_of(block));
  }
  Block*& end = end_blocks_[block];
  if (!parts && !end) return;
  // Also where the converged version leaves: nothing of the block's own values is at hand here.
  if (!end) end = new_block(block->getName() + ".end");
  if (parts) b_.CreateBr(end);
  b_.SetInsertPoint(end);
  held_.clear();
  vectors_.clear();
  Value* condition = b_.CreateLoad(lanes_.all_ones()->getType(), condition_of(block));
  Value* now = b_.CreateLoad(lanes_.all_ones()->getType(), mask_of(block));
  std::vector<Assignment> assignments;
  send(branch.getSuccessor(0), b_.CreateAnd(now, condition), assignments);
  send(branch.getSuccessor(1), b_.CreateAnd(now, b_.CreateNot(condition)), assignments);
  perform(assignments);
  jump_to_first(block,
                linearisation_.targets(block, {branch.getSuccessor(0), branch.getSuccessor(1)}),
                nullptr);
}

}  // namespace holdfast::jit
