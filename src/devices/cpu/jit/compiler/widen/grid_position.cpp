#include "devices/cpu/jit/compiler/widen/grid_position.h"

#include <llvm/ADT/STLExtras.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/Instructions.h>

#include "devices/cpu/jit/compiler/widen/intrinsics.h"

namespace holdfast::jit {
namespace {

using llvm::cast;
using llvm::dyn_cast;
using llvm::Instruction;
using llvm::isa;
using llvm::Value;
using msl::Intrinsic;

bool is_axis_product(const Value* value) {
  auto* product = dyn_cast<llvm::BinaryOperator>(value);
  if (!product || product->getOpcode() != Instruction::Mul) return false;
  for (int swap = 0; swap < 2; ++swap) {
    const Value* a = product->getOperand(swap);
    const Value* b = product->getOperand(1 - swap);
    if (is_call_of(*a, Intrinsic::threadgroup_position_in_grid) &&
        is_call_of(*b, Intrinsic::dispatch_threads_per_threadgroup) &&
        cast<llvm::CallInst>(a)->getArgOperand(0) == cast<llvm::CallInst>(b)->getArgOperand(0))
      return true;
  }
  return false;
}

const llvm::CallInst* axis_of_product(const Value* value) {
  auto* product = cast<llvm::BinaryOperator>(value);
  return cast<llvm::CallInst>(product->getOperand(0));
}

}  // namespace

bool is_row_start(const Value* value) {
  return is_axis_product(value) &&
         cast<llvm::ConstantInt>(axis_of_product(value)->getArgOperand(0))->isZero();
}

bool is_grid_position(const Value* value) {
  auto* sum = dyn_cast<llvm::BinaryOperator>(value);
  if (!sum || sum->getOpcode() != Instruction::Add) return false;
  for (int swap = 0; swap < 2; ++swap) {
    const Value* a = sum->getOperand(swap);
    const Value* b = sum->getOperand(1 - swap);
    if (is_axis_product(a) && is_call_of(*b, Intrinsic::thread_position_in_threadgroup) &&
        axis_of_product(a)->getArgOperand(0) == cast<llvm::CallInst>(b)->getArgOperand(0))
      return true;
  }
  return false;
}

bool depends_on_row_start(const Value* value, int depth) {
  if (depth == 0) return true;
  if (is_row_start(value)) return true;
  auto* instruction = dyn_cast<Instruction>(value);
  if (!instruction || isa<llvm::CallInst>(instruction)) return false;
  return llvm::any_of(instruction->operands(), [&](const Value* operand) {
    return depends_on_row_start(operand, depth - 1);
  });
}

}  // namespace holdfast::jit
