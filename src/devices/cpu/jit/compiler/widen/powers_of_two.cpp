#include "devices/cpu/jit/compiler/widen/powers_of_two.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/IntrinsicsX86.h>
#include <llvm/IR/PatternMatch.h>

#include <numeric>

namespace holdfast::jit {
namespace {

using llvm::Value;
using namespace llvm::PatternMatch;

// math_core.h's round_magic: n stands in the low bits of n + 1.5 * 2^23.
constexpr uint32_t magic_bits = 0x4b400000;
constexpr double magic = 12582912.0;

// n as a float: from the sum that rounded it, where that is at hand.
Value* as_float(llvm::IRBuilder<>& b, Value* n) {
  llvm::Type* type = n->getType()->getWithNewType(b.getFloatTy());
  Value* sum = nullptr;
  if (match(n, m_Add(m_BitCast(m_Value(sum)), m_SpecificInt(0u - magic_bits))) &&
      sum->getType() == type)
    return b.CreateFSub(sum, llvm::ConstantFP::get(type, magic));
  return b.CreateSIToFP(n, type);
}

// Sixteen lanes at a time.
Value* with_instruction(llvm::IRBuilder<>& b, Value* x, Value* n) {
  constexpr unsigned width = 16;
  unsigned lanes = llvm::cast<llvm::FixedVectorType>(x->getType())->getNumElements();
  Value* powers = as_float(b, n);
  Value* result = nullptr;
  for (unsigned first = 0; first < lanes; first += width) {
    llvm::SmallVector<int, width> part(width);
    std::iota(part.begin(), part.end(), static_cast<int>(first));
    auto* type = llvm::FixedVectorType::get(b.getFloatTy(), width);
    Value* scaled =
        b.CreateIntrinsic(llvm::Intrinsic::x86_avx512_mask_scalef_ps_512, {},
                          {b.CreateShuffleVector(x, part), b.CreateShuffleVector(powers, part),
                           llvm::Constant::getNullValue(type), b.getInt16(0xffff), b.getInt32(4)});
    if (!result) {
      result = scaled;
      continue;
    }
    llvm::SmallVector<int, 2 * width> both(first + width);
    std::iota(both.begin(), both.end(), 0);
    result = b.CreateShuffleVector(result, scaled, both);
  }
  return result;
}

Value* power_of_two(llvm::IRBuilder<>& b, Value* n, llvm::Type* type) {
  Value* exponent = b.CreateAdd(n, llvm::ConstantInt::get(n->getType(), 127));
  return b.CreateBitCast(b.CreateShl(exponent, 23), type);
}

Value* with_products(llvm::IRBuilder<>& b, Value* x, Value* n) {
  // Only the low nine bits count: the sum that rounded n has them as well, and half of it those of
  // half of n.
  Value* sum = nullptr;
  if (match(n, m_Add(m_BitCast(m_Value(sum)), m_SpecificInt(0u - magic_bits))))
    n = b.CreateBitCast(sum, n->getType());
  Value* half = b.CreateAShr(n, 1);
  Value* scaled = b.CreateFMul(x, power_of_two(b, half, x->getType()));
  return b.CreateFMul(scaled, power_of_two(b, b.CreateSub(n, half), x->getType()));
}

}  // namespace

void expand_powers_of_two(llvm::Function& function, InstructionSet set) {
  for (llvm::Instruction& instruction : llvm::make_early_inc_range(llvm::instructions(function))) {
    auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction);
    if (!call || call->getIntrinsicID() != llvm::Intrinsic::ldexp) continue;
    llvm::IRBuilder<> b(call);
    Value *x = call->getArgOperand(0), *n = call->getArgOperand(1);
    bool wide = set == InstructionSet::avx512 && x->getType()->isVectorTy();
    call->replaceAllUsesWith(wide ? with_instruction(b, x, n) : with_products(b, x, n));
    call->eraseFromParent();
  }
}

}  // namespace holdfast::jit
