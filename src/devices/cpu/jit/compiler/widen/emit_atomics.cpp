// Atomic operations: lanes take turns. What belongs to the group needs no locked instruction.
#include <llvm/Transforms/Utils/LowerAtomic.h>

#include <optional>

#include "devices/cpu/jit/compiler/widen/emitter.h"
#include "devices/cpu/jit/kernel_abi.h"
#include "msl/scalar_ir.h"

namespace holdfast::jit {

namespace {

// What all lanes do to one place at once, where the order does not matter.
std::optional<msl::Intrinsic> reduction_of(llvm::AtomicRMWInst::BinOp operation,
                                           const llvm::Type& type) {
  using Operation = llvm::AtomicRMWInst;
  using msl::Intrinsic;
  if (!type.isIntegerTy(32) && !type.isIntegerTy(64)) return std::nullopt;
  bool narrow = type.isIntegerTy(32);
  switch (operation) {
    case Operation::Add:
    case Operation::Sub:
      return narrow ? Intrinsic::reduce_add_u32 : Intrinsic::reduce_add_u64;
    case Operation::And:
      return narrow ? Intrinsic::reduce_and_u32 : Intrinsic::reduce_and_u64;
    case Operation::Or:
      return narrow ? Intrinsic::reduce_or_u32 : Intrinsic::reduce_or_u64;
    case Operation::Xor:
      return narrow ? Intrinsic::reduce_xor_u32 : Intrinsic::reduce_xor_u64;
    case Operation::Max:
      return narrow ? Intrinsic::reduce_max_i32 : Intrinsic::reduce_max_i64;
    case Operation::Min:
      return narrow ? Intrinsic::reduce_min_i32 : Intrinsic::reduce_min_i64;
    case Operation::UMax:
      return narrow ? Intrinsic::reduce_max_u32 : Intrinsic::reduce_max_u64;
    case Operation::UMin:
      return narrow ? Intrinsic::reduce_min_u32 : Intrinsic::reduce_min_u64;
    default:
      return std::nullopt;
  }
}

}  // namespace

// Words of threadgroup memory, all lanes on. Places are held as 32-bit offsets, and go to scalar
// registers in pairs: on the way through memory each would wait for the vector's store. Eight lanes
// a turn: a processor has to learn for each update that its place may be the one just written to,
// so more are slower.
void Emitter::update_own(Value* pointers, const Value& operand,
                         llvm::function_ref<Value*(Value* at, Value* value)> perform_one) {
  constexpr unsigned pairs = simdgroup_width / 2, pairs_at_once = 4;
  auto* words = wide(b_.getInt32Ty());
  auto* in_pairs = llvm::FixedVectorType::get(b_.getInt64Ty(), pairs);
  // A pointer is a scalar and what lanes add to it; modulo 2^32 both may be taken apart.
  Value* start = b_.CreatePtrToInt(threadgroup_memory_, b_.getInt64Ty());
  Value* offsets = nullptr;
  auto* gep = llvm::dyn_cast<llvm::GetElementPtrInst>(pointers);
  if (gep && !gep->getPointerOperandType()->isVectorTy() && gep->getNumIndices() == 1 &&
      gep->getSourceElementType()->isIntegerTy(8)) {
    Value* base = b_.CreatePtrToInt(gep->getPointerOperand(), b_.getInt64Ty());
    Value* moved = b_.CreateTrunc(b_.CreateSub(base, start), b_.getInt32Ty());
    offsets = b_.CreateAdd(b_.CreateTrunc(gep->getOperand(1), words), lanes_.splat(moved));
  } else {
    Value* places = b_.CreatePtrToInt(pointers, wide(b_.getInt64Ty()));
    offsets = b_.CreateTrunc(b_.CreateSub(places, lanes_.splat(start)), words);
  }
  llvm::Type* type = plain(operand.getType());
  Value* single = shape(&operand).kind == Shape::uniform ? scalar_of(&operand) : nullptr;
  Value* values = single ? nullptr : b_.CreateBitCast(vector_of(&operand), in_pairs);
  offsets = b_.CreateBitCast(offsets, in_pairs);

  Block* before = b_.GetInsertBlock();
  Block* loop = new_block("lanes");
  Block* after = new_block("lanes.done");
  b_.CreateBr(loop);
  b_.SetInsertPoint(loop);
  llvm::PHINode* done = b_.CreatePHI(b_.getInt32Ty(), 2);
  llvm::PHINode* places = b_.CreatePHI(in_pairs, 2);
  llvm::PHINode* rest = values ? b_.CreatePHI(in_pairs, 2) : nullptr;
  done->addIncoming(b_.getInt32(0), before);
  places->addIncoming(offsets, before);
  if (rest) rest->addIncoming(values, before);
  for (uint64_t pair = 0; pair < pairs_at_once; ++pair) {
    Value* two_places = b_.CreateExtractElement(places, pair);
    Value* two_values = rest ? b_.CreateExtractElement(rest, pair) : nullptr;
    for (uint64_t half = 0; half < 2; ++half) {
      Value* offset =
          half ? b_.CreateLShr(two_places, 32) : b_.CreateAnd(two_places, b_.getInt64(0xffffffff));
      Value* value = single;
      if (two_values) {
        Value* bits = half ? b_.CreateLShr(two_values, 32) : two_values;
        value = b_.CreateBitCast(b_.CreateTrunc(bits, b_.getInt32Ty()), type);
      }
      perform_one(b_.CreateGEP(b_.getInt8Ty(), threadgroup_memory_, offset), value);
    }
  }
  llvm::SmallVector<int, pairs> next(pairs, llvm::PoisonMaskElem);
  for (unsigned i = pairs_at_once; i < pairs; ++i) next[i - pairs_at_once] = static_cast<int>(i);
  places->addIncoming(b_.CreateShuffleVector(places, next), loop);
  if (rest) rest->addIncoming(b_.CreateShuffleVector(rest, next), loop);
  Value* count = b_.CreateAdd(done, b_.getInt32(pairs_at_once));
  done->addIncoming(count, loop);
  b_.CreateCondBr(b_.CreateICmpNE(count, b_.getInt32(pairs)), loop, after);
  b_.SetInsertPoint(after);
}

void Emitter::emit_atomic(llvm::Instruction& atomic) {
  if (const msl::UnprovedAccess* access = guarded_.lookup(&atomic))
    return update_guarded(atomic, *access);
  if (auto* exchange = llvm::dyn_cast<llvm::AtomicCmpXchgInst>(&atomic))
    return set_updated(atomic, compare_exchange_lanes(*exchange));
  set_updated(atomic, {update_lanes(llvm::cast<llvm::AtomicRMWInst>(atomic)), nullptr});
}

// The old values (null: nothing reads them), and of an exchange whether it was made.
void Emitter::set_updated(llvm::Instruction& atomic, const std::array<Value*, 2>& results) {
  if (llvm::isa<llvm::AtomicCmpXchgInst>(atomic)) {
    exchanges_[&atomic] = {results[0], results[1]};
  } else {
    define(atomic, results[0]);
  }
}

llvm::Value* Emitter::update_lanes(llvm::AtomicRMWInst& atomic) {
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
  if (shape(pointer).kind == Shape::uniform && atomic.use_empty()) {
    if (std::optional<msl::Intrinsic> reduction = reduction_of(atomic.getOperation(), *type)) {
      perform_one(scalar_of(pointer),
                  lanes_.reduce(*reduction, vector_of(operand), all_on() ? nullptr : mask()));
      return nullptr;
    }
  }
  if (own && all_on() && atomic.use_empty() && layout_.getTypeStoreSize(type) == 4 &&
      shape(pointer).kind == Shape::varying) {
    update_own(vector_of(pointer), *operand, perform_one);
    return nullptr;
  }
  // One after the other in a loop: a processor learns that a place may be the one just written to.
  loops_over_lanes_ = true;
  Shape at_shape = shape(pointer);
  bool by_stride = at_shape.kind == Shape::uniform || at_shape.kind == Shape::linear;
  Value* base = by_stride ? scalar_of(pointer) : nullptr;
  Staged addresses = base ? Staged{} : stage(vector_of(pointer), 0);
  Value* single = shape(operand).kind == Shape::uniform ? scalar_of(operand) : nullptr;
  Staged values = single ? Staged{} : stage(vector_of(operand), 1);
  Staged results = stage_result(type, 2);
  for_each_lane([&](Value* lane) {
    Value* at = nullptr;
    if (base) {
      Value* offset = b_.CreateMul(b_.CreateZExt(lane, b_.getInt64Ty()),
                                   b_.getInt64(static_cast<uint64_t>(at_shape.stride)));
      at = b_.CreateGEP(b_.getInt8Ty(), base, offset);
    } else {
      at = take(addresses, lane);
    }
    Value* old = perform_one(at, single ? single : take(values, lane));
    if (!atomic.use_empty()) put(results, lane, old);
  });
  Value* old_values = atomic.use_empty() ? nullptr : collect(results);
  loops_over_lanes_ = false;
  return old_values;
}

std::array<llvm::Value*, 2> Emitter::compare_exchange_lanes(llvm::AtomicCmpXchgInst& atomic) {
  const Value* pointer = atomic.getPointerOperand();
  llvm::Type* type = plain(atomic.getNewValOperand()->getType());
  bool own = is_group_private(pointer);
  loops_over_lanes_ = true;
  Staged addresses = stage(vector_of(pointer), 0);
  Staged expected = stage(vector_of(atomic.getCompareOperand()), 1);
  Staged desired = stage(vector_of(atomic.getNewValOperand()), 2);
  Staged old_values = stage_result(type, 3);
  Staged successes = stage_result(b_.getInt8Ty(), 4);
  for_each_lane([&](Value* lane) {
    Value* at = take(addresses, lane);
    Value* want = take(expected, lane);
    Value* put_value = take(desired, lane);
    Value *old = nullptr, *success = nullptr;
    if (own) {
      old = b_.CreateAlignedLoad(type, at, atomic.getAlign());
      success = b_.CreateICmpEQ(old, want);
      b_.CreateAlignedStore(b_.CreateSelect(success, put_value, old), at, atomic.getAlign());
    } else {
      Value* both =
          b_.CreateAtomicCmpXchg(at, want, put_value, atomic.getAlign(),
                                 atomic.getSuccessOrdering(), atomic.getFailureOrdering());
      old = b_.CreateExtractValue(both, 0);
      success = b_.CreateExtractValue(both, 1);
    }
    put(old_values, lane, old);
    put(successes, lane, b_.CreateZExt(success, b_.getInt8Ty()));
  });
  loops_over_lanes_ = false;
  Value* flags = collect(successes);
  return {collect(old_values),
          b_.CreateICmpNE(flags, llvm::Constant::getNullValue(flags->getType()))};
}

}  // namespace holdfast::jit
