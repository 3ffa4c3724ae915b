// Loads, stores and atomics: one access for all lanes where the address is the same, one wide
// access where it rises with the lane, else a gather or a scatter. Lanes that are off touch no
// memory.
#include <llvm/IR/Module.h>
#include <llvm/Transforms/Utils/LowerAtomic.h>

#include <numeric>

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

void Emitter::remark(const llvm::Instruction& instruction, const std::string& text) {
  if (version_ == converged) result_.remarks.push_back(describe(instruction) + ' ' + text);
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

// In lane order. At least one lane is on.
void Emitter::for_each_lane(llvm::function_ref<void(Value* lane)> body) {
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
    return define(load, made);
  }
  if (shared) {
    Value* pointers = scratch(b_.getPtrTy(), 0);
    Value* results = scratch(type, 1);
    b_.CreateStore(vector_of(pointer), pointers);
    for_each_lane([&](Value* lane) {
      Value* at = b_.CreateLoad(b_.getPtrTy(), lane_element(pointers, b_.getPtrTy(), lane));
      llvm::LoadInst* one = b_.CreateAlignedLoad(type, at, load.getAlign());
      one->setAtomic(load.getOrdering());
      b_.CreateStore(one, lane_element(results, type, lane));
    });
    return define(load, b_.CreateLoad(wide(type), results));
  }
  bool whole = size == layout_.getTypeAllocSize(type) && !type->isIntegerTy(1);
  if (s.kind == Shape::linear && whole) {
    Value* base = scalar_of(pointer);
    if (s.stride == static_cast<int64_t>(size))
      return define(load, load_consecutive(type, base, load.getAlign()));
    if (all_on() && s.stride == -static_cast<int64_t>(size)) {
      base = b_.CreateConstGEP1_64(b_.getInt8Ty(), base, static_cast<uint64_t>(s.stride * 31));
      Value* made = b_.CreateAlignedLoad(wide(type), base, load.getAlign());
      return define(load, b_.CreateShuffleVector(made, reversed()));
    }
    if (all_on() && load_group(load)) return;
    remark(load, "gathers because lanes are " + std::to_string(s.stride) + " bytes apart");
  } else {
    remark(load, "gathers because " + describe(*pointer) + " varies");
  }
  define(load, gather(type, vector_of(pointer), load.getAlign()));
}

// Neighbouring loads with the same stride, transposed together.
bool Emitter::load_group(llvm::LoadInst& load) {
  if (memory_.interleaved(load.getPointerOperand())) return false;
  StridedGroup group =
      find_strided_group(load, shape(load.getPointerOperand()).stride, layout_,
                         [&](const Value* pointer) { return shape(pointer).stride; });
  if (!group.pays(set_)) return false;
  // The first member that is reached loads for all.
  Value* base = scalar_of(load.getPointerOperand());
  std::vector<Value*> results = load_strided_group(b_, group, base, load.getAlign());
  for (size_t i = 0; i < group.members.size(); ++i) {
    Value* made = b_.CreateBitOrPointerCast(results[i], wide(group.members[i].load->getType()));
    define(*group.members[i].load, made);
  }
  return true;
}

llvm::Value* Emitter::load_consecutive(llvm::Type* type, Value* base, llvm::Align align) {
  if (all_on()) return b_.CreateAlignedLoad(wide(type), base, align);
  uint64_t bits = layout_.getTypeSizeInBits(type);
  bool native = set_ == InstructionSet::avx512 || (set_ == InstructionSet::avx2 && bits >= 32);
  if (native)
    return b_.CreateMaskedLoad(wide(type), base, align, mask(),
                               llvm::Constant::getNullValue(wide(type)));
  return gather(type, as_vector(base, {Shape::linear, static_cast<int64_t>(bits / 8), 1}), align);
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
  if (all_on()) {
    Value* result = llvm::PoisonValue::get(wide(type));
    for (uint64_t lane = 0; lane < lane_count; ++lane) {
      Value* one = b_.CreateAlignedLoad(type, b_.CreateExtractElement(pointers, lane), align);
      result = b_.CreateInsertElement(result, one, lane);
    }
    return result;
  }
  Value* addresses = scratch(b_.getPtrTy(), 0);
  Value* results = scratch(type, 1);
  b_.CreateStore(pointers, addresses);
  for_each_lane([&](Value* lane) {
    Value* at = b_.CreateLoad(b_.getPtrTy(), lane_element(addresses, b_.getPtrTy(), lane));
    b_.CreateStore(b_.CreateAlignedLoad(type, at, align), lane_element(results, type, lane));
  });
  if (type->isIntegerTy(1))
    return b_.CreateTrunc(b_.CreateLoad(wide(b_.getInt8Ty()), results), wide(type));
  return b_.CreateLoad(wide(type), results);
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
    Value* pointers = scratch(b_.getPtrTy(), 0);
    Value* stored = scratch(type, 1);
    b_.CreateStore(vector_of(pointer), pointers);
    b_.CreateStore(values, stored);
    for_each_lane([&](Value* lane) {
      Value* at = b_.CreateLoad(b_.getPtrTy(), lane_element(pointers, b_.getPtrTy(), lane));
      Value* one = b_.CreateLoad(type, lane_element(stored, type, lane));
      b_.CreateAlignedStore(one, at, store.getAlign())->setAtomic(store.getOrdering());
    });
    return;
  }
  bool whole = size == layout_.getTypeAllocSize(type) && !type->isIntegerTy(1);
  if (s.kind == Shape::linear && whole && s.stride == static_cast<int64_t>(size)) {
    Value* base = scalar_of(pointer);
    if (all_on()) {
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
    remark(store, "scatters because " + describe(*pointer) + " varies");
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
  Value* addresses = scratch(b_.getPtrTy(), 0);
  Value* stored = scratch(type, 1);
  b_.CreateStore(pointers, addresses);
  b_.CreateStore(value, stored);
  for_each_lane([&](Value* lane) {
    Value* at = b_.CreateLoad(b_.getPtrTy(), lane_element(addresses, b_.getPtrTy(), lane));
    b_.CreateAlignedStore(b_.CreateLoad(type, lane_element(stored, type, lane)), at, align);
  });
}

void Emitter::emit_atomic(llvm::AtomicRMWInst& atomic) {
  using Operation = llvm::AtomicRMWInst;
  const Value* pointer = atomic.getPointerOperand();
  const Value* operand = atomic.getValOperand();
  llvm::Type* type = plain(operand->getType());
  bool own = is_group_private(pointer);
  auto perform_one = [&](Value* at, Value* value) -> Value* {
    if (!own)
      return b_.CreateAtomicRMW(atomic.getOperation(), at, value, atomic.getAlign(),
                                atomic.getOrdering());
    Value* old = b_.CreateAlignedLoad(type, at, atomic.getAlign());
    b_.CreateAlignedStore(llvm::buildAtomicRMWValue(atomic.getOperation(), b_, old, value), at,
                          atomic.getAlign());
    return old;
  };
  if (shape(pointer).kind == Shape::uniform && atomic.use_empty() && type->isIntegerTy() &&
      (type->isIntegerTy(32) || type->isIntegerTy(64))) {
    bool narrow = type->isIntegerTy(32);
    std::optional<msl::Intrinsic> reduction;
    using msl::Intrinsic;
    switch (atomic.getOperation()) {
      case Operation::Add:
      case Operation::Sub:
        reduction = narrow ? Intrinsic::reduce_add_u32 : Intrinsic::reduce_add_u64;
        break;
      case Operation::And:
        reduction = narrow ? Intrinsic::reduce_and_u32 : Intrinsic::reduce_and_u64;
        break;
      case Operation::Or:
        reduction = narrow ? Intrinsic::reduce_or_u32 : Intrinsic::reduce_or_u64;
        break;
      case Operation::Xor:
        reduction = narrow ? Intrinsic::reduce_xor_u32 : Intrinsic::reduce_xor_u64;
        break;
      case Operation::Max:
        reduction = narrow ? Intrinsic::reduce_max_i32 : Intrinsic::reduce_max_i64;
        break;
      case Operation::Min:
        reduction = narrow ? Intrinsic::reduce_min_i32 : Intrinsic::reduce_min_i64;
        break;
      case Operation::UMax:
        reduction = narrow ? Intrinsic::reduce_max_u32 : Intrinsic::reduce_max_u64;
        break;
      case Operation::UMin:
        reduction = narrow ? Intrinsic::reduce_min_u32 : Intrinsic::reduce_min_u64;
        break;
      default:
        break;
    }
    if (reduction) {
      perform_one(scalar_of(pointer),
                  lanes_.reduce(*reduction, vector_of(operand), all_on() ? nullptr : mask()));
      return;
    }
  }
  Shape at_shape = shape(pointer);
  Value* at_base = at_shape.is_scalar() ? scalar_of(pointer) : nullptr;
  Value* addresses = nullptr;
  if (!at_base) {
    addresses = scratch(b_.getPtrTy(), 0);
    b_.CreateStore(vector_of(pointer), addresses);
  }
  bool one_value = shape(operand).kind == Shape::uniform;
  Value* single = one_value ? scalar_of(operand) : nullptr;
  Value* values = nullptr;
  if (!one_value) {
    values = scratch(type, 1);
    b_.CreateStore(vector_of(operand), values);
  }
  Value* results = atomic.use_empty() ? nullptr : scratch(type, 2);
  for_each_lane([&](Value* lane) {
    Value* at = nullptr;
    if (at_base) {
      at = b_.CreateGEP(b_.getInt8Ty(), at_base,
                        b_.CreateMul(b_.CreateZExt(lane, b_.getInt64Ty()),
                                     b_.getInt64(static_cast<uint64_t>(at_shape.stride))));
    } else {
      at = b_.CreateLoad(b_.getPtrTy(), lane_element(addresses, b_.getPtrTy(), lane));
    }
    Value* value = single ? single : b_.CreateLoad(type, lane_element(values, type, lane));
    Value* old = perform_one(at, value);
    if (results) b_.CreateStore(old, lane_element(results, type, lane));
  });
  if (results) define(atomic, b_.CreateLoad(wide(type), results));
}

void Emitter::emit_compare_exchange(llvm::AtomicCmpXchgInst& atomic) {
  const Value* pointer = atomic.getPointerOperand();
  llvm::Type* type = plain(atomic.getNewValOperand()->getType());
  bool own = is_group_private(pointer);
  Value* addresses = scratch(b_.getPtrTy(), 0);
  Value* expected = scratch(type, 1);
  Value* desired = scratch(type, 2);
  Value* old_values = scratch(type, 3);
  Value* successes = scratch(b_.getInt8Ty(), 4);
  b_.CreateStore(vector_of(pointer), addresses);
  b_.CreateStore(vector_of(atomic.getCompareOperand()), expected);
  b_.CreateStore(vector_of(atomic.getNewValOperand()), desired);
  for_each_lane([&](Value* lane) {
    Value* at = b_.CreateLoad(b_.getPtrTy(), lane_element(addresses, b_.getPtrTy(), lane));
    Value* want = b_.CreateLoad(type, lane_element(expected, type, lane));
    Value* put = b_.CreateLoad(type, lane_element(desired, type, lane));
    Value *old = nullptr, *success = nullptr;
    if (own) {
      old = b_.CreateAlignedLoad(type, at, atomic.getAlign());
      success = b_.CreateICmpEQ(old, want);
      b_.CreateAlignedStore(b_.CreateSelect(success, put, old), at, atomic.getAlign());
    } else {
      Value* both =
          b_.CreateAtomicCmpXchg(at, want, put, atomic.getAlign(), atomic.getSuccessOrdering(),
                                 atomic.getFailureOrdering());
      old = b_.CreateExtractValue(both, 0);
      success = b_.CreateExtractValue(both, 1);
    }
    b_.CreateStore(old, lane_element(old_values, type, lane));
    b_.CreateStore(b_.CreateZExt(success, b_.getInt8Ty()),
                   lane_element(successes, b_.getInt8Ty(), lane));
  });
  Value* flags = b_.CreateLoad(wide(b_.getInt8Ty()), successes);
  exchanges_[&atomic] = {b_.CreateLoad(wide(type), old_values),
                         b_.CreateICmpNE(flags, llvm::Constant::getNullValue(flags->getType()))};
}

}  // namespace holdfast::jit
