// Loads and stores: one access for all lanes where the address is the same, one wide
// access where it rises with the lane, else a gather or a scatter. Lanes that are off touch no
// memory.
#include <llvm/IR/Module.h>

#include <numeric>

#include "devices/cpu/jit/compiler/widen/describe.h"
#include "devices/cpu/jit/compiler/widen/emitter.h"
#include "devices/cpu/jit/compiler/widen/strided_loads.h"
#include "devices/cpu/jit/kernel_abi.h"
#include "msl/scalar_ir.h"

namespace holdfast::jit {

using llvm::cast;
using llvm::dyn_cast;
using llvm::isa;

namespace {

constexpr uint64_t lane_count = simdgroup_width;

llvm::SmallVector<int, simdgroup_width> reversed() {
  llvm::SmallVector<int, simdgroup_width> pattern(lane_count);
  for (size_t i = 0; i < lane_count; ++i) pattern[i] = static_cast<int>(lane_count - 1 - i);
  return pattern;
}

}  // namespace

void Emitter::remark(const llvm::Instruction& instruction, const std::string& text,
                     const Value* cause) {
  if (version_ != converged || !result_.wants_remarks) return;
  Remark made{line_of(instruction), noun_of(instruction) + ' ' + text};
  if (Shapes::Origin origin = cause ? shapes_[converged]->origin_of(cause) : Shapes::Origin();
      origin.instruction) {
    made.text += "; it depends on " + noun_of(*origin.instruction) + ": " + origin.reason;
    made.cause_line = line_of(*origin.instruction);
  }
  result_.remarks.push_back(std::move(made));
}

// Threadgroup and private memory belong to the thread that runs the group: no other sees it.
bool Emitter::is_group_private(const Value* pointer) const {
  return pointer->getType()->getPointerAddressSpace() == msl::address_space::threadgroup;
}

llvm::Value* Emitter::scratch(llvm::Type* type, uint64_t slot) {
  uint64_t bytes = layout_.getTypeAllocSize(type);
  llvm::AllocaInst*& place = scratch_[slot * 1024 + bytes];
  if (!place) {
    llvm::IRBuilder<> at_start(entry_, entry_->begin());
    place = at_start.CreateAlloca(llvm::ArrayType::get(b_.getInt8Ty(), bytes * lane_count), nullptr,
                                  "scratch");
    place->setAlignment(llvm::Align(64));
  }
  return place;
}

llvm::Value* Emitter::lane_element(Value* in_memory, llvm::Type* type, Value* lane) {
  return b_.CreateInBoundsGEP(type, in_memory, b_.CreateZExt(lane, b_.getInt64Ty()));
}

// Into memory in pieces of 32 bytes, volatile so that they stay apart: some processors cannot hand
// an element of a 64-byte store to the load that follows.
Emitter::Staged Emitter::stage(Value* vector, uint64_t slot) {
  if (writes_out_lanes()) return {vector, nullptr};
  llvm::Type* type = vector->getType()->getScalarType();
  Value* memory = scratch(type, slot);
  uint64_t piece = std::min<uint64_t>(32 / layout_.getTypeAllocSize(type), lane_count);
  for (uint64_t start = 0; start < lane_count; start += piece) {
    llvm::SmallVector<int, 32> pattern(piece);
    std::iota(pattern.begin(), pattern.end(), static_cast<int>(start));
    Value* at = b_.CreateConstInBoundsGEP1_64(type, memory, start);
    b_.CreateAlignedStore(b_.CreateShuffleVector(vector, pattern), at, llvm::Align(32),
                          /*isVolatile=*/true);
  }
  return {vector, memory};
}

llvm::Value* Emitter::take(const Staged& from, Value* lane) {
  if (!from.memory) return b_.CreateExtractElement(from.vector, lane);
  llvm::Type* type = from.vector->getType()->getScalarType();
  return b_.CreateLoad(type, lane_element(from.memory, type, lane));
}

Emitter::Staged Emitter::stage_result(llvm::Type* type, uint64_t slot) {
  Value* none = llvm::PoisonValue::get(wide(type));
  return {none, writes_out_lanes() ? nullptr : scratch(type, slot)};
}

void Emitter::put(Staged& to, Value* lane, Value* value) {
  if (to.memory) {
    b_.CreateStore(value, lane_element(to.memory, value->getType(), lane));
  } else {
    to.vector = b_.CreateInsertElement(to.vector, value, lane);
  }
}

llvm::Value* Emitter::collect(const Staged& from) {
  if (!from.memory) return from.vector;
  return b_.CreateAlignedLoad(from.vector->getType(), from.memory, llvm::Align(64));
}

// In lane order. At least one lane is on.
void Emitter::for_each_lane(llvm::function_ref<void(Value* lane)> body) {
  if (writes_out_lanes()) {
    for (uint32_t lane = 0; lane < lane_count; ++lane) body(b_.getInt32(lane));
    return;
  }
  Value* start = mask_bits();
  Block* before = b_.GetInsertBlock();
  Block* loop = new_block("lane");
  Block* after = new_block("lanes.done");
  b_.CreateBr(loop);
  b_.SetInsertPoint(loop);
  llvm::PHINode* rest = b_.CreatePHI(b_.getInt32Ty(), 2);
  rest->addIncoming(start, before);
  Value* lane = b_.CreateIntrinsic(llvm::Intrinsic::cttz, {b_.getInt32Ty()}, {rest, b_.getTrue()});
  body(lane);
  Value* left = b_.CreateAnd(rest, b_.CreateSub(rest, b_.getInt32(1)));
  rest->addIncoming(left, b_.GetInsertBlock());
  b_.CreateCondBr(b_.CreateICmpNE(left, b_.getInt32(0)), loop, after);
  b_.SetInsertPoint(after);
}

// The value of the highest lane that is on.
llvm::Value* Emitter::last_active(Value* vector) {
  if (all_on()) return b_.CreateExtractElement(vector, lane_count - 1);
  Value* zeros =
      b_.CreateIntrinsic(llvm::Intrinsic::ctlz, {b_.getInt32Ty()}, {mask_bits(), b_.getTrue()});
  return b_.CreateExtractElement(vector, b_.CreateSub(b_.getInt32(lane_count - 1), zeros));
}

void Emitter::emit_load(llvm::LoadInst& load) {
  if (held_.contains(&load)) return;  // loaded with a neighbour
  const msl::UnprovedAccess* access = guarded_.lookup(&load);
  for (const Loaded& one : access ? load_guarded(load, *access) : load_lanes(load))
    define(*one.load, one.value);
}

// The values of the load, and of neighbours that were loaded with it.
Emitter::LoadedTogether Emitter::load_lanes(llvm::LoadInst& load) {
  llvm::Type* type = plain(load.getType());
  const Value* pointer = load.getPointerOperand();
  Shape s = shape(pointer);
  uint64_t size = layout_.getTypeStoreSize(type);
  bool shared = load.isAtomic() && !is_group_private(pointer);
  if (s.kind == Shape::uniform) {
    llvm::LoadInst* made = b_.CreateAlignedLoad(type, scalar_of(pointer), load.getAlign());
    if (shared) made->setAtomic(load.getOrdering());
    if (pointer->getType()->getPointerAddressSpace() == msl::address_space::constant)
      made->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(context_, {}));
    return {{&load, made}};
  }
  if (shared) {
    Staged pointers = stage(vector_of(pointer), 0);
    Staged results = stage_result(type, 1);
    for_each_lane([&](Value* lane) {
      llvm::LoadInst* one = b_.CreateAlignedLoad(type, take(pointers, lane), load.getAlign());
      one->setAtomic(load.getOrdering());
      put(results, lane, one);
    });
    return {{&load, collect(results)}};
  }
  bool whole = size == layout_.getTypeAllocSize(type) && !type->isIntegerTy(1);
  if (s.kind == Shape::linear && whole) {
    Value* base = scalar_of(pointer);
    if (s.stride == static_cast<int64_t>(size)) {
      prefetch(load, type, base);
      return {{&load, load_consecutive(type, base, load.getAlign())}};
    }
    if (all_on() && s.stride == -static_cast<int64_t>(size)) {
      base = b_.CreateConstGEP1_64(b_.getInt8Ty(), base, static_cast<uint64_t>(s.stride * 31));
      Value* made = b_.CreateAlignedLoad(wide(type), base, load.getAlign());
      return {{&load, b_.CreateShuffleVector(made, reversed())}};
    }
    if (LoadedTogether group = load_group(load); !group.empty()) return group;
    remark(load, "gathers because lanes are " + std::to_string(s.stride) + " bytes apart");
  } else if (s.kind == Shape::pattern && whole) {
    if (LoadedTogether group = load_group(load); !group.empty()) return group;
    remark(load, "gathers because lanes are scattered by a fixed pattern");
  } else {
    remark(load, "gathers from an address that varies", pointer);
  }
  return {{&load, gather(type, vector_of(pointer), load.getAlign())}};
}

// How far on the next group's part of memory lies, if the groups so far are any guide: what
// `pointer` is derived from has moved so far since the group before. Null: not known.
llvm::Value* Emitter::step_of_groups(const Value* pointer) {
  while (auto* gep = dyn_cast<llvm::GetElementPtrInst>(pointer)) {
    auto* start = llvm::dyn_cast_or_null<llvm::Instruction>(known_.lookup(gep));
    if (start && start->getParent() == out_.group) {
      Value*& step = steps_of_groups_[start];
      if (step) return step;
      llvm::IRBuilder<> at(out_.group, out_.group->begin());
      llvm::PHINode* before = at.CreatePHI(start->getType(), 2, "of_group_before");
      auto* none = llvm::Constant::getNullValue(start->getType());
      before->addIncoming(none, entry_);
      before->addIncoming(start, out_.done);
      at.SetInsertPoint(out_.group->getTerminator());
      Value* moved = at.CreateSub(at.CreatePtrToInt(start, at.getInt64Ty()),
                                  at.CreatePtrToInt(before, at.getInt64Ty()));
      return step = at.CreateSelect(at.CreateICmpEQ(before, none), at.getInt64(0), moved);
    }
    pointer = gep->getPointerOperand();
  }
  return nullptr;
}

// A group reads a row in several passes, one for each simdgroup, each in long steps that no
// processor sees through. So each pass asks for what it will want of the next group's row, or,
// where that is not known, for what the next simdgroup reads.
void Emitter::prefetch(const llvm::Instruction& access, llvm::Type* type, Value* base) {
  if (!all_on() || !loops_.strided.contains(&access)) return;
  constexpr uint64_t line = 64;
  constexpr uint32_t second_cache = 2, first_cache = 3;
  uint64_t own = layout_.getTypeStoreSize(type) * lane_count;
  Value* step = step_of_groups(llvm::getLoadStorePointerOperand(&access));
  if (!step && !isa<llvm::LoadInst>(access)) return;
  base = step ? b_.CreateGEP(b_.getInt8Ty(), base, step)
              : b_.CreateConstGEP1_64(b_.getInt8Ty(), base, own);
  for (uint64_t at = 0; at < own; at += line) {
    Value* address = b_.CreateConstGEP1_64(b_.getInt8Ty(), base, at);
    b_.CreateIntrinsic(
        llvm::Intrinsic::prefetch, {b_.getPtrTy()},
        {address, b_.getInt32(0), b_.getInt32(step ? second_cache : first_cache), b_.getInt32(1)});
  }
}

// Neighbouring loads whose lanes lie alike, read together. Empty: they are not.
Emitter::LoadedTogether Emitter::load_group(llvm::LoadInst& load) {
  if (!all_on() || memory_.interleaved(load.getPointerOperand())) return {};
  const Value* pointer = load.getPointerOperand();
  LoadGroup group = find_load_group(load, shape(pointer), layout_,
                                    [&](const Value* other) { return shape(other); });
  for (const LoadGroup::Member& member : group.members) {
    if (!are_guarded_alike(load, *member.load)) return {};
  }
  // The first member that is reached loads for all.
  std::vector<Value*> results;
  if (group.pays_transposed(set_)) {
    results = load_transposed(b_, group, scalar_of(pointer), load.getAlign());
  } else if (group.pays_in_segments()) {
    results = load_in_segments(b_, group, scalar_of(pointer), load.getAlign());
  } else {
    return {};
  }
  LoadedTogether loaded;
  for (size_t i = 0; i < group.members.size(); ++i) {
    const auto& [member, offset] = group.members[i];
    loaded.push_back({member, b_.CreateBitOrPointerCast(results[i], wide(member->getType())),
                      offset - group.leader_offset});
  }
  return loaded;
}

llvm::Value* Emitter::load_consecutive(llvm::Type* type, Value* base, llvm::Align align) {
  if (all_on()) return b_.CreateAlignedLoad(wide(type), base, align);
  uint64_t bits = layout_.getTypeSizeInBits(type);
  bool native = set_ == InstructionSet::avx512 || (set_ == InstructionSet::avx2 && bits >= 32);
  if (native)
    return b_.CreateMaskedLoad(wide(type), base, align, mask(),
                               llvm::Constant::getNullValue(wide(type)));
  return gather(type,
                b_.CreateGEP(b_.getInt8Ty(), base,
                             lanes_.index(b_.getInt64Ty(), static_cast<int64_t>(bits / 8))),
                align);
}

llvm::Value* Emitter::gather(llvm::Type* type, Value* pointers, llvm::Align align) {
  uint64_t bits = layout_.getTypeSizeInBits(type);
  bool natural = align.value() * 8 >= bits;
  if (set_ == InstructionSet::avx512) {
    if (bits == 32 || bits == 64)
      return b_.CreateMaskedGather(wide(type), pointers, align, mask(),
                                   llvm::Constant::getNullValue(wide(type)));
    if ((bits == 8 || bits == 16) && natural) return gather_narrow(type, pointers);
  }
  llvm::Type* stored = type->isIntegerTy(1) ? b_.getInt8Ty() : type;
  Staged addresses = stage(pointers, 0);
  Staged results = stage_result(stored, 1);
  for_each_lane([&](Value* lane) {
    put(results, lane, b_.CreateAlignedLoad(stored, take(addresses, lane), align));
  });
  Value* all = collect(results);
  return stored == type ? all : b_.CreateTrunc(all, wide(type));
}

// Bytes and halves from the aligned word around them: that word lies in the same page.
llvm::Value* Emitter::gather_narrow(llvm::Type* type, Value* pointers) {
  auto* i64s = wide(b_.getInt64Ty());
  auto* i32s = wide(b_.getInt32Ty());
  Value* address = b_.CreatePtrToInt(pointers, i64s);
  Value* within = b_.CreateTrunc(b_.CreateAnd(address, llvm::ConstantInt::get(i64s, 3)), i32s);
  Value* word = b_.CreateIntToPtr(b_.CreateAnd(address, llvm::ConstantInt::get(i64s, ~uint64_t{3})),
                                  wide(b_.getPtrTy()));
  Value* words =
      b_.CreateMaskedGather(i32s, word, llvm::Align(4), mask(), llvm::Constant::getNullValue(i32s));
  Value* shifted = b_.CreateLShr(words, b_.CreateShl(within, llvm::ConstantInt::get(i32s, 3)));
  llvm::Type* narrow = b_.getIntNTy(static_cast<unsigned>(layout_.getTypeSizeInBits(type)));
  return b_.CreateBitCast(b_.CreateTrunc(shifted, wide(narrow)), wide(type));
}

void Emitter::emit_store(llvm::StoreInst& store) {
  if (const msl::UnprovedAccess* access = guarded_.lookup(&store))
    return store_guarded(store, *access);
  store_lanes(store);
}

void Emitter::store_lanes(llvm::StoreInst& store) {
  const Value* value = store.getValueOperand();
  const Value* pointer = store.getPointerOperand();
  llvm::Type* type = plain(value->getType());
  Shape s = shape(pointer);
  uint64_t size = layout_.getTypeStoreSize(type);
  bool shared = store.isAtomic() && !is_group_private(pointer);
  if (s.kind == Shape::uniform) {
    // The highest lane that is on has the last word.
    Value* one =
        shape(value).kind == Shape::uniform ? scalar_of(value) : last_active(vector_of(value));
    llvm::StoreInst* made = b_.CreateAlignedStore(one, scalar_of(pointer), store.getAlign());
    if (shared) made->setAtomic(store.getOrdering());
    return;
  }
  Value* values = vector_of(value);
  if (shared) {
    Staged pointers = stage(vector_of(pointer), 0);
    Staged stored = stage(values, 1);
    for_each_lane([&](Value* lane) {
      b_.CreateAlignedStore(take(stored, lane), take(pointers, lane), store.getAlign())
          ->setAtomic(store.getOrdering());
    });
    return;
  }
  bool whole = size == layout_.getTypeAllocSize(type) && !type->isIntegerTy(1);
  if (s.kind == Shape::linear && whole && s.stride == static_cast<int64_t>(size)) {
    Value* base = scalar_of(pointer);
    if (all_on()) {
      prefetch(store, type, base);
      b_.CreateAlignedStore(values, base, store.getAlign());
      return;
    }
    bool native = set_ == InstructionSet::avx512 || (set_ == InstructionSet::avx2 && size >= 4);
    if (native) {
      b_.CreateMaskedStore(values, base, store.getAlign(), mask());
      return;
    }
  }
  if (s.kind == Shape::varying) {
    remark(store, "scatters to an address that varies", pointer);
  } else if (s.kind == Shape::pattern) {
    remark(store, "scatters because lanes are scattered by a fixed pattern");
  } else if (s.stride != static_cast<int64_t>(size)) {
    remark(store, "scatters because lanes are " + std::to_string(s.stride) + " bytes apart");
  }
  scatter(values, vector_of(pointer), store.getAlign());
}

// In lane order: where two lanes write to one place, the higher one wins.
void Emitter::scatter(Value* value, Value* pointers, llvm::Align align) {
  llvm::Type* type = value->getType()->getScalarType();
  uint64_t bits = layout_.getTypeSizeInBits(type);
  if (set_ == InstructionSet::avx512 && (bits == 32 || bits == 64)) {
    b_.CreateMaskedScatter(value, pointers, align, mask());
    return;
  }
  if (type->isIntegerTy(1)) {
    type = b_.getInt8Ty();
    value = b_.CreateZExt(value, wide(type));
  }
  Staged addresses = stage(pointers, 0);
  Staged stored = stage(value, 1);
  for_each_lane([&](Value* lane) {
    b_.CreateAlignedStore(take(stored, lane), take(addresses, lane), align);
  });
}

}  // namespace holdfast::jit
