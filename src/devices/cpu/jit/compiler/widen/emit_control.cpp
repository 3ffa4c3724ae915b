// Control flow: the blocks of both versions, masks, the ways between blocks and between the
// versions.
#include <llvm/IR/MDBuilder.h>
#include <llvm/IR/Module.h>

#include "devices/cpu/jit/compiler/widen/emitter.h"
#include "devices/cpu/jit/compiler/widen/intrinsics.h"
#include "devices/cpu/jit/kernel_abi.h"

namespace holdfast::jit {

using llvm::cast;
using llvm::dyn_cast;
using llvm::Instruction;
using llvm::isa;
using msl::Intrinsic;

void Emitter::emit_block(Version version, Block* block) {
  version_ = version;
  block_ = block;
  held_.clear();
  vectors_.clear();
  exchanges_.clear();
  products_.clear();
  inside_.clear();
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
void Emitter::to_masked(const ValueSet& live) {
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

// Whether this is the back edge of a loop that may not end.
bool Emitter::polls(Block* from, Block* to) const {
  const llvm::Loop* loop = flow_.loops.getLoopFor(to);
  return loop && loop->getHeader() == to && loop->contains(from) && loops_.polled.contains(to);
}

void Emitter::poll(Block* from, Block* to) {
  if (!polls(from, to)) return;
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
    block_ = side;
    for (Instruction& instruction : *side) {
      if (!instruction.isTerminator()) emit_instruction(instruction);
    }
  }
  predicate_ = nullptr;
  block_ = block;
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
  if (auto found = llvm::find(to, certain); found != to.end())
    to = to.take_front(static_cast<size_t>(found - to.begin()) + 1);
  // A few tests are quickest in place. Where many blocks may wait, each block has most of its tests
  // in common with others: in place they would be as many as the square of the blocks, and each
  // would merge all that lives there.
  constexpr size_t most_in_place = 4;
  for (; to.size() > 1; to = to.drop_front()) {
    bool is_back_edge = polls(from, to.front());
    if (to.size() > most_in_place && !is_back_edge) {
      b_.CreateBr(first_waiting(to));
      return;
    }
    Block* go = new_block("go");
    Block* next = new_block("skip");
    Value* waiting = b_.CreateLoad(lanes_.all_ones()->getType(), pending(to.front()));
    b_.CreateCondBr(lanes_.any(waiting), go, next);
    b_.SetInsertPoint(go);
    poll(from, to.front());
    b_.CreateBr(blocks_[masked][to.front()]);
    b_.SetInsertPoint(next);
  }
  poll(from, to.front());
  b_.CreateBr(blocks_[masked][to.front()]);
}

// Leads to the first of the blocks that lanes wait for, else to the last one. All that come to the
// same blocks in the end share the tests.
Emitter::Block* Emitter::first_waiting(llvm::ArrayRef<Block*> to) {
  llvm::IRBuilderBase::InsertPointGuard guard(b_);
  Block* next = blocks_[masked][to.back()];
  for (Block* block : llvm::reverse(to.drop_back())) {
    Block*& test = tests_[{block, next}];
    if (!test) {
      test = new_block("first");
      b_.SetInsertPoint(test);
      Value* waiting = b_.CreateLoad(lanes_.all_ones()->getType(), pending(block));
      b_.CreateCondBr(lanes_.any(waiting), blocks_[masked][block], next);
    }
    next = test;
  }
  return next;
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
