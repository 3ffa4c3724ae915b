#include "devices/cuda/compiler/arithmetic.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/IntrinsicsNVPTX.h>
#include <llvm/IR/PatternMatch.h>

#include "devices/cpu/jit/compiler/widen/powers_of_two.h"

namespace holdfast::cuda {
namespace {

using llvm::IRBuilder;
using llvm::Value;

bool is_short_float(const llvm::Type* type) { return type->isHalfTy() || type->isBFloatTy(); }

// Sums and products of half are instructions; rounding the float result gives the same bits.
bool has_instruction(const llvm::Instruction& instruction) {
  if (!instruction.getType()->isHalfTy()) return false;
  switch (instruction.getOpcode()) {
    case llvm::Instruction::FAdd:
    case llvm::Instruction::FSub:
    case llvm::Instruction::FMul:
      return true;
    default:
      return false;
  }
}

Value* up(IRBuilder<>& b, Value* value) {
  return is_short_float(value->getType()) ? b.CreateFPExt(value, b.getFloatTy()) : value;
}

// The operation in float. Null: it is not one of half or bfloat.
Value* in_float(llvm::Instruction& instruction) {
  llvm::Type* type = instruction.getType();
  IRBuilder<> b(&instruction);
  if (auto* binary = llvm::dyn_cast<llvm::BinaryOperator>(&instruction)) {
    if (!is_short_float(type) || has_instruction(instruction)) return nullptr;
    return b.CreateFPTrunc(b.CreateBinOp(binary->getOpcode(), up(b, binary->getOperand(0)),
                                         up(b, binary->getOperand(1))),
                           type);
  }
  if (instruction.getOpcode() == llvm::Instruction::FNeg && is_short_float(type)) {
    Value* bits = b.CreateBitCast(instruction.getOperand(0), b.getInt16Ty());
    return b.CreateBitCast(b.CreateXor(bits, 0x8000), type);
  }
  auto* compare = llvm::dyn_cast<llvm::FCmpInst>(&instruction);
  if (compare && compare->getOperand(0)->getType()->isBFloatTy())
    return b.CreateFCmp(compare->getPredicate(), up(b, compare->getOperand(0)),
                        up(b, compare->getOperand(1)));
  auto* conversion = llvm::dyn_cast<llvm::CastInst>(&instruction);
  if (conversion && !llvm::isa<llvm::BitCastInst>(conversion)) {
    llvm::Type* from = conversion->getSrcTy();
    if (is_short_float(type) && !from->isFloatTy()) {
      return b.CreateFPTrunc(is_short_float(from)
                                 ? up(b, conversion->getOperand(0))
                                 : b.CreateCast(from->isDoubleTy() ? llvm::Instruction::FPTrunc
                                                                   : conversion->getOpcode(),
                                                conversion->getOperand(0), b.getFloatTy()),
                             type);
    }
    if (is_short_float(from) && !type->isFloatTy())
      return b.CreateCast(conversion->getOpcode(), up(b, conversion->getOperand(0)), type);
    return nullptr;
  }
  auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction);
  if (!call) return nullptr;
  bool has_short = is_short_float(type);
  for (Value* argument : call->args()) has_short |= is_short_float(argument->getType());
  if (!has_short) return nullptr;
  llvm::SmallVector<Value*, 4> arguments;
  for (Value* argument : call->args()) arguments.push_back(up(b, argument));
  llvm::SmallVector<llvm::Type*, 2> types{arguments[0]->getType()};
  const llvm::Intrinsic::ID id = call->getIntrinsicID();
  if (id == llvm::Intrinsic::fptosi_sat || id == llvm::Intrinsic::fptoui_sat)
    types.insert(types.begin(), type);
  Value* result = b.CreateIntrinsic(id, types, arguments);
  return is_short_float(type) ? b.CreateFPTrunc(result, type) : result;
}

// The GPU's conversions saturate, and a NaN gives 0 but for integers of 64 bits.
Value* saturated(llvm::IntrinsicInst& call) {
  IRBuilder<> b(&call);
  Value* from = call.getArgOperand(0);
  const bool is_signed = call.getIntrinsicID() == llvm::Intrinsic::fptosi_sat;
  const bool is_double = from->getType()->isDoubleTy();
  llvm::Type* type = call.getType();
  const unsigned bits = type->getIntegerBitWidth();
  using namespace llvm::Intrinsic;
  if (bits > 64 || (!is_double && !from->getType()->isFloatTy())) return nullptr;
  ID id;
  if (bits > 32) {
    id = is_double ? (is_signed ? nvvm_d2ll_rz : nvvm_d2ull_rz)
                   : (is_signed ? nvvm_f2ll_rz : nvvm_f2ull_rz);
  } else {
    id = is_double ? (is_signed ? nvvm_d2i_rz : nvvm_d2ui_rz)
                   : (is_signed ? nvvm_f2i_rz : nvvm_f2ui_rz);
  }
  Value* result = b.CreateIntrinsic(id, {}, {from});
  if (bits > 32 || is_double) {
    result = b.CreateSelect(b.CreateFCmpUNO(from, from),
                            llvm::Constant::getNullValue(result->getType()), result);
  }
  const unsigned width = bits > 32 ? 64 : 32;
  if (bits == width) return result;
  auto bound = [&](llvm::APInt value) {
    return llvm::ConstantInt::get(result->getType(),
                                  is_signed ? value.sext(width) : value.zext(width));
  };
  if (is_signed) {
    result = b.CreateBinaryIntrinsic(smax, result, bound(llvm::APInt::getSignedMinValue(bits)));
    result = b.CreateBinaryIntrinsic(smin, result, bound(llvm::APInt::getSignedMaxValue(bits)));
  } else {
    result = b.CreateBinaryIntrinsic(umin, result, bound(llvm::APInt::getMaxValue(bits)));
  }
  return b.CreateTrunc(result, type);
}

// x > C ? C : x and x < C ? C : x, which keep a NaN, in one instruction. Null: it is neither.
Value* bounded(llvm::Instruction& instruction) {
  using namespace llvm::PatternMatch;
  Value *x = nullptr, *bound = nullptr;
  llvm::FCmpInst::Predicate predicate;
  const llvm::APFloat* number = nullptr;
  if (!instruction.getType()->isFloatTy() ||
      !match(&instruction, m_Select(m_FCmp(predicate, m_Value(x), m_Value(bound)),
                                    m_Deferred(bound), m_Deferred(x))) ||
      !match(bound, m_APFloat(number)) || number->isZero() || number->isNaN() ||
      (predicate != llvm::FCmpInst::FCMP_OGT && predicate != llvm::FCmpInst::FCMP_OLT))
    return nullptr;
  return IRBuilder<>(&instruction)
      .CreateBinaryIntrinsic(predicate == llvm::FCmpInst::FCMP_OGT ? llvm::Intrinsic::minimum
                                                                   : llvm::Intrinsic::maximum,
                             x, bound);
}

}  // namespace

void prepare_arithmetic(llvm::Function& function) {
  for (llvm::Instruction& instruction : llvm::make_early_inc_range(llvm::instructions(function))) {
    if (llvm::isa<llvm::FPMathOperator>(instruction))
      instruction.setFastMathFlags(llvm::FastMathFlags());
    instruction.setMetadata(llvm::LLVMContext::MD_fpmath, nullptr);
    if (Value* replacement = in_float(instruction)) {
      instruction.replaceAllUsesWith(replacement);
      instruction.eraseFromParent();
    }
  }
}

void finish_arithmetic(llvm::Function& function) {
  jit::expand_powers_of_two(function, jit::InstructionSet::baseline);
  for (llvm::Instruction& instruction : llvm::make_early_inc_range(llvm::instructions(function))) {
    if (Value* replacement = bounded(instruction)) {
      instruction.replaceAllUsesWith(replacement);
      instruction.eraseFromParent();
      continue;
    }
    if (auto* fence = llvm::dyn_cast<llvm::FenceInst>(&instruction)) {
      IRBuilder<>(fence).CreateIntrinsic(llvm::Intrinsic::nvvm_membar_gl, {}, {});
      fence->eraseFromParent();
      continue;
    }
    auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction);
    if (call && (call->getIntrinsicID() == llvm::Intrinsic::exp2 ||
                 call->getIntrinsicID() == llvm::Intrinsic::log2)) {
      IRBuilder<> b(call);
      call->replaceAllUsesWith(b.CreateIntrinsic(call->getIntrinsicID() == llvm::Intrinsic::exp2
                                                     ? llvm::Intrinsic::nvvm_ex2_approx_f
                                                     : llvm::Intrinsic::nvvm_lg2_approx_f,
                                                 {}, {call->getArgOperand(0)}));
      call->eraseFromParent();
      continue;
    }
    if (!call || (call->getIntrinsicID() != llvm::Intrinsic::fptosi_sat &&
                  call->getIntrinsicID() != llvm::Intrinsic::fptoui_sat))
      continue;
    if (Value* replacement = saturated(*call)) {
      call->replaceAllUsesWith(replacement);
      call->eraseFromParent();
    }
  }
}

}  // namespace holdfast::cuda
