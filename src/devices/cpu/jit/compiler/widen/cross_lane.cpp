#include "devices/cpu/jit/compiler/widen/cross_lane.h"

#include <llvm/IR/Constants.h>
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/IntrinsicsX86.h>
#include <llvm/IR/Module.h>

#include <numeric>

#include "devices/cpu/jit/kernel_abi.h"

namespace holdfast::jit {
namespace {

using llvm::Value;
using msl::Intrinsic;

constexpr int width = simdgroup_width;

enum class Operator : uint8_t {
  add,
  mul,
  min,
  max,
  unsigned_min,
  unsigned_max,
  bit_and,
  bit_or,
  bit_xor
};

Operator operator_of(Intrinsic intrinsic) {
  switch (intrinsic) {
    case Intrinsic::reduce_mul_f32:
    case Intrinsic::reduce_mul_u32:
    case Intrinsic::reduce_mul_u64:
    case Intrinsic::scan_exclusive_mul_f32:
    case Intrinsic::scan_inclusive_mul_f32:
    case Intrinsic::scan_exclusive_mul_u32:
    case Intrinsic::scan_inclusive_mul_u32:
      return Operator::mul;
    case Intrinsic::reduce_min_f32:
    case Intrinsic::reduce_min_i32:
    case Intrinsic::reduce_min_i64:
      return Operator::min;
    case Intrinsic::reduce_max_f32:
    case Intrinsic::reduce_max_i32:
    case Intrinsic::reduce_max_i64:
      return Operator::max;
    case Intrinsic::reduce_min_u32:
    case Intrinsic::reduce_min_u64:
      return Operator::unsigned_min;
    case Intrinsic::reduce_max_u32:
    case Intrinsic::reduce_max_u64:
      return Operator::unsigned_max;
    case Intrinsic::reduce_and_u32:
    case Intrinsic::reduce_and_u64:
      return Operator::bit_and;
    case Intrinsic::reduce_or_u32:
    case Intrinsic::reduce_or_u64:
      return Operator::bit_or;
    case Intrinsic::reduce_xor_u32:
    case Intrinsic::reduce_xor_u64:
      return Operator::bit_xor;
    default:
      return Operator::add;
  }
}

bool is_inclusive(Intrinsic intrinsic) {
  switch (intrinsic) {
    case Intrinsic::scan_inclusive_add_f32:
    case Intrinsic::scan_inclusive_mul_f32:
    case Intrinsic::scan_inclusive_add_u32:
    case Intrinsic::scan_inclusive_mul_u32:
    case Intrinsic::scan_inclusive_add_u64:
      return true;
    default:
      return false;
  }
}

// The lanes' places in an 8×8 matrix.
int row_of(int lane) { return (lane / 4 & 4) + lane / 2 % 4; }
int column_of(int lane) { return (lane / 4 & 2) * 2 + lane % 2 * 2; }
int lane_of(int row, int even_column) {
  for (int lane = 0; lane < width; ++lane) {
    if (row_of(lane) == row && column_of(lane) == even_column) return lane;
  }
  return 0;
}

}  // namespace

Value* Lanes::bits(Value* mask) { return b_.CreateBitCast(mask, b_.getInt32Ty()); }
Value* Lanes::any(Value* mask) { return b_.CreateICmpNE(bits(mask), b_.getInt32(0)); }
Value* Lanes::all(Value* mask) { return b_.CreateICmpEQ(bits(mask), b_.getInt32(~0u)); }

llvm::Constant* Lanes::all_ones() {
  return llvm::ConstantVector::getSplat(llvm::ElementCount::getFixed(width), b_.getTrue());
}

llvm::Constant* Lanes::index(llvm::Type* integer, int64_t factor) {
  llvm::SmallVector<llvm::Constant*, width> elements;
  for (int i = 0; i < width; ++i)
    elements.push_back(llvm::ConstantInt::get(integer, static_cast<uint64_t>(i * factor), true));
  return llvm::ConstantVector::get(elements);
}

llvm::Constant* Lanes::vector(llvm::Type* integer, const LaneOffsets& values) {
  llvm::SmallVector<llvm::Constant*, width> elements;
  for (int64_t value : values)
    elements.push_back(llvm::ConstantInt::get(integer, static_cast<uint64_t>(value), true));
  return llvm::ConstantVector::get(elements);
}

llvm::Constant* Lanes::offsets(llvm::Type* integer, const Shape& shape) {
  LaneOffsets values;
  for (size_t lane = 0; lane < values.size(); ++lane)
    values[lane] = shape.offset(static_cast<int64_t>(lane));
  return vector(integer, values);
}

Value* Lanes::splat(Value* scalar) { return b_.CreateVectorSplat(width, scalar); }

llvm::Constant* Lanes::neutral(Intrinsic operation, llvm::Type* type) {
  bool is_float = type->isFloatingPointTy();
  unsigned bits = type->getScalarSizeInBits();
  switch (operator_of(operation)) {
    case Operator::mul:
      return is_float ? llvm::ConstantFP::get(type, 1.0) : llvm::ConstantInt::get(type, 1);
    case Operator::min:
      return is_float ? llvm::ConstantFP::getInfinity(type)
                      : llvm::ConstantInt::get(type, llvm::APInt::getSignedMaxValue(bits));
    case Operator::max:
      return is_float ? llvm::ConstantFP::getInfinity(type, true)
                      : llvm::ConstantInt::get(type, llvm::APInt::getSignedMinValue(bits));
    case Operator::unsigned_min:
    case Operator::bit_and:
      return llvm::Constant::getAllOnesValue(type);
    default:
      return llvm::Constant::getNullValue(type);
  }
}

Value* Lanes::combine(Intrinsic operation, Value* a, Value* c) {
  bool is_float = a->getType()->isFPOrFPVectorTy();
  switch (operator_of(operation)) {
    case Operator::add:
      return is_float ? b_.CreateFAdd(a, c) : b_.CreateAdd(a, c);
    case Operator::mul:
      return is_float ? b_.CreateFMul(a, c) : b_.CreateMul(a, c);
    // A NaN loses against a number; of two zeros the first one stays.
    case Operator::min:
      if (!is_float) return b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, a, c);
      return b_.CreateSelect(b_.CreateFCmpUNO(a, a), c,
                             b_.CreateSelect(b_.CreateFCmpOLT(c, a), c, a));
    case Operator::max:
      if (!is_float) return b_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, a, c);
      return b_.CreateSelect(b_.CreateFCmpUNO(a, a), c,
                             b_.CreateSelect(b_.CreateFCmpOGT(c, a), c, a));
    case Operator::unsigned_min:
      return b_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, a, c);
    case Operator::unsigned_max:
      return b_.CreateBinaryIntrinsic(llvm::Intrinsic::umax, a, c);
    case Operator::bit_and:
      return b_.CreateAnd(a, c);
    case Operator::bit_or:
      return b_.CreateOr(a, c);
    case Operator::bit_xor:
      return b_.CreateXor(a, c);
  }
  return nullptr;
}

// The butterfly gives every lane the same bits, so halving suffices: what lane 0 computes.
Value* Lanes::reduce(Intrinsic operation, Value* vector, Value* mask) {
  llvm::Type* type = vector->getType()->getScalarType();
  if (mask) vector = b_.CreateSelect(mask, vector, splat(neutral(operation, type)));
  for (int half = width / 2; half >= 1; half /= 2) {
    llvm::SmallVector<int, width> low(half), high(half);
    std::iota(low.begin(), low.end(), 0);
    std::iota(high.begin(), high.end(), half);
    vector = combine(operation, b_.CreateShuffleVector(vector, low),
                     b_.CreateShuffleVector(vector, high));
  }
  return b_.CreateExtractElement(vector, uint64_t{0});
}

// The tree of intrinsics.def. Lanes that are off hold what changes no value, not even a zero's
// sign; so they hold what the last lane before them that is on does.
Value* Lanes::scan(Intrinsic operation, Value* vector, Value* mask) {
  llvm::Type* type = vector->getType()->getScalarType();
  llvm::Constant* none = neutral(operation, type);
  llvm::Constant* unchanging = type->isFloatingPointTy() && none->isNullValue()
                                   ? llvm::ConstantFP::getZero(type, /*Negative=*/true)
                                   : none;
  if (mask) vector = b_.CreateSelect(mask, vector, splat(unchanging));
  llvm::SmallVector<int, width> pattern(width);
  for (int distance = 1; distance < width; distance *= 2) {
    for (int i = 0; i < width; ++i)
      pattern[i] = (i & distance) != 0 ? (i & -distance) - 1 : width + i;
    Value* below = b_.CreateShuffleVector(vector, splat(unchanging), pattern);
    vector = combine(operation, below, vector);
  }
  if (is_inclusive(operation)) return vector;
  for (int i = 0; i < width; ++i) pattern[i] = i == 0 ? width : i - 1;
  vector = b_.CreateShuffleVector(vector, splat(none), pattern);
  if (!mask || unchanging == none) return vector;
  Value* first = b_.CreateBinaryIntrinsic(llvm::Intrinsic::cttz, bits(mask), b_.getFalse());
  return b_.CreateSelect(b_.CreateICmpUGT(index(b_.getInt32Ty()), splat(first)), vector,
                         splat(none));
}

Value* Lanes::permute(Value* vector, Value* indices) {
  llvm::Type* type = vector->getType()->getScalarType();
  unsigned bits = type->getScalarSizeInBits();
  if (auto* constant = llvm::dyn_cast<llvm::Constant>(indices)) {
    llvm::SmallVector<int, width> pattern;
    for (unsigned i = 0; i < width; ++i) {
      auto* element = llvm::dyn_cast_or_null<llvm::ConstantInt>(constant->getAggregateElement(i));
      pattern.push_back(element ? static_cast<int>(element->getZExtValue() % width) : -1);
    }
    return b_.CreateShuffleVector(vector, pattern);
  }
  if (set_ == InstructionSet::avx512 && bits == 32) return permute_pairs(vector, indices);
  // Through memory.
  llvm::Function* function = b_.GetInsertBlock()->getParent();
  llvm::IRBuilder<> at_start(&function->getEntryBlock(), function->getEntryBlock().begin());
  llvm::AllocaInst* place = at_start.CreateAlloca(vector->getType());
  place->setAlignment(llvm::Align(64));
  b_.CreateAlignedStore(vector, place, llvm::Align(64));
  Value* result = llvm::PoisonValue::get(vector->getType());
  // Whatever the index is, it must not lead elsewhere.
  indices =
      b_.CreateAnd(b_.CreateFreeze(indices), llvm::ConstantInt::get(indices->getType(), width - 1));
  for (uint64_t i = 0; i < width; ++i) {
    Value* from = b_.CreateInBoundsGEP(
        type, place, b_.CreateZExt(b_.CreateExtractElement(indices, i), b_.getInt64Ty()));
    result = b_.CreateInsertElement(result, b_.CreateLoad(type, from), i);
  }
  return result;
}

// AVX-512: an index of five bits selects from two registers of sixteen.
Value* Lanes::permute_pairs(Value* vector, Value* indices) {
  llvm::Type* type = vector->getType();
  auto* integers = llvm::FixedVectorType::get(b_.getInt32Ty(), width);
  vector = b_.CreateBitCast(vector, integers);
  llvm::SmallVector<int, 16> low(16), high(16);
  std::iota(low.begin(), low.end(), 0);
  std::iota(high.begin(), high.end(), 16);
  Value* first = b_.CreateShuffleVector(vector, low);
  Value* second = b_.CreateShuffleVector(vector, high);
  Value* halves[2];
  for (int half = 0; half < 2; ++half) {
    Value* part = b_.CreateShuffleVector(indices, half ? high : low);
    halves[half] = b_.CreateIntrinsic(
        first->getType(), llvm::Intrinsic::x86_avx512_vpermi2var_d_512, {first, part, second});
  }
  llvm::SmallVector<int, width> both(width);
  std::iota(both.begin(), both.end(), 0);
  return b_.CreateBitCast(b_.CreateShuffleVector(halves[0], halves[1], both), type);
}

Value* Lanes::shuffle(Intrinsic operation, Value* vector, Value* operand, Value* mask) {
  auto* integers = llvm::FixedVectorType::get(b_.getInt32Ty(), width);
  Value* own = index(b_.getInt32Ty());
  if (!operand->getType()->isVectorTy()) {
    bool plain = operation == Intrinsic::shuffle_u32 || operation == Intrinsic::shuffle_u64;
    if (plain && !mask && !llvm::isa<llvm::Constant>(operand)) {
      // One lane for all; beyond the last lane each keeps its own.
      Value* inside = b_.CreateICmpULT(operand, b_.getInt32(width));
      Value* one = b_.CreateExtractElement(vector, b_.CreateAnd(operand, b_.getInt32(width - 1)));
      return b_.CreateSelect(inside, splat(one), vector);
    }
    bool exchanges =
        operation == Intrinsic::shuffle_xor_u32 || operation == Intrinsic::shuffle_xor_u64;
    if (exchanges && !mask) {
      // Every lane's partner is there, or none's.
      Value* inside = b_.CreateICmpULT(operand, b_.getInt32(width));
      Value* distance = b_.CreateSelect(inside, operand, b_.getInt32(0));
      return permute(vector, b_.CreateXor(own, splat(distance)));
    }
    operand = splat(operand);
  }
  Value* source = nullptr;
  switch (operation) {
    case Intrinsic::shuffle_u32:
    case Intrinsic::shuffle_u64:
      source = operand;
      break;
    case Intrinsic::shuffle_xor_u32:
    case Intrinsic::shuffle_xor_u64:
      source = b_.CreateXor(own, operand);
      break;
    case Intrinsic::shuffle_up_u32:
    case Intrinsic::shuffle_up_u64:
      source = b_.CreateSub(own, operand);
      break;
    default: {
      // Sums beyond 32 bits are beyond 31 too.
      Value* limited =
          b_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, operand, splat(b_.getInt32(width)));
      source = b_.CreateAdd(own, limited);
    }
  }
  Value* inside = b_.CreateICmpULT(source, llvm::ConstantInt::get(integers, width));
  source = b_.CreateSelect(inside, source, own);
  if (mask) {
    Value* active = b_.CreateTrunc(permute(b_.CreateZExt(mask, integers), source), mask->getType());
    source = b_.CreateSelect(active, source, own);
  }
  return permute(vector, source);
}

std::array<Value*, 2> Lanes::multiply(llvm::ArrayRef<Value*> six) {
  Value* sums[2] = {six[4], six[5]};
  llvm::SmallVector<int, width> left(width), right(width);
  for (int k = 0; k < 8; ++k) {
    for (int lane = 0; lane < width; ++lane) {
      left[lane] = lane_of(row_of(lane), k & ~1);
      right[lane] = lane_of(k, column_of(lane));
    }
    Value* a = b_.CreateShuffleVector(six[k & 1], left);
    for (int e = 0; e < 2; ++e) {
      Value* c = b_.CreateShuffleVector(six[2 + e], right);
      sums[e] = b_.CreateIntrinsic(llvm::Intrinsic::fma, {sums[e]->getType()}, {a, c, sums[e]});
    }
  }
  return {sums[0], sums[1]};
}

}  // namespace holdfast::jit
