#include "devices/cpu/jit/compiler/widen/float_minimum.h"

#include <llvm/Analysis/VectorUtils.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/IntrinsicsX86.h>
#include <llvm/IR/PatternMatch.h>

namespace holdfast::jit {
namespace {

using llvm::Value;
using namespace llvm::PatternMatch;

// `first || second`, also where some lanes of the constant do not matter.
bool is_either(Value* condition, Value*& first, Value*& second) {
  if (match(condition, m_LogicalOr(m_Value(first), m_Value(second)))) return true;
  llvm::Constant* ones = nullptr;
  if (!match(condition, m_Select(m_Value(first), m_Constant(ones), m_Value(second)))) return false;
  auto* type = llvm::dyn_cast<llvm::FixedVectorType>(ones->getType());
  for (unsigned i = 0; type && i < type->getNumElements(); ++i) {
    llvm::Constant* element = ones->getAggregateElement(i);
    if (!element || (!element->isOneValue() && !llvm::isa<llvm::PoisonValue>(element)))
      return false;
  }
  return type;
}

// Whether `condition` says that `value` is a NaN.
bool asks_for_nan(Value* condition, Value* value) {
  llvm::CmpInst::Predicate predicate;
  Value* other = nullptr;
  if (!match(condition, m_FCmp(predicate, m_Specific(value), m_Value(other)))) return false;
  if (predicate != llvm::CmpInst::FCMP_UNO) return false;
  return other == value || match(other, m_AnyZeroFP());
}

// Whether `condition` compares the two by `<` or `>`.
bool is_order(Value* condition, Value* a, Value* c) {
  llvm::CmpInst::Predicate predicate;
  bool matches = match(condition, m_FCmp(predicate, m_Specific(a), m_Specific(c))) ||
                 match(condition, m_FCmp(predicate, m_Specific(c), m_Specific(a)));
  return matches && (predicate == llvm::CmpInst::FCMP_OLT || predicate == llvm::CmpInst::FCMP_OGT);
}

void split_choice(llvm::SelectInst& select) {
  Value *first = nullptr, *second = nullptr;
  if (!select.getType()->isFPOrFPVectorTy() || !is_either(select.getCondition(), first, second))
    return;
  Value *c = select.getTrueValue(), *a = select.getFalseValue();
  if (asks_for_nan(second, a)) std::swap(first, second);
  if (!asks_for_nan(first, a) || !is_order(second, a, c)) return;
  // The operands in the order that the instruction wants: what is left when they are equal last.
  llvm::CmpInst::Predicate predicate = llvm::cast<llvm::CmpInst>(second)->getPredicate();
  if (llvm::cast<llvm::CmpInst>(second)->getOperand(0) != c)
    predicate = llvm::CmpInst::getSwappedPredicate(predicate);
  llvm::IRBuilder<> b(&select);
  Value* chosen = b.CreateSelect(b.CreateFCmp(predicate, c, a), c, a);
  select.setCondition(first);
  select.setFalseValue(chosen);
}

// choose(nan ? c : x, nan ? c : y) as nan ? c : choose(x, y). A choice that is known for each lane
// is a shuffle.
void join_choice(llvm::Instruction& choice) {
  auto* shuffle = llvm::dyn_cast<llvm::ShuffleVectorInst>(&choice);
  auto* select = llvm::dyn_cast<llvm::SelectInst>(&choice);
  if (shuffle && !shuffle->isSelect()) return;
  Value *one = choice.getOperand(select ? 1 : 0), *other = choice.getOperand(select ? 2 : 1);
  Value *nan = nullptr, *c = nullptr, *x = nullptr, *y = nullptr;
  if (!match(one, m_OneUse(m_Select(m_Value(nan), m_Value(c), m_Value(x)))) ||
      !match(other, m_OneUse(m_Select(m_Specific(nan), m_Specific(c), m_Value(y)))))
    return;
  if (nan->getType()->isVectorTy() != choice.getType()->isVectorTy()) return;
  llvm::IRBuilder<> b(&choice);
  Value* chosen = select ? b.CreateSelect(select->getCondition(), x, y)
                         : b.CreateShuffleVector(x, y, shuffle->getShuffleMask());
  Value* outer = b.CreateSelect(nan, c, chosen);
  choice.replaceAllUsesWith(outer);
  choice.eraseFromParent();
  llvm::cast<llvm::Instruction>(one)->eraseFromParent();
  llvm::cast<llvm::Instruction>(other)->eraseFromParent();
}

// A part of the vector, from lane `first` on; lanes beyond its end are poison.
Value* part_of(llvm::IRBuilder<>& b, Value* vector, int first, int lanes) {
  int count =
      static_cast<int>(llvm::cast<llvm::FixedVectorType>(vector->getType())->getNumElements());
  llvm::SmallVector<int, 16> from;
  for (int i = first; i < first + lanes; ++i) from.push_back(i < count ? i : llvm::PoisonMaskElem);
  return b.CreateShuffleVector(vector, from);
}

// vrangeps, vrangess.
void to_instruction(llvm::IntrinsicInst& call) {
  constexpr int minimum = 4, maximum = 5, no_rounding = 4;
  llvm::IRBuilder<> b(&call);
  Value* kind = b.getInt32(call.getIntrinsicID() == llvm::Intrinsic::minnum ? minimum : maximum);
  Value *one = call.getArgOperand(0), *other = call.getArgOperand(1);
  auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(call.getType());
  if (!vector) {
    auto* four = llvm::FixedVectorType::get(call.getType(), 4);
    Value* none = llvm::PoisonValue::get(four);
    Value* result = b.CreateIntrinsic(four, llvm::Intrinsic::x86_avx512_mask_range_ss,
                                      {b.CreateInsertElement(none, one, uint64_t{0}),
                                       b.CreateInsertElement(none, other, uint64_t{0}), none,
                                       b.getInt8(1), kind, b.getInt32(no_rounding)});
    call.replaceAllUsesWith(b.CreateExtractElement(result, uint64_t{0}));
  } else {
    int count = static_cast<int>(vector->getNumElements());
    int lanes = count <= 4 ? 4 : count <= 8 ? 8 : 16;
    auto* type = llvm::FixedVectorType::get(vector->getElementType(), static_cast<unsigned>(lanes));
    Value* whole = nullptr;
    for (int first = 0; first < count; first += lanes) {
      llvm::SmallVector<Value*, 6> arguments{
          part_of(b, one, first, lanes), part_of(b, other, first, lanes), kind,
          llvm::PoisonValue::get(type),
          b.getIntN(lanes == 16 ? 16 : 8, lanes == 16 ? 0xffff : 0xff)};
      llvm::Intrinsic::ID id = lanes == 4   ? llvm::Intrinsic::x86_avx512_mask_range_ps_128
                               : lanes == 8 ? llvm::Intrinsic::x86_avx512_mask_range_ps_256
                                            : llvm::Intrinsic::x86_avx512_mask_range_ps_512;
      if (lanes == 16) arguments.push_back(b.getInt32(no_rounding));
      Value* part = b.CreateIntrinsic(type, id, arguments);
      whole = whole ? llvm::concatenateVectors(b, {whole, part}) : part;
    }
    call.replaceAllUsesWith(part_of(b, whole, 0, count));
  }
  call.eraseFromParent();
}

}  // namespace

void form_float_minimum(llvm::Function& function) {
  for (llvm::Instruction& instruction : llvm::make_early_inc_range(llvm::instructions(function))) {
    auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction);
    if (call && (call->getIntrinsicID() == llvm::Intrinsic::minnum ||
                 call->getIntrinsicID() == llvm::Intrinsic::maxnum))
      to_instruction(*call);
  }
  for (llvm::Instruction& instruction : llvm::make_early_inc_range(llvm::instructions(function))) {
    if (auto* select = llvm::dyn_cast<llvm::SelectInst>(&instruction)) split_choice(*select);
  }
  // What is joined stands before the choice.
  for (llvm::Instruction& instruction : llvm::make_early_inc_range(llvm::instructions(function))) {
    if (llvm::isa<llvm::SelectInst, llvm::ShuffleVectorInst>(instruction)) join_choice(instruction);
  }
}

}  // namespace holdfast::jit
