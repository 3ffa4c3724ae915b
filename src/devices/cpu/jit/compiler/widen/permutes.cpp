#include "devices/cpu/jit/compiler/widen/permutes.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/IntrinsicsX86.h>
#include <llvm/IR/PatternMatch.h>
#include <llvm/Transforms/Utils/Local.h>

#include <vector>

namespace holdfast::jit {
namespace {

using llvm::Value;
using namespace llvm::PatternMatch;

constexpr unsigned half_width = 16;

// Where an element of a vector comes from, through shuffles.
struct Element {
  const Value* vector;
  int place;
  bool operator==(const Element&) const = default;
};
Element trace(const Value* vector, int place) {
  while (auto* shuffle = llvm::dyn_cast<llvm::ShuffleVectorInst>(vector)) {
    int from = shuffle->getMaskValue(static_cast<unsigned>(place));
    if (from < 0) break;
    auto* type = llvm::cast<llvm::FixedVectorType>(shuffle->getOperand(0)->getType());
    int first = static_cast<int>(type->getNumElements());
    vector = shuffle->getOperand(from < first ? 0 : 1);
    place = from < first ? from : from - first;
  }
  return {vector, place};
}

// The smallest power of two after which the table repeats itself.
unsigned period_of(const std::vector<Element>& table) {
  auto period = static_cast<unsigned>(table.size());
  while (period > 1) {
    for (unsigned i = 0; i < table.size(); ++i) {
      if (!(table[i] == table[i % (period / 2)])) return period;
    }
    period /= 2;
  }
  return period;
}

// The bits that all lanes of an index keep, and what the index was before: a mask under a shuffle,
// or none.
struct Index {
  Value* whole;  // before the mask; null: there is none
  uint64_t mask = ~0u;
  llvm::ShuffleVectorInst* shuffle = nullptr;
};
Index look_at(Value* index) {
  Index result{.whole = nullptr};
  result.shuffle = llvm::dyn_cast<llvm::ShuffleVectorInst>(index);
  if (result.shuffle && !llvm::isa<llvm::PoisonValue>(result.shuffle->getOperand(1))) return result;
  Value* masked = result.shuffle ? result.shuffle->getOperand(0) : index;
  Value* whole = nullptr;
  const llvm::APInt* mask = nullptr;
  if (!match(masked, m_And(m_Value(whole), m_APInt(mask)))) return result;
  result.whole = whole;
  result.mask = mask->getZExtValue();
  return result;
}

void simplify(llvm::IntrinsicInst& permute) {
  Value *first = permute.getArgOperand(0), *second = permute.getArgOperand(2);
  Index index = look_at(permute.getArgOperand(1));
  if (index.mask < half_width) second = first;
  std::vector<Element> table;
  for (Value* half : {first, second}) {
    for (unsigned i = 0; i < half_width; ++i) table.push_back(trace(half, static_cast<int>(i)));
  }
  unsigned period = period_of(table);
  llvm::IRBuilder<> b(&permute);
  Value* places = permute.getArgOperand(1);
  if (index.whole && (index.mask & (period - 1)) == period - 1) {
    places = index.shuffle ? b.CreateShuffleVector(index.whole, index.shuffle->getShuffleMask())
                           : index.whole;
  } else if (period > half_width) {
    return;
  }
  Value* made =
      period > half_width
          ? b.CreateIntrinsic(permute.getType(), permute.getIntrinsicID(), {first, places, second})
          : b.CreateIntrinsic(permute.getType(), llvm::Intrinsic::x86_avx512_permvar_si_512,
                              {first, places});
  permute.replaceAllUsesWith(made);
  llvm::RecursivelyDeleteTriviallyDeadInstructions(&permute);
}

}  // namespace

void simplify_permutes(llvm::Function& function) {
  std::vector<llvm::IntrinsicInst*> permutes;
  for (llvm::Instruction& instruction : llvm::instructions(function)) {
    auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction);
    if (call && call->getIntrinsicID() == llvm::Intrinsic::x86_avx512_vpermi2var_d_512)
      permutes.push_back(call);
  }
  for (llvm::IntrinsicInst* permute : permutes) simplify(*permute);
}

}  // namespace holdfast::jit
