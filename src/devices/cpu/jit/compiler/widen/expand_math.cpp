#include "devices/cpu/jit/compiler/widen/expand_math.h"

#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Module.h>

namespace holdfast::jit {
namespace {

using llvm::cast;
using llvm::dyn_cast;
using llvm::Instruction;
using llvm::isa;
using llvm::Type;
using llvm::Value;

bool is_short_float(const Type* type) {
  const Type* scalar = type->getScalarType();
  return scalar->isHalfTy() || scalar->isBFloatTy();
}

class Expander {
 public:
  Expander(llvm::Function& function, InstructionSet set)
      : function_(function), set_(set), b_(function.getContext()) {}

  void run() {
    for (Instruction& instruction : llvm::make_early_inc_range(llvm::instructions(function_))) {
      if (isa<llvm::FPMathOperator>(instruction))
        instruction.setFastMathFlags(llvm::FastMathFlags());
      instruction.setMetadata(llvm::LLVMContext::MD_fpmath, nullptr);
      b_.SetInsertPoint(&instruction);
      if (Value* replacement = in_float(instruction)) replace(instruction, replacement);
    }
    for (Instruction& instruction : llvm::make_early_inc_range(llvm::instructions(function_)))
      retype(instruction);
    for (Instruction& instruction : llvm::make_early_inc_range(llvm::instructions(function_))) {
      b_.SetInsertPoint(&instruction);
      if (Value* replacement = expand(instruction)) replace(instruction, replacement);
    }
  }

 private:
  static void replace(Instruction& instruction, Value* by) {
    by->takeName(&instruction);
    instruction.replaceAllUsesWith(by);
    instruction.eraseFromParent();
  }

  Type* shaped(Type* like, Type* scalar) const {
    auto* vector = dyn_cast<llvm::VectorType>(like);
    return vector ? llvm::VectorType::get(scalar, vector->getElementCount()) : scalar;
  }
  Type* floats(Type* like) { return shaped(like, b_.getFloatTy()); }
  Type* integers(Type* like) { return shaped(like, b_.getIntNTy(like->getScalarSizeInBits())); }
  Value* number(Type* like, uint64_t bits) { return llvm::ConstantInt::get(like, bits); }

  // Operations on half and bfloat as operations on float. Null: not one.
  Value* in_float(Instruction& instruction) {
    Type* type = instruction.getType();
    if (auto* compare = dyn_cast<llvm::FCmpInst>(&instruction)) {
      if (!is_short_float(compare->getOperand(0)->getType())) return nullptr;
      return b_.CreateFCmp(compare->getPredicate(), up(compare->getOperand(0)),
                           up(compare->getOperand(1)));
    }
    if (auto* binary = dyn_cast<llvm::BinaryOperator>(&instruction); binary && is_short_float(type))
      return down(
          b_.CreateBinOp(binary->getOpcode(), up(binary->getOperand(0)), up(binary->getOperand(1))),
          type);
    if (instruction.getOpcode() == Instruction::FNeg && is_short_float(type)) {
      Type* bits = integers(type);
      return b_.CreateBitCast(
          b_.CreateXor(b_.CreateBitCast(instruction.getOperand(0), bits), number(bits, 0x8000)),
          type);
    }
    switch (instruction.getOpcode()) {
      case Instruction::SIToFP:
      case Instruction::UIToFP:
        if (!is_short_float(type)) return nullptr;
        return down(b_.CreateCast(cast<llvm::CastInst>(instruction).getOpcode(),
                                  instruction.getOperand(0), floats(type)),
                    type);
      case Instruction::FPToSI:
      case Instruction::FPToUI:
        if (!is_short_float(instruction.getOperand(0)->getType())) return nullptr;
        return b_.CreateCast(cast<llvm::CastInst>(instruction).getOpcode(),
                             up(instruction.getOperand(0)), type);
      case Instruction::FPExt:
        if (!is_short_float(instruction.getOperand(0)->getType()) ||
            type->getScalarType()->isFloatTy())
          return nullptr;
        return b_.CreateFPExt(up(instruction.getOperand(0)), type);
      case Instruction::FPTrunc:
        if (!is_short_float(type) ||
            instruction.getOperand(0)->getType()->getScalarType()->isFloatTy())
          return nullptr;
        return down(b_.CreateFPTrunc(instruction.getOperand(0), floats(type)), type);
      default:
        break;
    }
    auto* call = dyn_cast<llvm::IntrinsicInst>(&instruction);
    if (!call) return nullptr;
    bool any = is_short_float(type);
    for (Value* argument : call->args()) any |= is_short_float(argument->getType());
    if (!any) return nullptr;
    llvm::SmallVector<Value*, 4> arguments;
    for (Value* argument : call->args())
      arguments.push_back(is_short_float(argument->getType()) ? up(argument) : argument);
    Type* result = is_short_float(type) ? floats(type) : type;
    llvm::SmallVector<Type*, 2> types;
    llvm::Intrinsic::ID id = call->getIntrinsicID();
    switch (id) {
      case llvm::Intrinsic::fptosi_sat:
      case llvm::Intrinsic::fptoui_sat:
        types = {result, arguments[0]->getType()};
        break;
      default:
        types = {arguments[0]->getType()};
    }
    Value* made = b_.CreateIntrinsic(id, types, arguments);
    return is_short_float(type) ? down(made, type) : made;
  }

  Value* up(Value* value) { return b_.CreateFPExt(value, floats(value->getType())); }
  Value* down(Value* value, Type* type) { return b_.CreateFPTrunc(value, type); }

  // What only moves values of half and bfloat moves integers.
  void retype(Instruction& instruction) {
    b_.SetInsertPoint(&instruction);
    if (auto* store = dyn_cast<llvm::StoreInst>(&instruction)) {
      Value* value = store->getValueOperand();
      if (is_short_float(value->getType()))
        store->setOperand(0, b_.CreateBitCast(value, integers(value->getType())));
      return;
    }
    Type* type = instruction.getType();
    if (!is_short_float(type)) return;
    Type* bits = integers(type);
    if (auto* load = dyn_cast<llvm::LoadInst>(&instruction)) {
      auto* made = cast<llvm::LoadInst>(load->clone());
      made->mutateType(bits);
      made->setMetadata(llvm::LLVMContext::MD_range, nullptr);
      b_.Insert(made);
      replace(instruction, b_.CreateBitCast(made, type));
    } else if (auto* select = dyn_cast<llvm::SelectInst>(&instruction)) {
      Value* made =
          b_.CreateSelect(select->getCondition(), b_.CreateBitCast(select->getTrueValue(), bits),
                          b_.CreateBitCast(select->getFalseValue(), bits));
      replace(instruction, b_.CreateBitCast(made, type));
    } else if (isa<llvm::FreezeInst>(instruction)) {
      replace(instruction,
              b_.CreateBitCast(b_.CreateFreeze(b_.CreateBitCast(instruction.getOperand(0), bits)),
                               type));
    } else if (auto* phi = dyn_cast<llvm::PHINode>(&instruction)) {
      llvm::PHINode* made = b_.CreatePHI(bits, phi->getNumIncomingValues());
      b_.SetInsertPoint(phi->getParent(), phi->getParent()->getFirstInsertionPt());
      Value* back = b_.CreateBitCast(made, type);
      for (unsigned i = 0; i < phi->getNumIncomingValues(); ++i) {
        b_.SetInsertPoint(phi->getIncomingBlock(i)->getTerminator());
        Value* incoming = phi->getIncomingValue(i) == phi ? back : phi->getIncomingValue(i);
        Value* cast_value = nullptr;
        if (int earlier = made->getBasicBlockIndex(phi->getIncomingBlock(i)); earlier >= 0) {
          cast_value = made->getIncomingValue(static_cast<unsigned>(earlier));
        } else {
          cast_value = b_.CreateBitCast(incoming, bits);
        }
        made->addIncoming(cast_value, phi->getIncomingBlock(i));
      }
      phi->replaceAllUsesWith(back);
      phi->eraseFromParent();
    }
  }

  Value* expand(Instruction& instruction) {
    Type* type = instruction.getType();
    if (instruction.getOpcode() == Instruction::FPExt &&
        is_short_float(instruction.getOperand(0)->getType())) {
      Value* value = instruction.getOperand(0);
      bool is_half = value->getType()->getScalarType()->isHalfTy();
      if (is_half && set_ != InstructionSet::baseline) return nullptr;
      Value* bits =
          b_.CreateZExt(b_.CreateBitCast(value, integers(value->getType())), integers(type));
      if (is_half) return half_to_float(bits, type);
      return b_.CreateBitCast(b_.CreateShl(bits, 16), type);
    }
    if (instruction.getOpcode() == Instruction::FPTrunc && is_short_float(type)) {
      bool is_half = type->getScalarType()->isHalfTy();
      if (is_half && set_ != InstructionSet::baseline) return nullptr;
      Value* bits = b_.CreateBitCast(instruction.getOperand(0),
                                     integers(instruction.getOperand(0)->getType()));
      Value* rounded = is_half ? float_to_half(bits) : float_to_bfloat(bits);
      return b_.CreateBitCast(b_.CreateTrunc(rounded, integers(type)), type);
    }
    auto* call = dyn_cast<llvm::IntrinsicInst>(&instruction);
    if (!call) return nullptr;
    bool has_rounding = set_ != InstructionSet::baseline;
    auto operand = [&](unsigned i) { return call->getArgOperand(i); };
    switch (call->getIntrinsicID()) {
      case llvm::Intrinsic::fma:
      case llvm::Intrinsic::fmuladd:
        if (call->getIntrinsicID() == llvm::Intrinsic::fmuladd)
          return b_.CreateFAdd(b_.CreateFMul(operand(0), operand(1)), operand(2));
        if (has_rounding || !type->getScalarType()->isFloatTy()) return nullptr;
        return fused(operand(0), operand(1), operand(2));
      case llvm::Intrinsic::trunc:
        return has_rounding ? nullptr : truncated(operand(0));
      case llvm::Intrinsic::floor:
        return has_rounding ? nullptr : stepped(operand(0), llvm::CmpInst::FCMP_OGT, -1.0);
      case llvm::Intrinsic::ceil:
        return has_rounding ? nullptr : stepped(operand(0), llvm::CmpInst::FCMP_OLT, 1.0);
      case llvm::Intrinsic::rint:
      case llvm::Intrinsic::nearbyint:
      case llvm::Intrinsic::roundeven:
        return has_rounding ? nullptr : to_even(operand(0));
      case llvm::Intrinsic::round:
        return away_from_zero(operand(0));
      case llvm::Intrinsic::minnum:
      case llvm::Intrinsic::maxnum:
        if (set_ == InstructionSet::avx512 && type->getScalarType()->isFloatTy()) return nullptr;
        return extreme(call->getIntrinsicID(), operand(0), operand(1));
      default:
        return nullptr;
    }
  }

  Value* half_to_float(Value* bits, Type* type) {
    Type* t = bits->getType();
    Value* sign = b_.CreateShl(b_.CreateAnd(bits, number(t, 0x8000)), 16);
    Value* magnitude = b_.CreateShl(b_.CreateAnd(bits, number(t, 0x7fff)), 13);
    Value* exponent = b_.CreateAnd(magnitude, number(t, 0x7c00u << 13));
    Value* normal = b_.CreateAdd(magnitude, number(t, (127u - 15u) << 23));
    Value* special = b_.CreateAdd(normal, number(t, (128u - 16u) << 23));
    // A signalling NaN becomes a quiet one.
    Value* is_nan = b_.CreateICmpUGT(magnitude, number(t, 0x7c00u << 13));
    special = b_.CreateSelect(is_nan, b_.CreateOr(special, number(t, 0x400000)), special);
    Value* offset = b_.CreateBitCast(number(t, 113u << 23), type);
    Value* small =
        b_.CreateFSub(b_.CreateBitCast(b_.CreateAdd(normal, number(t, 1u << 23)), type), offset);
    Value* result =
        b_.CreateSelect(b_.CreateICmpEQ(exponent, number(t, 0x7c00u << 13)), special, normal);
    result = b_.CreateSelect(b_.CreateICmpEQ(exponent, number(t, 0)), b_.CreateBitCast(small, t),
                             result);
    return b_.CreateBitCast(b_.CreateOr(result, sign), type);
  }

  Value* float_to_half(Value* bits) {
    Type* t = bits->getType();
    Value* sign = b_.CreateAnd(bits, number(t, 0x80000000u));
    Value* u = b_.CreateXor(bits, sign);
    Value* nan =
        b_.CreateOr(number(t, 0x7e00), b_.CreateAnd(b_.CreateLShr(u, 13), number(t, 0x3ff)));
    Value* large =
        b_.CreateSelect(b_.CreateICmpUGT(u, number(t, 255u << 23)), nan, number(t, 0x7c00));
    uint32_t magic_bits = ((127 - 15) + (23 - 10) + 1) << 23;
    Type* real = floats(t);
    Value* magic = b_.CreateBitCast(number(t, magic_bits), real);
    Value* small =
        b_.CreateSub(b_.CreateBitCast(b_.CreateFAdd(b_.CreateBitCast(u, real), magic), t),
                     number(t, magic_bits));
    Value* odd = b_.CreateAnd(b_.CreateLShr(u, 13), number(t, 1));
    uint32_t rebias = (static_cast<uint32_t>(15 - 127) << 23) + 0xfff;
    Value* normal = b_.CreateLShr(b_.CreateAdd(b_.CreateAdd(u, number(t, rebias)), odd), 13);
    Value* result = b_.CreateSelect(b_.CreateICmpULT(u, number(t, 113u << 23)), small, normal);
    result = b_.CreateSelect(b_.CreateICmpUGE(u, number(t, (127u + 16u) << 23)), large, result);
    return b_.CreateOr(result, b_.CreateLShr(sign, 16));
  }

  Value* float_to_bfloat(Value* bits) {
    Type* t = bits->getType();
    Value* top = b_.CreateLShr(bits, 16);
    Value* rounded = b_.CreateLShr(
        b_.CreateAdd(b_.CreateAdd(bits, number(t, 0x7fff)), b_.CreateAnd(top, number(t, 1))), 16);
    Value* is_nan =
        b_.CreateICmpUGT(b_.CreateAnd(bits, number(t, 0x7fffffff)), number(t, 0x7f800000));
    return b_.CreateSelect(is_nan, b_.CreateOr(top, number(t, 0x40)), rounded);
  }

  // a*b is exact in double; the sum is rounded to odd, so that rounding it again to float rounds
  // once (Boldo and Melquiond).
  Value* fused(Value* a, Value* c, Value* addend) {
    Type* type = a->getType();
    Type* wide = shaped(type, b_.getDoubleTy());
    Type* bits = shaped(type, b_.getInt64Ty());
    Value* product = b_.CreateFMul(b_.CreateFPExt(a, wide), b_.CreateFPExt(c, wide));
    Value* z = b_.CreateFPExt(addend, wide);
    Value* sum = b_.CreateFAdd(product, z);
    Value* z_part = b_.CreateFSub(sum, product);
    Value* product_error = b_.CreateFSub(product, b_.CreateFSub(sum, z_part));
    Value* error = b_.CreateFAdd(product_error, b_.CreateFSub(z, z_part));
    Value* sum_bits = b_.CreateBitCast(sum, bits);
    Value* zero = llvm::Constant::getNullValue(wide);
    Value* inexact = b_.CreateFCmpONE(error, zero);
    Value* even = b_.CreateICmpEQ(b_.CreateAnd(sum_bits, number(bits, 1)), number(bits, 0));
    Value* outwards = b_.CreateICmpEQ(b_.CreateFCmpOGT(error, zero), b_.CreateFCmpOGT(sum, zero));
    Value* step = b_.CreateSelect(outwards, number(bits, 1), llvm::Constant::getAllOnesValue(bits));
    Value* odd =
        b_.CreateSelect(b_.CreateAnd(inexact, even), b_.CreateAdd(sum_bits, step), sum_bits);
    return b_.CreateFPTrunc(b_.CreateBitCast(odd, wide), type);
  }

  Value* copy_sign(Value* magnitude, Value* sign) {
    return b_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, magnitude, sign);
  }
  Value* is_fractional(Value* x) {
    double limit = x->getType()->getScalarType()->isDoubleTy() ? 4503599627370496.0 : 8388608.0;
    return b_.CreateFCmpOLT(b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x),
                            llvm::ConstantFP::get(x->getType(), limit));
  }
  Value* truncated(Value* x) {
    Value* small = is_fractional(x);
    Value* safe = b_.CreateSelect(small, x, llvm::Constant::getNullValue(x->getType()));
    Value* whole = b_.CreateSIToFP(b_.CreateFPToSI(safe, integers(x->getType())), x->getType());
    return b_.CreateSelect(small, copy_sign(whole, x), x);
  }
  Value* stepped(Value* x, llvm::CmpInst::Predicate beyond, double step) {
    Value* whole = truncated(x);
    Value* moved = b_.CreateFAdd(whole, llvm::ConstantFP::get(x->getType(), step));
    return b_.CreateSelect(b_.CreateFCmp(beyond, whole, x), copy_sign(moved, x), whole);
  }
  Value* to_even(Value* x) {
    double limit = x->getType()->getScalarType()->isDoubleTy() ? 4503599627370496.0 : 8388608.0;
    Value* magic = copy_sign(llvm::ConstantFP::get(x->getType(), limit), x);
    Value* rounded = b_.CreateFSub(b_.CreateFAdd(x, magic), magic);
    return b_.CreateSelect(is_fractional(x), copy_sign(rounded, x), x);
  }
  Value* away_from_zero(Value* x) {
    Value* whole = set_ == InstructionSet::baseline
                       ? truncated(x)
                       : b_.CreateUnaryIntrinsic(llvm::Intrinsic::trunc, x);
    Value* rest = b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, b_.CreateFSub(x, whole));
    Value* moved = b_.CreateFAdd(whole, copy_sign(llvm::ConstantFP::get(x->getType(), 1.0), x));
    Value* far = b_.CreateFCmpOGE(rest, llvm::ConstantFP::get(x->getType(), 0.5));
    return b_.CreateSelect(far, moved, whole);
  }

  Value* extreme(llvm::Intrinsic::ID id, Value* a, Value* c) {
    Value* wins = id == llvm::Intrinsic::minnum ? b_.CreateFCmpOLT(c, a) : b_.CreateFCmpOGT(c, a);
    return b_.CreateSelect(b_.CreateFCmpUNO(a, a), c, b_.CreateSelect(wins, c, a));
  }

  llvm::Function& function_;
  InstructionSet set_;
  llvm::IRBuilder<> b_;
};

}  // namespace

void expand_math(llvm::Function& function, InstructionSet set) { Expander(function, set).run(); }

}  // namespace holdfast::jit
