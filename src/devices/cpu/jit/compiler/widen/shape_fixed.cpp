// What depends on the lane's number alone: its value is known for each lane.
#include <llvm/ADT/APInt.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/Instructions.h>

#include "devices/cpu/jit/compiler/widen/shapes.h"

namespace holdfast::jit {

using llvm::dyn_cast;
using llvm::Instruction;
using llvm::isa;
using llvm::Value;

std::optional<LaneOffsets> Shapes::lane_values(const Value* value) const {
  if (!value->getType()->isIntegerTy() || value->getType()->getIntegerBitWidth() > 64)
    return std::nullopt;
  LaneOffsets values;
  if (auto* number = dyn_cast<llvm::ConstantInt>(value)) {
    values.fill(number->getSExtValue());
    return values;
  }
  Shape shape = of(value);
  if (!shape.is_fixed) return std::nullopt;
  for (size_t lane = 0; lane < values.size(); ++lane)
    values[lane] = shape.base + shape.offset(static_cast<int64_t>(lane));
  return values;
}

std::optional<Shape> Shapes::evaluate_fixed(const Instruction& instruction) const {
  if (!isa<llvm::BinaryOperator, llvm::SExtInst, llvm::ZExtInst, llvm::TruncInst, llvm::FreezeInst>(
          instruction))
    return std::nullopt;
  if (!instruction.getType()->isIntegerTy() || instruction.isIntDivRem()) return std::nullopt;
  unsigned width = instruction.getType()->getIntegerBitWidth();
  if (width < 16 || width > 64) return std::nullopt;
  std::optional<LaneOffsets> a = lane_values(instruction.getOperand(0)), b;
  if (!a) return std::nullopt;
  if (isa<llvm::BinaryOperator>(instruction)) {
    b = lane_values(instruction.getOperand(1));
    if (!b) return std::nullopt;
  }
  unsigned from = instruction.getOperand(0)->getType()->getIntegerBitWidth();
  LaneOffsets values;
  for (size_t lane = 0; lane < values.size(); ++lane) {
    llvm::APInt x(from, static_cast<uint64_t>((*a)[lane]), true);
    llvm::APInt y(width, b ? static_cast<uint64_t>((*b)[lane]) : 0, true);
    if (instruction.isShift() && y.uge(width)) return std::nullopt;
    switch (instruction.getOpcode()) {
      case Instruction::Add:
        x += y;
        break;
      case Instruction::Sub:
        x -= y;
        break;
      case Instruction::Mul:
        x *= y;
        break;
      case Instruction::And:
        x &= y;
        break;
      case Instruction::Or:
        x |= y;
        break;
      case Instruction::Xor:
        x ^= y;
        break;
      case Instruction::Shl:
        x <<= y;
        break;
      case Instruction::LShr:
        x.lshrInPlace(y);
        break;
      case Instruction::AShr:
        x.ashrInPlace(y);
        break;
      case Instruction::ZExt:
        x = x.zext(width);
        break;
      case Instruction::SExt:
        x = x.sext(width);
        break;
      case Instruction::Trunc:
        x = x.trunc(width);
        break;
      case Instruction::Freeze:
        break;
      default:
        return std::nullopt;
    }
    values[lane] = x.getSExtValue();
  }
  int64_t base = values[0];
  for (int64_t& value : values)
    value = static_cast<int64_t>(static_cast<uint64_t>(value) - static_cast<uint64_t>(base));
  Shape shape = shape_of(values, instruction.getType(), alignment_of(static_cast<uint64_t>(base)));
  if (shape.kind == Shape::varying) return std::nullopt;
  shape.is_fixed = true;
  shape.base = base;
  return shape;
}

}  // namespace holdfast::jit
