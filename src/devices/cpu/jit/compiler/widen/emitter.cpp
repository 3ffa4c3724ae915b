#include "devices/cpu/jit/compiler/widen/emitter.h"

#include <llvm/ADT/PostOrderIterator.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Module.h>
#include <llvm/Transforms/Utils/PromoteMemToReg.h>

#include <algorithm>

#include "devices/cpu/jit/compiler/widen/intrinsics.h"
#include "devices/cpu/jit/compiler/widen/missing_values.h"

namespace holdfast::jit {

using llvm::cast;
using llvm::dyn_cast;
using llvm::Instruction;
using llvm::isa;
using msl::Intrinsic;

Emitter::Emitter(llvm::Function& scalar, ControlFlow& flow, const PrivateMemory& memory,
                 const Shapes& converged_shapes, const Shapes& masked_shapes,
                 const Linearisation& linearisation, const LoopFacts& loops, const Growth& growth,
                 InstructionSet set, OutsideSites* sites, WidenResult& result)
    : scalar_(scalar),
      module_(*scalar.getParent()),
      context_(scalar.getContext()),
      layout_(scalar.getParent()->getDataLayout()),
      flow_(flow),
      memory_(memory),
      shapes_{&converged_shapes, &masked_shapes},
      linearisation_(linearisation),
      loops_(loops),
      growth_(growth),
      set_(set),
      sites_(sites),
      result_(result),
      b_(scalar.getContext()),
      lanes_(b_, set) {}

GroupFunction Emitter::run() {
  for (const Instruction& instruction : llvm::instructions(scalar_)) {
    if (is_call_of(instruction, Intrinsic::threadgroup_barrier)) uses_barrier_ = true;
    if (is_call_of(instruction, Intrinsic::thread_position_in_threadgroup)) uses_position_ = true;
  }
  find_guarded();
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
  last_counted_ = &group_->back();
  for (Block* block : linearisation_.order()) {
    for (Version version : {converged, masked}) {
      emit_block(version, block);
      count_written(*blocks_[version][block]);
    }
  }
  start_variables(pending(first));
  return out_;
}

// No lane waits anywhere when a simdgroup begins, and nothing is left of the one before.
void Emitter::start_variables(const llvm::AllocaInst* started) {
  b_.SetInsertPoint(out_.start, out_.start->begin());
  llvm::DenseSet<const llvm::AllocaInst*> waiting;
  for (auto& [block, place] : pending_) waiting.insert(place);
  MissingValues missing;
  for (llvm::AllocaInst* place : all_variables_) {
    if (place == started) continue;
    b_.CreateStore(
        waiting.contains(place)
            ? static_cast<Value*>(llvm::Constant::getNullValue(place->getAllocatedType()))
            : missing.marker_of(place),
        place);
  }
  llvm::DominatorTree dominators(*group_);
  // Some at a time, since the phis of all may be too many.
  constexpr size_t at_once = 512;
  llvm::ArrayRef<llvm::AllocaInst*> rest = all_variables_;
  while (!rest.empty()) {
    size_t count = std::min(rest.size(), at_once);
    llvm::PromoteMemToReg(rest.take_front(count), dominators);
    rest = rest.drop_front(count);
    growth_.check(Growth::size_of(*group_));
  }
  missing.check_and_erase(dominators);
}

// `block`, and the blocks that were made while it was written.
void Emitter::count_written(const Block& block) {
  written_ += block.size();
  for (auto at = std::next(last_counted_->getIterator()); at != group_->end(); ++at)
    written_ += at->size();
  last_counted_ = &group_->back();
  growth_.check(written_);
}

Emitter::Block* Emitter::new_block(const llvm::Twine& name) {
  return Block::Create(context_, name, group_);
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
    bool is_phi = isa<llvm::PHINode>(instruction);
    if (is_phi && !known_.contains(&instruction)) escaping_.insert(&instruction);
    auto read = [&](const Value* value) {
      auto* defined = dyn_cast<Instruction>(value);
      if (!defined || known_.contains(defined) || isa<llvm::AtomicCmpXchgInst>(defined)) return;
      if (is_phi || defined->getParent() != instruction.getParent()) escaping_.insert(defined);
    };
    for (const Shapes* shapes : shapes_) shapes->for_each_read(instruction, read);
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
      ValueSet out;
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
      ValueSet in;
      for (const Value* value : out) {
        if (!defined[block].contains(value)) in.insert(value);
      }
      for (Instruction& instruction : *block) {
        if (isa<llvm::PHINode>(instruction)) {
          if (is_dual(&instruction)) in.insert(&instruction);
          continue;
        }
        auto read = [&](const Value* value) {
          if (is_dual(value) && !defined[block].contains(value)) in.insert(value);
        };
        for (const Shapes* shapes : shapes_) shapes->for_each_read(instruction, read);
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

}  // namespace holdfast::jit
