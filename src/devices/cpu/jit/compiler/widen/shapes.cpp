#include "devices/cpu/jit/compiler/widen/shapes.h"

#include <llvm/ADT/PostOrderIterator.h>
#include <llvm/IR/CFG.h>
#include <llvm/IR/DebugInfoMetadata.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Operator.h>
#include <llvm/Support/MathExtras.h>

#include <algorithm>

#include "devices/cpu/jit/compiler/widen/intrinsics.h"
#include "devices/cpu/jit/compiler/widen/private_memory.h"
#include "devices/cpu/jit/kernel_abi.h"
#include "msl/frontend/frontend.h"

namespace holdfast::jit {
namespace {

using llvm::cast;
using llvm::dyn_cast;
using llvm::Instruction;
using llvm::isa;
using llvm::Value;
using msl::Intrinsic;

constexpr uint32_t most_alignment = 4096;
constexpr int64_t last_lane = simdgroup_width - 1;
constexpr int64_t most_stride = int64_t{1} << 24;

Shape made(Shape::Kind kind, int64_t stride, uint64_t alignment) {
  Shape shape;
  shape.kind = kind;
  shape.stride = stride;
  shape.alignment = static_cast<uint32_t>(std::min<uint64_t>(alignment, most_alignment));
  return shape;
}
Shape uniform(uint64_t alignment = 1) { return made(Shape::uniform, 0, alignment); }
Shape varying() { return made(Shape::varying, 0, 1); }
Shape linear(int64_t stride, uint64_t alignment = 1) {
  if (stride == 0) return uniform(alignment);
  if (stride > most_stride || stride < -most_stride) return varying();
  return made(Shape::linear, stride, alignment);
}

// The shape of a value that is one of two, by a choice that is the same in all lanes.
Shape join(Shape a, Shape b) {
  if (a.kind == Shape::unknown) return b;
  if (b.kind == Shape::unknown) return a;
  if (!a.moves_like(b)) return varying();
  a.alignment = std::min(a.alignment, b.alignment);
  if (a.base != b.base || !b.is_fixed) {
    a.is_fixed = false;
    a.base = 0;
  }
  return a;
}

// Without what is known of lanes' values.
Shape uniform_or_varying(Shape shape) {
  shape.is_fixed = false;
  shape.base = 0;
  return shape;
}

uint64_t alignment_of(uint64_t value) { return value == 0 ? most_alignment : value & (~value + 1); }

uint64_t saturating_multiply(uint64_t a, uint64_t b) { return llvm::SaturatingMultiply(a, b); }

// Whether lanes add only bits below `alignment`: nothing carries into a base that is a multiple of
// it.
bool stays_below(const Shape& shape, uint64_t alignment) {
  for (int64_t lane = 0; lane <= last_lane; ++lane) {
    if (shape.offset(lane) < 0 || shape.offset(lane) >= static_cast<int64_t>(alignment))
      return false;
  }
  return true;
}

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

// Where the group's rows start in the grid: the one axis along which lanes follow each other.
bool is_row_start(const Value* value) {
  return is_axis_product(value) &&
         cast<llvm::ConstantInt>(axis_of_product(value)->getArgOperand(0))->isZero();
}

// thread_position_in_grid: group * size + position, along one axis.
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

bool depends_on_aligned_grid(const Value* value, int depth) {
  if (depth == 0) return true;
  if (is_row_start(value)) return true;
  auto* instruction = dyn_cast<Instruction>(value);
  if (!instruction || isa<llvm::CallInst>(instruction)) return false;
  return llvm::any_of(instruction->operands(), [&](const Value* operand) {
    return depends_on_aligned_grid(operand, depth - 1);
  });
}

}  // namespace

ControlFlow::ControlFlow(llvm::Function& function)
    : dominators(function), post_dominators(function), loops(dominators) {}

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
            next = varying();
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
    if (number->getBitWidth() <= 64) return uniform(alignment_of(number->getZExtValue()));
    return uniform();
  }
  auto* instruction = dyn_cast<Instruction>(value);
  if (!instruction) return uniform();
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
      return linear(static_cast<int64_t>(
          memory_.blocks.find(cast<llvm::AllocaInst>(&instruction))->second.stride()));
    case Instruction::Load:
      if (!all_uniform)
        because_.try_emplace(&instruction, Cause{"its address differs between lanes", nullptr});
      return all_uniform ? uniform() : varying();
    case Instruction::AtomicRMW:
    case Instruction::AtomicCmpXchg:
      because_.try_emplace(&instruction, Cause{"lanes take turns", nullptr});
      return varying();
    case Instruction::ExtractValue:
      return varying();
    case Instruction::GetElementPtr: {
      auto& gep = cast<llvm::GEPOperator>(instruction);
      const llvm::DataLayout& layout = function_.getParent()->getDataLayout();
      llvm::MapVector<Value*, llvm::APInt> variable;
      llvm::APInt constant(64, 0);
      if (!gep.collectOffset(layout, 64, variable, constant)) return varying();
      Shape base = of(gep.getPointerOperand());
      if (base.kind == Shape::varying) return varying();
      LaneOffsets offsets;
      for (size_t lane = 0; lane < offsets.size(); ++lane)
        offsets[lane] = base.offset(static_cast<int64_t>(lane));
      int64_t scale_all = memory_.interleaved(&instruction) ? simdgroup_width : 1;
      for (auto& [index, scale] : variable) {
        Shape shape = of(index);
        if (shape.kind == Shape::varying || scale.getSignificantBits() > 32) return varying();
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
      Shape shape = operand(instruction, 0);
      shape.is_fixed = false;
      shape.base = 0;
      if (!shape.has_base()) return shape;
      llvm::Type* type = instruction.getType();
      if (!type->isIntOrPtrTy() || !instruction.getOperand(0)->getType()->isIntOrPtrTy())
        return varying();
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
      if (operand(instruction, 0).kind != Shape::uniform) return varying();
      return join(operand(instruction, 1), operand(instruction, 2));
    }
    default:
      break;
  }

  if (instruction.getType()->isIntegerTy() && isa<llvm::BinaryOperator>(instruction)) {
    Shape a = operand(instruction, 0), b = operand(instruction, 1);
    if (a.kind == Shape::varying || b.kind == Shape::varying) return varying();
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
        if (depends_on_aligned_grid(part, 8)) needs_aligned_grid_ = true;
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
        uint64_t product = saturating_multiply(a.alignment, b.alignment);
        if (is_row_start(&instruction) && assumption_ == Assumption::converged)
          return uniform(simdgroup_width);
        if (all_uniform) return uniform(product);
        if (!constant || !narrow || constant->getValue().getSignificantBits() > 24) break;
        uint64_t factor = static_cast<uint64_t>(constant->getSExtValue());
        return combined([factor](uint64_t x, uint64_t) { return x * factor; }, product);
      }
      case Instruction::Shl:
        if (!constant || !narrow || number > 24) break;
        return combined([number](uint64_t x, uint64_t) { return x << number; },
                        saturating_multiply(a.alignment, uint64_t{1} << number));
      case Instruction::LShr:
      case Instruction::AShr:
        // The base has zeros where lanes add their bits: both are shifted by themselves.
        if (a.has_base() && constant && narrow && number < 63 && stays_below(a, a.alignment)) {
          if ((uint64_t{1} << number) > a.alignment) {
            // Lanes move only bits that are shifted out.
            note_alignment();
            return uniform();
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
        if (all_uniform) return uniform(std::max(a.alignment, b.alignment));
        break;
      default:
        break;
    }
  }
  return all_uniform ? uniform() : varying();
}

// The shape of base + offsets: the simplest kind that fits.
Shape Shapes::shape_of(LaneOffsets offsets, const llvm::Type* type, uint64_t alignment) const {
  unsigned width = type->isPointerTy() ? 64 : type->getIntegerBitWidth();
  if (width > 64) return varying();
  for (int64_t& offset : offsets) offset = llvm::SignExtend64(static_cast<uint64_t>(offset), width);
  bool is_linear = true;
  for (size_t lane = 0; lane < offsets.size(); ++lane) {
    if (offsets[lane] > most_stride * last_lane || offsets[lane] < -most_stride * last_lane)
      return varying();
    is_linear &= offsets[lane] == offsets[1] * static_cast<int64_t>(lane);
  }
  // A predicate or a byte would wrap at once.
  if (width < 16 && (!is_linear || offsets[1] != 0)) return varying();
  if (is_linear) return linear(offsets[1], alignment);
  Shape shape = made(Shape::pattern, 0, alignment);
  shape.offsets = pool_.keep(offsets);
  return shape;
}

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

// What depends on the lane's number alone is known for each lane.
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

Shape Shapes::evaluate_call(const llvm::CallInst& call) {
  std::optional<Intrinsic> intrinsic = kernel_intrinsic(call);
  if (intrinsic) {
    switch (*intrinsic) {
      case Intrinsic::thread_index_in_simdgroup: {
        Shape shape = linear(1, most_alignment);
        shape.is_fixed = true;
        return shape;
      }
      case Intrinsic::thread_position_in_threadgroup:
        if (assumption_ == Assumption::any) {
          because_.try_emplace(&call, Cause{"it is a thread's position", nullptr});
          return varying();
        }
        return cast<llvm::ConstantInt>(call.getArgOperand(0))->isZero() ? linear(1, simdgroup_width)
                                                                        : uniform();
      case Intrinsic::ballot:
        return uniform();
      default:
        break;
    }
    if (behaviour_of(*intrinsic) == Behaviour::cross_lane) {
      llvm::StringRef name = call.getCalledFunction()->getName();
      if (name.starts_with("__hf_reduce_")) return uniform();
      because_.try_emplace(&call, Cause{"lanes get different values", nullptr});
      return varying();
    }
    return uniform();
  }
  for (const Value* argument : call.args()) {
    Shape shape = of(argument);
    if (shape.kind == Shape::unknown) return {};
    if (shape.kind != Shape::uniform) return varying();
  }
  return uniform();
}

Shape Shapes::evaluate_phi(const llvm::PHINode& phi) {
  Shape result;
  const llvm::BasicBlock* block = phi.getParent();
  bool same = phi.hasConstantValue() != nullptr;
  if (!same && joins_.contains(block)) {
    because_.try_emplace(&phi, Cause{"lanes come here by different ways", nullptr});
    return varying();
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
          return varying();
        }
      }
    }
    result = join(result, of(incoming));
  }
  // Only poison comes in: any shape does.
  if (result.kind == Shape::unknown &&
      llvm::all_of(phi.incoming_values(),
                   [&](const llvm::Use& use) { return isa<llvm::UndefValue>(use) || use == &phi; }))
    return uniform();
  return result;
}

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
  shape.is_fixed = false;
  shape.base = 0;
  unsigned width = value->getType()->getIntegerBitWidth();
  if (width < 16) return varying();
  if (is_small(value)) return shape;
  // All lanes are on, and none is negative: they cannot lie on both sides of the place where values
  // wrap around.
  if (depth == 0 && assumption_ == Assumption::converged && extension.hasNonNeg()) return shape;
  if (depth < 6 && distributes(extension, value)) {
    auto* sum = cast<llvm::BinaryOperator>(value);
    // A product only with a constant: the other side's stride must stay one.
    if (sum->getOpcode() == Instruction::Mul && !isa<llvm::ConstantInt>(sum->getOperand(1)))
      return varying();
    Shape a = extended(extension, sum->getOperand(0), depth + 1);
    Shape b = extended(extension, sum->getOperand(1), depth + 1);
    if (a.kind != Shape::varying && b.kind != Shape::varying) return shape;
  }
  return varying();
}

Shape Shapes::evaluate_extension(const llvm::CastInst& extension) {
  Shape shape = operand(extension, 0);
  if (!shape.has_base()) return uniform_or_varying(shape);
  unsigned width = extension.getOperand(0)->getType()->getIntegerBitWidth();
  for (int64_t lane = 0; lane <= last_lane; ++lane) {
    if (width < 64 && std::abs(shape.offset(lane)) >= (int64_t{1} << (width - 1))) return varying();
  }
  Shape proven = extended(extension, extension.getOperand(0), 0);
  if (proven.kind != Shape::varying) {
    guarded_.erase(&extension);
    return proven;
  }
  if (assumption_ == Assumption::any || width < 16) {
    because_.try_emplace(&extension, Cause{"it may wrap around between lanes", nullptr});
    return varying();
  }
  guarded_.insert(&extension);
  shape.is_fixed = false;
  shape.base = 0;
  return shape;
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
      return limit(saturating_multiply(bound(0), bound(1)));
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
        return limit(saturating_multiply(bound(0), uint64_t{1} << by->getZExtValue()));
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

bool Shapes::propagate_control() {
  size_t before = joins_.size() + varying_loops_.size() + varying_branches_.size();
  for (llvm::BasicBlock& block : function_) {
    auto* branch = dyn_cast<llvm::BranchInst>(block.getTerminator());
    if (!branch || !branch->isConditional() || varying_branches_.contains(&block)) continue;
    if (of(branch->getCondition()).kind != Shape::varying) continue;
    varying_branches_.insert(&block);
    llvm::SmallVector<const llvm::BasicBlock*, 2> starts(llvm::succ_begin(&block),
                                                         llvm::succ_end(&block));
    part_to(starts, flow_.loops.getLoopFor(&block));
  }
  return joins_.size() + varying_loops_.size() + varying_branches_.size() != before;
}

// Lanes part where `starts` begin: at the end of a block, or when they leave a loop one after the
// other. Follows them within one iteration of the loops around, `inside` the innermost.
void Shapes::part_to(llvm::ArrayRef<const llvm::BasicBlock*> starts, const llvm::Loop* inside) {
  Labels labels = mark_joins(starts);
  for (const llvm::Loop* loop = inside; loop; loop = loop->getParentLoop()) {
    if (varying_loops_.contains(loop) || !parts_in(*loop, starts, labels)) continue;
    varying_loops_.insert(loop);
    llvm::SmallVector<llvm::BasicBlock*, 8> exits;
    loop->getUniqueExitBlocks(exits);
    llvm::SmallVector<const llvm::BasicBlock*, 8> exit_starts(exits.begin(), exits.end());
    part_to(exit_starts, loop->getParentLoop());
  }
}

// Whether lanes can be in different places when an iteration ends, some of them outside.
bool Shapes::parts_in(const llvm::Loop& loop, llvm::ArrayRef<const llvm::BasicBlock*> starts,
                      const Labels& labels) const {
  const llvm::BasicBlock* first = nullptr;
  bool differ = false, leaves = false;
  auto end = [&](const llvm::BasicBlock* target, const llvm::BasicBlock* label) {
    if (loop.contains(target) && target != loop.getHeader()) return;
    leaves |= !loop.contains(target);
    differ |= first && first != label;
    first = label;
  };
  for (const llvm::BasicBlock* start : starts) end(start, start);
  for (const llvm::BasicBlock* block : loop.blocks()) {
    auto label = labels.find(block);
    if (label == labels.end()) continue;
    for (const llvm::BasicBlock* next : llvm::successors(block)) end(next, label->second);
  }
  return differ && leaves;
}

// Each block's label is the last block that all ways to it have in common: a start, or a join,
// where two of the starts arrive by ways that have no block in common.
Shapes::Labels Shapes::mark_joins(llvm::ArrayRef<const llvm::BasicBlock*> starts) {
  Labels labels;
  for (const llvm::BasicBlock* start : starts) {
    if (!labels.try_emplace(start, start).second) joins_.insert(start);
  }
  llvm::DenseSet<const llvm::BasicBlock*> done;
  for (const llvm::BasicBlock* block : order_) {
    done.insert(block);
    auto found = labels.find(block);
    if (found == labels.end()) continue;
    const llvm::BasicBlock* own = found->second;
    for (const llvm::BasicBlock* next : llvm::successors(block)) {
      if (done.contains(next)) continue;  // a back edge
      auto [place, fresh] = labels.try_emplace(next, own);
      if (fresh || place->second == own) continue;
      place->second = next;
      joins_.insert(next);
    }
  }
  return labels;
}

unsigned line_of(const Instruction& instruction) {
  // From inside functions outwards to what the user wrote.
  for (const llvm::DILocation* place = instruction.getDebugLoc().get(); place;
       place = place->getInlinedAt()) {
    if (place->getFilename() == msl::source_file && place->getLine() != 0) return place->getLine();
  }
  return 0;
}

std::string describe(const Value& value) {
  auto* instruction = dyn_cast<Instruction>(&value);
  if (instruction && kernel_intrinsic(*instruction)) {
    llvm::StringRef name = cast<llvm::CallInst>(instruction)->getCalledFunction()->getName();
    return name.drop_front(llvm::StringRef(msl::intrinsic_prefix).size()).str();
  }
  if (instruction && instruction->hasName())
    return instruction->getOpcodeName() + (" " + instruction->getName()).str();
  std::string text;
  llvm::raw_string_ostream stream(text);
  value.print(stream);
  return llvm::StringRef(text).trim().str();
}

std::string noun_of(const Instruction& instruction) {
  if (line_of(instruction) == 0 || kernel_intrinsic(instruction)) return describe(instruction);
  switch (instruction.getOpcode()) {
    case Instruction::Load:
      return "a load";
    case Instruction::Store:
      return "a store";
    case Instruction::AtomicRMW:
    case Instruction::AtomicCmpXchg:
      return "an atomic operation";
    case Instruction::Br:
      return "a branch";
    case Instruction::PHI:
      return "a variable";
    default:
      return "a value";
  }
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
