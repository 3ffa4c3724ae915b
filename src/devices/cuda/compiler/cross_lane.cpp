#include "devices/cuda/compiler/cross_lane.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicsNVPTX.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/IR/Module.h>

#include <map>
#include <stdexcept>

#include "devices/cpu/jit/compiler/widen/intrinsics.h"

namespace holdfast::cuda {
namespace {

using llvm::IRBuilder;
using llvm::Value;
using msl::Intrinsic;

enum class Kind : uint8_t { reduce, scan_inclusive, scan_exclusive };
enum class Op : uint8_t { add, mul, min, max, and_, or_, xor_ };
struct Operation {
  Kind kind;
  Op op;
  bool is_signed;
};

// reduce_add_f32, scan_inclusive_mul_u32, …
std::optional<Operation> operation_of(llvm::StringRef name) {
  Operation result{};
  if (name.consume_front("reduce_")) {
    result.kind = Kind::reduce;
  } else if (name.consume_front("scan_inclusive_")) {
    result.kind = Kind::scan_inclusive;
  } else if (name.consume_front("scan_exclusive_")) {
    result.kind = Kind::scan_exclusive;
  } else {
    return std::nullopt;
  }
  auto [op, type] = name.split('_');
  static constexpr std::pair<const char*, Op> ops[] = {
      {"add", Op::add},  {"mul", Op::mul}, {"min", Op::min}, {"max", Op::max},
      {"and", Op::and_}, {"or", Op::or_},  {"xor", Op::xor_}};
  for (auto& [text, value] : ops) {
    if (op == text) result.op = value;
  }
  result.is_signed = type.starts_with("i");
  return result;
}

class Lowering {
 public:
  Lowering(llvm::Function& kernel, const Convergence& convergence)
      : kernel_(kernel), convergence_(convergence), b_(kernel.getContext()) {}

  void run() {
    llvm::SmallVector<llvm::CallInst*, 32> calls;
    for (llvm::Instruction& instruction : llvm::instructions(kernel_)) {
      std::optional<Intrinsic> intrinsic = jit::kernel_intrinsic(instruction);
      if (intrinsic && jit::behaviour_of(*intrinsic) >= jit::Behaviour::cross_lane)
        calls.push_back(llvm::cast<llvm::CallInst>(&instruction));
    }
    if (calls.empty()) return;
    llvm::BasicBlock& entry = kernel_.getEntryBlock();
    b_.SetInsertPoint(&entry, entry.getFirstNonPHIOrDbgOrAlloca());
    auto* lane = b_.CreateIntrinsic(llvm::Intrinsic::nvvm_read_ptx_sreg_laneid, {}, {});
    lane->setMetadata(
        llvm::LLVMContext::MD_range,
        llvm::MDBuilder(kernel_.getContext()).createRange(llvm::APInt(32, 0), llvm::APInt(32, 32)));
    lane_ = lane;
    const llvm::BasicBlock* block = nullptr;
    for (llvm::CallInst* call : calls) {
      if (call->getParent() != block) moved_.clear();
      block = call->getParent();
      b_.SetInsertPoint(call);
      auto known = convergence_.masks.find(call);
      mask_ = known != convergence_.masks.end() ? known->second : convergence_.everyone;
      auto* constant = llvm::dyn_cast<llvm::ConstantInt>(mask_);
      is_full_ = constant && constant->isMinusOne();
      Value* result = lower(*call, *jit::kernel_intrinsic(*call));
      if (!call->getType()->isVoidTy()) call->replaceAllUsesWith(result);
      call->eraseFromParent();
    }
  }

 private:
  Value* number(uint32_t value) { return b_.getInt32(value); }

  llvm::CallInst* call(llvm::Intrinsic::ID id, llvm::ArrayRef<Value*> arguments) {
    llvm::CallInst* made = b_.CreateIntrinsic(id, {}, arguments);
    made->setConvergent();
    made->addFnAttr(llvm::Attribute::NoMerge);
    return made;
  }

  Value* lower(llvm::CallInst& site, Intrinsic intrinsic) {
    auto operand = [&](unsigned i) { return site.getArgOperand(i); };
    switch (intrinsic) {
      case Intrinsic::threadgroup_barrier:
        // Not `aligned` where lanes may be missing.
        if (is_full_everywhere() && !convergence_.partial_barriers.contains(&site))
          return call(llvm::Intrinsic::nvvm_barrier0, {});
        return call(llvm::Intrinsic::nvvm_barrier_sync, {number(0)});
      case Intrinsic::simdgroup_barrier:
        return call(llvm::Intrinsic::nvvm_bar_warp_sync, {mask_});
      case Intrinsic::ballot:
        return call(llvm::Intrinsic::nvvm_vote_ballot_sync,
                    {mask_, b_.CreateICmpNE(operand(0), number(0))});
      case Intrinsic::shuffle_u32:
      case Intrinsic::shuffle_u64:
        return shuffle(operand(0), operand(1));
      case Intrinsic::shuffle_xor_u32:
      case Intrinsic::shuffle_xor_u64:
        if (auto* distance = llvm::dyn_cast<llvm::ConstantInt>(operand(1));
            is_full_ && distance && distance->getValue().ult(32))
          return move(llvm::Intrinsic::nvvm_shfl_sync_bfly_i32, operand(0), distance, 0x1f);
        return shuffle(operand(0), b_.CreateXor(lane_, operand(1)));
      case Intrinsic::shuffle_up_u32:
      case Intrinsic::shuffle_up_u64:
        return shuffle(operand(0), b_.CreateSub(lane_, operand(1)));
      case Intrinsic::shuffle_down_u32:
      case Intrinsic::shuffle_down_u64:
        // The sum of a large distance would come back to the simdgroup.
        return shuffle(operand(0), b_.CreateSelect(b_.CreateICmpULT(operand(1), number(32)),
                                                   b_.CreateAdd(lane_, operand(1)), number(32)));
      case Intrinsic::matrix_multiply_accumulate_f32:
        return multiply(site);
      default:
        break;
    }
    llvm::StringRef name = site.getCalledFunction()->getName();
    name.consume_front(msl::intrinsic_prefix);
    std::optional<Operation> operation = operation_of(name);
    if (!operation) throw std::logic_error("[jit] no lowering of " + name.str());
    if (operation->kind == Kind::reduce) return reduce(*operation, operand(0));
    return scan(*operation, operand(0));
  }

  bool is_full_everywhere() const {
    auto* everyone = llvm::dyn_cast<llvm::ConstantInt>(convergence_.everyone);
    return everyone && everyone->isMinusOne();
  }

  // 32 bits by shfl.sync, as integer or float; 64 bits in halves.
  Value* move(llvm::Intrinsic::ID id, Value* value, Value* by, uint32_t clamp) {
    llvm::Type* type = value->getType();
    if (type->isFloatTy())
      return b_.CreateBitCast(move(id, b_.CreateBitCast(value, b_.getInt32Ty()), by, clamp), type);
    if (type->isIntegerTy(32)) return call(id, {mask_, value, by, number(clamp)});
    Value* low = move(id, b_.CreateTrunc(value, b_.getInt32Ty()), by, clamp);
    Value* high = move(id, b_.CreateTrunc(b_.CreateLShr(value, 32), b_.getInt32Ty()), by, clamp);
    return b_.CreateOr(b_.CreateZExt(low, type), b_.CreateShl(b_.CreateZExt(high, type), 32));
  }
  // `from` is a lane that takes part.
  Value* value_of(Value* value, Value* from) {
    return move(llvm::Intrinsic::nvvm_shfl_sync_idx_i32, value, from, 0x1f);
  }
  Value* is_active(Value* lane) {
    return b_.CreateICmpNE(b_.CreateAnd(b_.CreateLShr(mask_, lane), number(1)), number(0));
  }

  // The value of lane `from`; of the own lane where that is beyond 31 or does not take part.
  Value* shuffle(Value* value, Value* from) {
    Value* exists = b_.CreateICmpULT(from, number(32));
    if (!is_full_) exists = b_.CreateAnd(exists, is_active(b_.CreateAnd(from, number(31))));
    return value_of(value, b_.CreateSelect(exists, from, lane_));
  }

  Value* combine(const Operation& operation, Value* a, Value* c) {
    const bool is_float = a->getType()->isFloatTy();
    switch (operation.op) {
      case Op::add:
        return is_float ? b_.CreateFAdd(a, c) : b_.CreateAdd(a, c);
      case Op::mul:
        return is_float ? b_.CreateFMul(a, c) : b_.CreateMul(a, c);
      case Op::min:
      case Op::max: {
        const bool is_min = operation.op == Op::min;
        if (is_float) {
          // A NaN loses against a number; of two equal values (the zeros) the first one stays.
          Value* wins = is_min ? b_.CreateFCmpOLT(c, a) : b_.CreateFCmpOGT(c, a);
          return b_.CreateSelect(b_.CreateOr(b_.CreateFCmpUNO(a, a), wins), c, a);
        }
        return b_.CreateBinaryIntrinsic(
            operation.is_signed ? (is_min ? llvm::Intrinsic::smin : llvm::Intrinsic::smax)
                                : (is_min ? llvm::Intrinsic::umin : llvm::Intrinsic::umax),
            a, c);
      }
      case Op::and_:
        return b_.CreateAnd(a, c);
      case Op::or_:
        return b_.CreateOr(a, c);
      case Op::xor_:
        return b_.CreateXor(a, c);
    }
    throw std::logic_error("[jit] an operation without a case");
  }

  llvm::Constant* neutral(const Operation& operation, llvm::Type* type) {
    const bool is_float = type->isFloatTy();
    const unsigned bits = is_float ? 32 : type->getIntegerBitWidth();
    switch (operation.op) {
      case Op::mul:
        return is_float ? llvm::ConstantFP::get(type, 1.0) : llvm::ConstantInt::get(type, 1);
      case Op::min:
        if (is_float) return llvm::ConstantFP::getInfinity(type);
        return llvm::ConstantInt::get(type, operation.is_signed
                                                ? llvm::APInt::getSignedMaxValue(bits)
                                                : llvm::APInt::getMaxValue(bits));
      case Op::max:
        if (is_float) return llvm::ConstantFP::getInfinity(type, true);
        return llvm::ConstantInt::get(type, operation.is_signed
                                                ? llvm::APInt::getSignedMinValue(bits)
                                                : llvm::APInt::getMinValue(bits));
      case Op::and_:
        return llvm::Constant::getAllOnesValue(type);
      default:
        return llvm::Constant::getNullValue(type);
    }
  }

  // The one instruction that sm_80 has for reductions of 32-bit integers.
  std::optional<llvm::Intrinsic::ID> instruction_of(const Operation& operation,
                                                    const llvm::Type* type) {
    if (!type->isIntegerTy(32)) return std::nullopt;
    switch (operation.op) {
      case Op::add:
        return llvm::Intrinsic::nvvm_redux_sync_add;
      case Op::min:
        return operation.is_signed ? llvm::Intrinsic::nvvm_redux_sync_min
                                   : llvm::Intrinsic::nvvm_redux_sync_umin;
      case Op::max:
        return operation.is_signed ? llvm::Intrinsic::nvvm_redux_sync_max
                                   : llvm::Intrinsic::nvvm_redux_sync_umax;
      case Op::and_:
        return llvm::Intrinsic::nvvm_redux_sync_and;
      case Op::or_:
        return llvm::Intrinsic::nvvm_redux_sync_or;
      case Op::xor_:
        return llvm::Intrinsic::nvvm_redux_sync_xor;
      case Op::mul:
        break;
    }
    return std::nullopt;
  }

  Value* reduce(const Operation& operation, Value* value) {
    if (auto id = instruction_of(operation, value->getType())) return call(*id, {value, mask_});
    // Where the order of two operands shows, that of the lower lane comes first: then all lanes get
    // the same.
    const bool is_ordered =
        value->getType()->isFloatTy() && (operation.op == Op::min || operation.op == Op::max);
    for (uint32_t distance = 16; distance > 0; distance /= 2) {
      Value* other =
          is_full_ ? move(llvm::Intrinsic::nvvm_shfl_sync_bfly_i32, value, number(distance), 0x1f)
                   : partner(value, distance, neutral(operation, value->getType()));
      Value *first = value, *second = other;
      if (is_ordered) {
        Value* is_upper = b_.CreateICmpNE(b_.CreateAnd(lane_, number(distance)), number(0));
        first = b_.CreateSelect(is_upper, other, value);
        second = b_.CreateSelect(is_upper, value, other);
      }
      value = combine(operation, first, second);
    }
    return value;
  }

  // Before the step of this distance, lanes whose index is the same modulo twice the distance hold
  // the same value, and lanes that do not take part would have held it as well: any active one of
  // the partner's class will do. A class without one has the neutral value.
  Value* partner(Value* value, uint32_t distance, Value* nothing) {
    const uint32_t modulus = 2 * distance;
    uint32_t pattern = 0;
    for (uint32_t i = 0; i < 32; i += modulus) pattern |= 1u << i;
    Value* wanted = b_.CreateAnd(b_.CreateXor(lane_, number(distance)), number(modulus - 1));
    Value* lanes = b_.CreateAnd(mask_, b_.CreateShl(number(pattern), wanted));
    Value* exists = b_.CreateICmpNE(lanes, number(0));
    Value* from = b_.CreateSelect(
        exists, b_.CreateBinaryIntrinsic(llvm::Intrinsic::cttz, lanes, b_.getFalse()), lane_);
    return b_.CreateSelect(exists, value_of(value, from), nothing);
  }

  // The tree of intrinsics.def.
  Value* scan(const Operation& operation, Value* value) {
    for (uint32_t distance = 1; distance < 32; distance *= 2) {
      Value* takes = b_.CreateICmpNE(b_.CreateAnd(lane_, number(distance)), number(0));
      Value* sum = nullptr;
      if (is_full_) {
        // The last lane of the lower half of each segment of twice the distance.
        sum = move(llvm::Intrinsic::nvvm_shfl_sync_idx_i32, value, number(distance - 1),
                   (32 - 2 * distance) << 8 | 0x1f);
      } else {
        Value* half = b_.CreateAnd(lane_, number(32 - 2 * distance));
        Value* lanes = b_.CreateAnd(mask_, b_.CreateShl(number((1u << distance) - 1), half));
        takes = b_.CreateAnd(takes, b_.CreateICmpNE(lanes, number(0)));
        sum = value_of(value, b_.CreateSelect(takes, last_of(lanes), lane_));
      }
      value = b_.CreateSelect(takes, combine(operation, sum, value), value);
    }
    if (operation.kind == Kind::scan_inclusive) return value;
    llvm::Constant* nothing = neutral(operation, value->getType());
    if (is_full_) {
      Value* other = move(llvm::Intrinsic::nvvm_shfl_sync_up_i32, value, number(1), 0);
      return b_.CreateSelect(b_.CreateICmpEQ(lane_, number(0)), nothing, other);
    }
    Value* lanes = b_.CreateAnd(mask_, b_.CreateSub(b_.CreateShl(number(1), lane_), number(1)));
    Value* exists = b_.CreateICmpNE(lanes, number(0));
    return b_.CreateSelect(exists, value_of(value, b_.CreateSelect(exists, last_of(lanes), lane_)),
                           nothing);
  }

  // The last of `lanes`, which are not none.
  Value* last_of(Value* lanes) {
    return b_.CreateSub(number(31),
                        b_.CreateBinaryIntrinsic(llvm::Intrinsic::ctlz, lanes, b_.getFalse()));
  }

  // Element (row, column) of a matrix is in lane (row & 4) << 2 | (column & 4) << 1 | (row & 3) <<
  // 1 | (column & 2) >> 1.
  Value* multiply(llvm::CallInst& site) {
    const uint64_t which = llvm::cast<llvm::ConstantInt>(site.getArgOperand(6))->getZExtValue() & 1;
    Value* sum = site.getArgOperand(4 + static_cast<unsigned>(which));
    for (uint32_t k = 0; k < 8; ++k) {
      Value* a = element(site.getArgOperand(k & 1), 0b10110, (k & 4) << 1 | (k & 2) >> 1);
      Value* c = element(site.getArgOperand(2 + static_cast<unsigned>(which)), 0b01001,
                         (k & 4) << 2 | (k & 3) << 1);
      sum = b_.CreateIntrinsic(llvm::Intrinsic::fma, {sum->getType()}, {a, c, sum});
    }
    return sum;
  }

  // The value in the lane that has these bits of the own one's index, and those of `other`.
  // Products of one block that share an operand share its shuffles.
  Value* element(Value* value, uint32_t own, uint32_t other) {
    Value*& moved = moved_[{value, mask_, own, other}];
    if (moved) return moved;
    Value* from = b_.CreateOr(b_.CreateAnd(lane_, number(own)), number(other));
    Value* safe = is_full_ ? from : b_.CreateSelect(is_active(from), from, lane_);
    moved = value_of(value, safe);
    if (!is_full_)
      moved =
          b_.CreateSelect(is_active(from), moved, llvm::Constant::getNullValue(value->getType()));
    return moved;
  }

  llvm::Function& kernel_;
  const Convergence& convergence_;
  IRBuilder<> b_;
  Value *lane_ = nullptr, *mask_ = nullptr;
  bool is_full_ = false;
  std::map<std::tuple<Value*, Value*, uint32_t, uint32_t>, Value*> moved_;
};

}  // namespace

void lower_cross_lane(llvm::Function& kernel, const Convergence& convergence) {
  Lowering(kernel, convergence).run();
}

}  // namespace holdfast::cuda
