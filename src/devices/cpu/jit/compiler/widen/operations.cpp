#include "devices/cpu/jit/compiler/widen/operations.h"

#include <llvm/Analysis/VectorUtils.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Module.h>

#include <stdexcept>

#include "devices/cpu/jit/kernel_abi.h"

namespace holdfast::jit {
namespace {

using llvm::dyn_cast;
using llvm::Instruction;
using llvm::isa;
using llvm::Value;

llvm::Type* wide(llvm::Type* type) {
  if (type->isPointerTy()) type = llvm::PointerType::get(type->getContext(), 0);
  return llvm::FixedVectorType::get(type, simdgroup_width);
}

// The divisor is never 0 nor the quotient too large (define_arithmetic), in lanes that are on. Up
// to 32 bits through floating point, which is exact: the quotient's distance from the next integer
// is more than a rounding.
Value* widen_division(llvm::IRBuilder<>& b, const llvm::BinaryOperator& division, Value* mask,
                      Value* a, Value* d) {
  auto opcode = division.getOpcode();
  bool is_signed = opcode == Instruction::SDiv || opcode == Instruction::SRem;
  bool is_remainder = opcode == Instruction::SRem || opcode == Instruction::URem;
  llvm::Type* type = wide(division.getType());
  if (isa<llvm::Constant>(division.getOperand(1)))
    return b.CreateBinOp(opcode, b.CreateFreeze(a), d);
  unsigned bits = division.getType()->getIntegerBitWidth();
  if (bits > 32) {
    if (mask) d = b.CreateSelect(mask, d, llvm::ConstantInt::get(type, 1));
    return b.CreateBinOp(opcode, b.CreateFreeze(a), b.CreateFreeze(d));
  }
  llvm::Type* real = wide(bits <= 16 ? b.getFloatTy() : b.getDoubleTy());
  a = b.CreateFreeze(a);
  d = b.CreateFreeze(d);
  Value* quotient = nullptr;
  if (is_signed) {
    quotient = b.CreateFDiv(b.CreateSIToFP(a, real), b.CreateSIToFP(d, real));
    quotient = b.CreateFPToSI(quotient, type);
  } else {
    quotient = b.CreateFDiv(b.CreateUIToFP(a, real), b.CreateUIToFP(d, real));
    quotient = b.CreateFPToUI(quotient, type);
  }
  if (!is_remainder) return quotient;
  return b.CreateSub(a, b.CreateMul(quotient, d));
}

Value* widen_intrinsic(llvm::IRBuilder<>& b, const llvm::IntrinsicInst& call,
                       llvm::function_ref<Value*(Value*)> vector_of) {
  llvm::Intrinsic::ID id = call.getIntrinsicID();
  if (id == llvm::Intrinsic::ldexp) {
    Value* x = vector_of(call.getArgOperand(0));
    Value* n = vector_of(call.getArgOperand(1));
    return b.CreateIntrinsic(id, {x->getType(), n->getType()}, {x, n});
  }
  llvm::SmallVector<llvm::Type*, 3> types;
  if (llvm::isVectorIntrinsicWithOverloadTypeAtArg(id, -1)) types.push_back(wide(call.getType()));
  llvm::SmallVector<Value*, 4> arguments;
  for (unsigned i = 0; i < call.arg_size(); ++i) {
    Value* argument = call.getArgOperand(i);
    bool is_scalar = llvm::isVectorIntrinsicWithScalarOpAtArg(id, i);
    arguments.push_back(is_scalar ? argument : vector_of(argument));
    if (llvm::isVectorIntrinsicWithOverloadTypeAtArg(id, static_cast<int>(i)))
      types.push_back(arguments.back()->getType());
  }
  llvm::Module* module = b.GetInsertBlock()->getModule();
  return b.CreateCall(llvm::Intrinsic::getDeclaration(module, id, types), arguments);
}

}  // namespace

bool has_wide_operation(const Instruction& instruction) {
  if (auto* call = dyn_cast<llvm::IntrinsicInst>(&instruction)) {
    llvm::Intrinsic::ID id = call->getIntrinsicID();
    if (id == llvm::Intrinsic::ldexp) return true;
    if (!llvm::isTriviallyVectorizable(id)) return false;
    for (unsigned i = 0; i < call->arg_size(); ++i) {
      if (llvm::isVectorIntrinsicWithScalarOpAtArg(id, i) &&
          !isa<llvm::Constant>(call->getArgOperand(i)))
        return false;
    }
    return true;
  }
  return isa<llvm::BinaryOperator, llvm::UnaryOperator, llvm::CastInst, llvm::CmpInst,
             llvm::SelectInst, llvm::FreezeInst>(instruction);
}

Value* widen_operation(llvm::IRBuilder<>& b, const Instruction& instruction, Value* mask,
                       llvm::function_ref<Value*(Value*)> vector_of) {
  auto operand = [&](unsigned i) { return vector_of(instruction.getOperand(i)); };
  if (auto* binary = dyn_cast<llvm::BinaryOperator>(&instruction)) {
    if (binary->isIntDivRem()) {
      Value* dividend = operand(0);
      return widen_division(b, *binary, mask, dividend, operand(1));
    }
    Value* left = operand(0);
    Value* result = b.CreateBinOp(binary->getOpcode(), left, operand(1));
    if (auto* made = dyn_cast<Instruction>(result)) made->copyIRFlags(&instruction);
    return result;
  }
  if (auto* unary = dyn_cast<llvm::UnaryOperator>(&instruction))
    return b.CreateUnOp(unary->getOpcode(), operand(0));
  if (isa<llvm::AddrSpaceCastInst>(instruction)) return operand(0);
  if (auto* conversion = dyn_cast<llvm::CastInst>(&instruction)) {
    llvm::Type* type = wide(instruction.getType());
    if (conversion->getOpcode() == Instruction::BitCast)
      return b.CreateBitOrPointerCast(operand(0), type);
    return b.CreateCast(conversion->getOpcode(), operand(0), type);
  }
  if (auto* compare = dyn_cast<llvm::CmpInst>(&instruction)) {
    Value* left = operand(0);
    return b.CreateCmp(compare->getPredicate(), left, operand(1));
  }
  if (isa<llvm::SelectInst>(instruction)) {
    Value* condition = operand(0);
    Value* chosen = operand(1);
    return b.CreateSelect(condition, chosen, operand(2));
  }
  if (isa<llvm::FreezeInst>(instruction)) return b.CreateFreeze(operand(0));
  if (auto* intrinsic = dyn_cast<llvm::IntrinsicInst>(&instruction))
    return widen_intrinsic(b, *intrinsic, vector_of);
  throw std::logic_error("[jit] an instruction without a wide form");
}

}  // namespace holdfast::jit
