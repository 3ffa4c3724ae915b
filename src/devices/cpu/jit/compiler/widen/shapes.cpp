#include "devices/cpu/jit/compiler/widen/shapes.h"

#include <llvm/ADT/PostOrderIterator.h>
#include <llvm/IR/CFG.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Operator.h>
#include <llvm/Support/MathExtras.h>

#include <algorithm>

#include "devices/cpu/jit/compiler/widen/grid_position.h"
#include "devices/cpu/jit/compiler/widen/intrinsics.h"
#include "devices/cpu/jit/compiler/widen/private_memory.h"
#include "devices/cpu/jit/kernel_abi.h"

namespace holdfast::jit {
namespace {

using llvm::cast;
using llvm::dyn_cast;
using llvm::Instruction;
using llvm::isa;
using llvm::Value;
using msl::Intrinsic;

constexpr int64_t last_lane = simdgroup_width - 1;

}  // namespace

Shapes::Shapes(llvm::Function& function, ControlFlow& flow, const PrivateMemory& memory,
               OffsetPool& pool, Assumption assumption)
    : function_(function), flow_(flow), memory_(memory), pool_(pool), assumption_(assumption) {
  llvm::ReversePostOrderTraversal<llvm::Function*> reverse(&function);
  order_.assign(reverse.begin(), reverse.end());
  bool changed = true;
  while (changed) {
    changed = false;
    for (llvm::BasicBlock* block : order_) {
      for (Instruction& instruction : *block) {
        if (instruction.getType()->isVoidTy()) continue;
        Shape& known = shapes_[&instruction];
        if (known.kind == Shape::varying) continue;
        Shape next = evaluate(instruction);
        if (next.kind == Shape::unknown) continue;
        if (known.kind != Shape::unknown) {
          if (next.kind < known.kind || (next.kind == known.kind && !next.moves_like(known)))
            next = varying_shape();
          next.alignment = std::min(next.alignment, known.alignment);
          if (!known.is_fixed || next.base != known.base) {
            next.is_fixed = false;
            next.base = 0;
          }
        }
        Shape& place = shapes_[&instruction];
        if (next == place) continue;
        place = next;
        changed = true;
        if (next.kind == Shape::varying && !because_.contains(&instruction)) {
          for (const Value* operand : instruction.operands()) {
            if (of(operand).kind != Shape::varying) continue;
            because_[&instruction] = {nullptr, operand};
            break;
          }
        }
      }
    }
    changed |= propagate_control();
  }
  // An operand may have turned out to vary after it was looked at.
  llvm::SmallVector<const Instruction*, 8> stale;
  for (const Instruction* extension : guarded_) {
    if (!of(extension).has_base()) stale.push_back(extension);
  }
  for (const Instruction* extension : stale) guarded_.erase(extension);
}

Shape Shapes::of(const Value* value) const {
  if (auto* number = dyn_cast<llvm::ConstantInt>(value)) {
    if (number->getBitWidth() <= 64) return uniform_shape(alignment_of(number->getZExtValue()));
    return uniform_shape();
  }
  auto* instruction = dyn_cast<Instruction>(value);
  if (!instruction) return uniform_shape();
  auto found = shapes_.find(instruction);
  return found == shapes_.end() ? Shape{} : found->second;
}

Shape Shapes::evaluate(const Instruction& instruction) {
  if (auto* phi = dyn_cast<llvm::PHINode>(&instruction)) return evaluate_phi(*phi);
  if (auto* call = dyn_cast<llvm::CallInst>(&instruction)) return evaluate_call(*call);

  bool all_uniform = true;
  for (const Value* operand : instruction.operands()) {
    if (isa<llvm::BasicBlock>(operand)) continue;
    Shape shape = of(operand);
    if (shape.kind == Shape::unknown) return {};
    if (shape.kind != Shape::uniform) all_uniform = false;
  }

  if (std::optional<Shape> fixed = evaluate_fixed(instruction)) return *fixed;
  unsigned opcode = instruction.getOpcode();
  switch (opcode) {
    case Instruction::Alloca:
      return linear_shape(static_cast<int64_t>(
          memory_.blocks.find(cast<llvm::AllocaInst>(&instruction))->second.stride()));
    case Instruction::Load:
      if (!all_uniform)
        because_.try_emplace(&instruction, Cause{"its address differs between lanes", nullptr});
      return all_uniform ? uniform_shape() : varying_shape();
    case Instruction::AtomicRMW:
    case Instruction::AtomicCmpXchg:
      because_.try_emplace(&instruction, Cause{"lanes take turns", nullptr});
      return varying_shape();
    case Instruction::ExtractValue:
      return varying_shape();
    case Instruction::GetElementPtr: {
      auto& gep = cast<llvm::GEPOperator>(instruction);
      const llvm::DataLayout& layout = function_.getParent()->getDataLayout();
      llvm::MapVector<Value*, llvm::APInt> variable;
      llvm::APInt constant(64, 0);
      if (!gep.collectOffset(layout, 64, variable, constant)) return varying_shape();
      Shape base = of(gep.getPointerOperand());
      if (base.kind == Shape::varying) return varying_shape();
      LaneOffsets offsets;
      for (size_t lane = 0; lane < offsets.size(); ++lane)
        offsets[lane] = base.offset(static_cast<int64_t>(lane));
      int64_t scale_all = memory_.interleaved(&instruction) ? simdgroup_width : 1;
      for (auto& [index, scale] : variable) {
        Shape shape = of(index);
        if (shape.kind == Shape::varying || scale.getSignificantBits() > 32) return varying_shape();
        int64_t factor = scale.getSExtValue() * scale_all;
        for (size_t lane = 0; lane < offsets.size(); ++lane)
          offsets[lane] +=
              static_cast<int64_t>(static_cast<uint64_t>(shape.offset(static_cast<int64_t>(lane))) *
                                   static_cast<uint64_t>(factor));
      }
      return shape_of(offsets, instruction.getType(), 1);
    }
    case Instruction::BitCast:
    case Instruction::PtrToInt:
    case Instruction::IntToPtr:
    case Instruction::AddrSpaceCast:
    case Instruction::Freeze:
    case Instruction::Trunc: {
      Shape shape = without_values(operand(instruction, 0));
      if (!shape.has_base()) return shape;
      llvm::Type* type = instruction.getType();
      if (!type->isIntOrPtrTy() || !instruction.getOperand(0)->getType()->isIntOrPtrTy())
        return varying_shape();
      LaneOffsets offsets;
      for (size_t lane = 0; lane < offsets.size(); ++lane)
        offsets[lane] = shape.offset(static_cast<int64_t>(lane));
      return shape_of(offsets, type, shape.alignment);
    }
    case Instruction::SExt:
    case Instruction::ZExt:
      return evaluate_extension(cast<llvm::CastInst>(instruction));
    case Instruction::Select: {
      if (all_uniform) return join(operand(instruction, 1), operand(instruction, 2));
      if (operand(instruction, 0).kind != Shape::uniform) return varying_shape();
      return join(operand(instruction, 1), operand(instruction, 2));
    }
    default:
      break;
  }

  if (instruction.getType()->isIntegerTy() && isa<llvm::BinaryOperator>(instruction)) {
    Shape a = operand(instruction, 0), b = operand(instruction, 1);
    if (a.kind == Shape::varying || b.kind == Shape::varying) return varying_shape();
    auto* constant = dyn_cast<llvm::ConstantInt>(instruction.getOperand(1));
    bool narrow = instruction.getType()->getIntegerBitWidth() <= 64;
    uint64_t number = constant && narrow ? constant->getZExtValue() : 0;
    uint64_t both = std::min(a.alignment, b.alignment);
    auto combined = [&](auto operation, uint64_t alignment) {
      LaneOffsets offsets;
      for (size_t lane = 0; lane < offsets.size(); ++lane) {
        auto at = static_cast<int64_t>(lane);
        offsets[lane] = static_cast<int64_t>(
            operation(static_cast<uint64_t>(a.offset(at)), static_cast<uint64_t>(b.offset(at))));
      }
      return shape_of(offsets, instruction.getType(), alignment);
    };
    auto note_alignment = [&] {
      for (const Value* part : instruction.operands()) {
        if (depends_on_row_start(part, 8)) needs_aligned_grid_ = true;
      }
    };
    switch (opcode) {
      case Instruction::Add:
        return combined([](uint64_t x, uint64_t y) { return x + y; }, both);
      case Instruction::Sub:
        return combined([](uint64_t x, uint64_t y) { return x - y; }, both);
      case Instruction::Or:
        if (cast<llvm::PossiblyDisjointInst>(instruction).isDisjoint())
          return combined([](uint64_t x, uint64_t y) { return x + y; }, both);
        [[fallthrough]];
      case Instruction::Xor:
        // Where only one side moves, and in bits that are zero in both bases, the bases combine.
        if (!all_uniform && (a.kind == Shape::uniform || b.kind == Shape::uniform) &&
            stays_below(a, both) && stays_below(b, both)) {
          note_alignment();
          return combined([](uint64_t x, uint64_t y) { return x + y; }, both);
        }
        break;
      case Instruction::Mul: {
        uint64_t product = llvm::SaturatingMultiply<uint64_t>(a.alignment, b.alignment);
        if (is_row_start(&instruction) && assumption_ == Assumption::converged)
          return uniform_shape(simdgroup_width);
        if (all_uniform) return uniform_shape(product);
        if (!constant || !narrow || constant->getValue().getSignificantBits() > 24) break;
        uint64_t factor = static_cast<uint64_t>(constant->getSExtValue());
        return combined([factor](uint64_t x, uint64_t) { return x * factor; }, product);
      }
      case Instruction::Shl:
        if (!constant || !narrow || number > 24) break;
        return combined([number](uint64_t x, uint64_t) { return x << number; },
                        llvm::SaturatingMultiply<uint64_t>(a.alignment, uint64_t{1} << number));
      case Instruction::LShr:
      case Instruction::AShr:
        // The base has zeros where lanes add their bits: both are shifted by themselves.
        if (a.has_base() && constant && narrow && number < 63 && stays_below(a, a.alignment)) {
          if ((uint64_t{1} << number) > a.alignment) {
            // Lanes move only bits that are shifted out.
            note_alignment();
            return uniform_shape();
          }
          note_alignment();
          return combined([number](uint64_t x, uint64_t) { return x >> number; },
                          a.alignment >> number);
        }
        break;
      case Instruction::And:
        if (a.has_base() && constant && narrow && stays_below(a, a.alignment)) {
          note_alignment();
          return combined([number](uint64_t x, uint64_t) { return x & number; }, a.alignment);
        }
        if (all_uniform) return uniform_shape(std::max(a.alignment, b.alignment));
        break;
      default:
        break;
    }
  }
  return all_uniform ? uniform_shape() : varying_shape();
}

// The shape of base + offsets: the simplest kind that fits.
Shape Shapes::shape_of(LaneOffsets offsets, const llvm::Type* type, uint64_t alignment) const {
  unsigned width = type->isPointerTy() ? 64 : type->getIntegerBitWidth();
  if (width > 64) return varying_shape();
  for (int64_t& offset : offsets) offset = llvm::SignExtend64(static_cast<uint64_t>(offset), width);
  bool is_linear = true;
  for (size_t lane = 0; lane < offsets.size(); ++lane) {
    if (offsets[lane] > most_stride * last_lane || offsets[lane] < -most_stride * last_lane)
      return varying_shape();
    is_linear &= offsets[lane] == offsets[1] * static_cast<int64_t>(lane);
  }
  // A predicate or a byte would wrap at once.
  if (width < 16 && (!is_linear || offsets[1] != 0)) return varying_shape();
  if (is_linear) return linear_shape(offsets[1], alignment);
  Shape shape = shape_with(Shape::pattern, 0, alignment);
  shape.offsets = pool_.keep(offsets);
  return shape;
}

Shape Shapes::evaluate_call(const llvm::CallInst& call) {
  std::optional<Intrinsic> intrinsic = kernel_intrinsic(call);
  if (intrinsic) {
    switch (*intrinsic) {
      case Intrinsic::thread_index_in_simdgroup: {
        Shape shape = linear_shape(1, most_shape_alignment);
        shape.is_fixed = true;
        return shape;
      }
      case Intrinsic::thread_position_in_threadgroup:
        if (assumption_ == Assumption::any) {
          because_.try_emplace(&call, Cause{"it is a thread's position", nullptr});
          return varying_shape();
        }
        return cast<llvm::ConstantInt>(call.getArgOperand(0))->isZero()
                   ? linear_shape(1, simdgroup_width)
                   : uniform_shape();
      case Intrinsic::ballot:
        return uniform_shape();
      default:
        break;
    }
    if (behaviour_of(*intrinsic) == Behaviour::cross_lane) {
      llvm::StringRef name = call.getCalledFunction()->getName();
      if (name.starts_with("__hf_reduce_")) return uniform_shape();
      because_.try_emplace(&call, Cause{"lanes get different values", nullptr});
      return varying_shape();
    }
    return uniform_shape();
  }
  for (const Value* argument : call.args()) {
    Shape shape = of(argument);
    if (shape.kind == Shape::unknown) return {};
    if (shape.kind != Shape::uniform) return varying_shape();
  }
  return uniform_shape();
}

Shape Shapes::evaluate_phi(const llvm::PHINode& phi) {
  Shape result;
  const llvm::BasicBlock* block = phi.getParent();
  bool same = phi.hasConstantValue() != nullptr;
  if (!same && joins_.contains(block)) {
    because_.try_emplace(&phi, Cause{"lanes come here by different ways", nullptr});
    return varying_shape();
  }
  for (unsigned i = 0; i < phi.getNumIncomingValues(); ++i) {
    const Value* incoming = phi.getIncomingValue(i);
    if (incoming == &phi || isa<llvm::UndefValue>(incoming)) continue;
    if (auto* defined = dyn_cast<Instruction>(incoming)) {
      for (const llvm::Loop* loop = flow_.loops.getLoopFor(defined->getParent()); loop;
           loop = loop->getParentLoop()) {
        if (!loop->contains(block) && varying_loops_.contains(loop)) {
          because_.try_emplace(&phi,
                               Cause{"lanes leave the loop in different iterations", nullptr});
          return varying_shape();
        }
      }
    }
    result = join(result, of(incoming));
  }
  // Only poison comes in: any shape does.
  if (result.kind == Shape::unknown &&
      llvm::all_of(phi.incoming_values(),
                   [&](const llvm::Use& use) { return isa<llvm::UndefValue>(use) || use == &phi; }))
    return uniform_shape();
  return result;
}

Shapes::Origin Shapes::origin_of(const Value* value) const {
  llvm::DenseSet<const Value*> seen;
  while (value && seen.insert(value).second) {
    auto found = because_.find(value);
    if (found == because_.end()) break;
    if (!found->second.operand) return {cast<Instruction>(value), found->second.reason};
    value = found->second.operand;
  }
  return {};
}

std::vector<Shapes::Origin> Shapes::origins() const {
  std::vector<Origin> result;
  for (const Instruction& instruction : llvm::instructions(function_)) {
    auto found = because_.find(&instruction);
    if (found == because_.end() || found->second.operand) continue;
    if (of(&instruction).kind == Shape::varying)
      result.push_back({&instruction, found->second.reason});
  }
  return result;
}

}  // namespace holdfast::jit
