#include "msl/frontend/define_arithmetic.h"

#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>

namespace holdfast::msl {
namespace {

using llvm::IRBuilder;
using llvm::Value;

// On divisions that are safe already, so that doing it twice does no harm.
constexpr const char* defined_mark = "holdfast.defined";

Value* frozen(IRBuilder<>& b, Value* value) {
  return llvm::isGuaranteedNotToBeUndefOrPoison(value) ? value : b.CreateFreeze(value);
}

void define_division(llvm::BinaryOperator& division) {
  bool is_signed = division.getOpcode() == llvm::Instruction::SDiv ||
                   division.getOpcode() == llvm::Instruction::SRem;
  bool is_remainder = division.getOpcode() == llvm::Instruction::SRem ||
                      division.getOpcode() == llvm::Instruction::URem;
  Value* divisor = division.getOperand(1);
  if (division.getMetadata(defined_mark)) return;
  if (auto* constant = llvm::dyn_cast<llvm::ConstantInt>(divisor)) {
    if (!constant->isZero() && !(is_signed && constant->isMinusOne())) return;
  }
  IRBuilder<> b(&division);
  llvm::Type* type = division.getType();
  // Both uses must see one value, or the guard would be none. A quotient of poison is only poison.
  Value* dividend = division.getOperand(0);
  if (is_signed) dividend = frozen(b, dividend);
  divisor = frozen(b, divisor);
  Value* by_zero = b.CreateICmpEQ(divisor, llvm::Constant::getNullValue(type));
  Value* refused = by_zero;
  if (is_signed) {
    llvm::Constant* lowest =
        llvm::ConstantInt::get(type, llvm::APInt::getSignedMinValue(type->getScalarSizeInBits()));
    Value* overflows = b.CreateAnd(b.CreateICmpEQ(dividend, lowest),
                                   b.CreateICmpEQ(divisor, llvm::Constant::getAllOnesValue(type)));
    refused = b.CreateOr(by_zero, overflows);
  }
  Value* safe = b.CreateSelect(refused, llvm::ConstantInt::get(type, 1), divisor);
  auto* plain = llvm::cast<llvm::BinaryOperator>(division.clone());
  plain->dropPoisonGeneratingFlags();
  plain->setOperand(0, dividend);
  plain->setOperand(1, safe);
  plain->setMetadata(defined_mark, llvm::MDNode::get(division.getContext(), {}));
  b.Insert(plain);
  // By 1 the quotient is the dividend and the remainder 0: right for INT_MIN / -1 already.
  Value* at_zero = is_remainder ? dividend : llvm::Constant::getNullValue(type);
  division.replaceAllUsesWith(b.CreateSelect(by_zero, at_zero, plain));
  division.eraseFromParent();
}

void define_shift(llvm::BinaryOperator& shift) {
  unsigned width = shift.getType()->getScalarSizeInBits();
  shift.dropPoisonGeneratingFlags();
  if (auto* constant = llvm::dyn_cast<llvm::ConstantInt>(shift.getOperand(1))) {
    if (constant->getValue().ult(width)) return;
  }
  if ((width & (width - 1)) != 0) return;
  IRBuilder<> b(&shift);
  shift.setOperand(
      1, b.CreateAnd(shift.getOperand(1), llvm::ConstantInt::get(shift.getType(), width - 1)));
}

void define_conversion(llvm::CastInst& conversion) {
  llvm::Intrinsic::ID id = conversion.getOpcode() == llvm::Instruction::FPToSI
                               ? llvm::Intrinsic::fptosi_sat
                               : llvm::Intrinsic::fptoui_sat;
  IRBuilder<> b(&conversion);
  Value* source = conversion.getOperand(0);
  if (!source->getType()->getScalarType()->isFloatTy() &&
      !source->getType()->getScalarType()->isDoubleTy()) {
    source = b.CreateFPExt(source, source->getType()->getWithNewType(b.getFloatTy()));
  }
  conversion.replaceAllUsesWith(
      b.CreateIntrinsic(id, {conversion.getType(), source->getType()}, {source}));
  conversion.eraseFromParent();
}

}  // namespace

void define_arithmetic(llvm::Function& function) {
  for (llvm::Instruction& instruction : llvm::make_early_inc_range(llvm::instructions(function))) {
    switch (instruction.getOpcode()) {
      case llvm::Instruction::SDiv:
      case llvm::Instruction::UDiv:
      case llvm::Instruction::SRem:
      case llvm::Instruction::URem:
        define_division(llvm::cast<llvm::BinaryOperator>(instruction));
        break;
      case llvm::Instruction::Shl:
      case llvm::Instruction::LShr:
      case llvm::Instruction::AShr:
        define_shift(llvm::cast<llvm::BinaryOperator>(instruction));
        break;
      case llvm::Instruction::FPToSI:
      case llvm::Instruction::FPToUI:
        define_conversion(llvm::cast<llvm::CastInst>(instruction));
        break;
      default:
        break;
    }
  }
}

}  // namespace holdfast::msl
