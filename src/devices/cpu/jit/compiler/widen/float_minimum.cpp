#include "devices/cpu/jit/compiler/widen/float_minimum.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
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

}  // namespace

void form_float_minimum(llvm::Function& function) {
  for (llvm::Instruction& instruction : llvm::make_early_inc_range(llvm::instructions(function))) {
    if (auto* select = llvm::dyn_cast<llvm::SelectInst>(&instruction)) split_choice(*select);
  }
  // What is joined stands before the choice.
  for (llvm::Instruction& instruction : llvm::make_early_inc_range(llvm::instructions(function))) {
    if (llvm::isa<llvm::SelectInst, llvm::ShuffleVectorInst>(instruction)) join_choice(instruction);
  }
}

}  // namespace holdfast::jit
