// Extensions to a wider type: the lanes keep their distances where no lane wraps around before.
#include <llvm/IR/Constants.h>
#include <llvm/IR/Instructions.h>
#include <llvm/Support/MathExtras.h>

#include <algorithm>

#include "devices/cpu/jit/compiler/widen/grid_position.h"
#include "devices/cpu/jit/compiler/widen/intrinsics.h"
#include "devices/cpu/jit/compiler/widen/shapes.h"
#include "devices/cpu/jit/kernel_abi.h"

namespace holdfast::jit {

using llvm::cast;
using llvm::dyn_cast;
using llvm::Instruction;
using llvm::isa;
using llvm::Value;
using msl::Intrinsic;

bool Shapes::distributes(const llvm::CastInst& extension, const Value* operand) {
  auto* sum = dyn_cast<llvm::BinaryOperator>(operand);
  if (!sum) return false;
  bool is_signed = isa<llvm::SExtInst>(extension) || extension.hasNonNeg();
  bool is_unsigned = isa<llvm::ZExtInst>(extension);
  switch (sum->getOpcode()) {
    case Instruction::Add:
    case Instruction::Mul:
      break;
    case Instruction::Sub:
      is_unsigned = false;
      break;
    default:
      return false;
  }
  return (is_signed && sum->hasNoSignedWrap()) ||
         (is_unsigned && !extension.hasNonNeg() && sum->hasNoUnsignedWrap());
}

Shape Shapes::extended(const llvm::CastInst& extension, const Value* value, int depth) {
  Shape shape = of(value);
  if (!shape.has_base()) return shape;
  shape = without_values(shape);
  unsigned width = value->getType()->getIntegerBitWidth();
  if (width < 16) return varying_shape();
  if (is_small(value)) return shape;
  // All lanes are on, and none is negative: they cannot lie on both sides of the place where values
  // wrap around.
  if (depth == 0 && assumption_ == Assumption::converged && extension.hasNonNeg()) return shape;
  if (depth < 6 && distributes(extension, value)) {
    auto* sum = cast<llvm::BinaryOperator>(value);
    // A product only with a constant: the other side's stride must stay one.
    if (sum->getOpcode() == Instruction::Mul && !isa<llvm::ConstantInt>(sum->getOperand(1)))
      return varying_shape();
    Shape a = extended(extension, sum->getOperand(0), depth + 1);
    Shape b = extended(extension, sum->getOperand(1), depth + 1);
    if (a.kind != Shape::varying && b.kind != Shape::varying) return shape;
  }
  return varying_shape();
}

Shape Shapes::evaluate_extension(const llvm::CastInst& extension) {
  Shape shape = operand(extension, 0);
  if (!shape.has_base()) return without_values(shape);
  unsigned width = extension.getOperand(0)->getType()->getIntegerBitWidth();
  for (int64_t lane = 0; lane < simdgroup_width; ++lane) {
    if (width < 64 && std::abs(shape.offset(lane)) >= (int64_t{1} << (width - 1)))
      return varying_shape();
  }
  Shape proven = extended(extension, extension.getOperand(0), 0);
  if (proven.kind != Shape::varying) {
    guarded_.erase(&extension);
    return proven;
  }
  if (assumption_ == Assumption::any || width < 16) {
    because_.try_emplace(&extension, Cause{"it may wrap around between lanes", nullptr});
    return varying_shape();
  }
  guarded_.insert(&extension);
  return without_values(shape);
}

Shapes::BaseForm Shapes::base_form(const llvm::CastInst& extension, const Value* value) const {
  if (of(value).kind == Shape::uniform) {
    // `zext nneg` of a sum without signed wrap: its parts may be negative.
    bool is_part = value != extension.getOperand(0);
    return is_part && extension.hasNonNeg() ? BaseForm::sign_extended : BaseForm::extended;
  }
  if (is_small(value) || guarded_.contains(&extension)) return BaseForm::extended;
  // Lanes that are on are not negative. Lane 0, if it is off, may be: the others lie above it.
  if (assumption_ == Assumption::converged && extension.hasNonNeg()) return BaseForm::sign_extended;
  return BaseForm::parts;
}

void Shapes::for_each_read(const Instruction& instruction,
                           llvm::function_ref<void(const Value*)> visit) const {
  Shape shape = of(&instruction);
  if (!isa<llvm::SExtInst, llvm::ZExtInst>(instruction) || !shape.has_base()) {
    for (const Value* operand : instruction.operands()) visit(operand);
    return;
  }
  if (shape.is_fixed) return;  // a constant
  auto& extension = cast<llvm::CastInst>(instruction);
  llvm::SmallVector<const Value*, 8> rest{extension.getOperand(0)};
  while (!rest.empty()) {
    const Value* value = rest.pop_back_val();
    if (base_form(extension, value) == BaseForm::parts) {
      auto* sum = cast<llvm::BinaryOperator>(value);
      rest.append({sum->getOperand(0), sum->getOperand(1)});
    } else {
      visit(value);
    }
  }
}

bool Shapes::is_small(const Value* value) const {
  unsigned width = value->getType()->getIntegerBitWidth();
  return width <= 64 && upper_bound(value, 0) < (uint64_t{1} << (width - 1));
}

uint64_t Shapes::upper_bound(const Value* value, int depth) const {
  unsigned width = value->getType()->getIntegerBitWidth();
  if (width > 64) return UINT64_MAX;
  uint64_t most = width == 64 ? UINT64_MAX : (uint64_t{1} << width) - 1;
  if (auto* number = dyn_cast<llvm::ConstantInt>(value)) return number->getZExtValue();
  auto* instruction = dyn_cast<Instruction>(value);
  if (!instruction || depth > 8) return most;
  auto bound = [&](unsigned i) { return upper_bound(instruction->getOperand(i), depth + 1); };
  auto limit = [&](uint64_t bits) { return bits > most ? most : bits; };
  if (assumption_ == Assumption::converged && is_grid_position(value)) return INT32_MAX;
  switch (instruction->getOpcode()) {
    case Instruction::Add:
      return limit(llvm::SaturatingAdd(bound(0), bound(1)));
    case Instruction::Mul:
      return limit(llvm::SaturatingMultiply<uint64_t>(bound(0), bound(1)));
    case Instruction::And:
      return std::min(bound(0), bound(1));
    case Instruction::Or:
    case Instruction::Xor: {
      uint64_t larger = std::max(bound(0), bound(1));
      return larger > UINT32_MAX ? most : limit(llvm::PowerOf2Ceil(larger + 1) - 1);
    }
    case Instruction::ZExt:
      return bound(0);
    case Instruction::Trunc:
      return limit(bound(0));
    case Instruction::Freeze:
      return bound(0);
    case Instruction::Select:
      return std::max(bound(1), bound(2));
    case Instruction::LShr:
      if (auto* by = dyn_cast<llvm::ConstantInt>(instruction->getOperand(1));
          by && by->getValue().ult(width))
        return bound(0) >> by->getZExtValue();
      return bound(0);
    case Instruction::Shl:
      if (auto* by = dyn_cast<llvm::ConstantInt>(instruction->getOperand(1));
          by && by->getValue().ult(width))
        return limit(
            llvm::SaturatingMultiply<uint64_t>(bound(0), uint64_t{1} << by->getZExtValue()));
      return most;
    case Instruction::UDiv:
      return bound(0);
    case Instruction::URem:
      if (auto* by = dyn_cast<llvm::ConstantInt>(instruction->getOperand(1)); by && !by->isZero())
        return std::min(bound(0), by->getZExtValue() - 1);
      return bound(0);
    case Instruction::Call:
      if (auto intrinsic = kernel_intrinsic(*instruction)) {
        switch (*intrinsic) {
          case Intrinsic::thread_index_in_simdgroup:
          case Intrinsic::simdgroup_index_in_threadgroup:
            return 31;
          case Intrinsic::thread_position_in_threadgroup:
            return 1023;
          case Intrinsic::simdgroups_per_threadgroup:
            return 32;
          case Intrinsic::threads_per_threadgroup:
          case Intrinsic::dispatch_threads_per_threadgroup:
            return 1024;
          default:
            return most;
        }
      }
      return most;
    default:
      return most;
  }
}

}  // namespace holdfast::jit
