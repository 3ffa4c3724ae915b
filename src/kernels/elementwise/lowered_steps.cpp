#include "kernels/elementwise/lowered_steps.h"

#include <optional>

#include "kernels/plan/elementwise.h"

namespace holdfast::kernels {
namespace {

bool is_real(Lane lane) { return lane == Lane::f32 || lane == Lane::f64; }
bool is_long(Lane lane) { return lane == Lane::i64 || lane == Lane::u64; }

Finish finish_of(Dtype::Val dtype) {
  switch (dtype) {
    case Dtype::Val::float16:
      return Finish::float16;
    case Dtype::Val::bfloat16:
      return Finish::bfloat16;
    case Dtype::Val::int8:
      return Finish::int8;
    case Dtype::Val::int16:
      return Finish::int16;
    case Dtype::Val::uint8:
      return Finish::uint8;
    case Dtype::Val::uint16:
      return Finish::uint16;
    default:
      return Finish::none;
  }
}

// Numbers that are 0 or 1 in a uint.
FusedOp op_of_bool(FusedOp op) {
  switch (op) {
    case FusedOp::Abs:
    case FusedOp::Sign:
    case FusedOp::Square:
      return FusedOp::Copy;
    case FusedOp::BitwiseInvert:
      return FusedOp::LogicalNot;
    case FusedOp::Add:
      return FusedOp::BitwiseOr;
    case FusedOp::Subtract:
      return FusedOp::BitwiseXor;
    case FusedOp::Multiply:
    case FusedOp::FloorDivide:
      return FusedOp::BitwiseAnd;
    case FusedOp::Remainder:
      return FusedOp::Zero;
    default:
      return op;
  }
}
FusedOp op_of_integers(FusedOp op) {
  switch (op) {
    case FusedOp::Floor:
    case FusedOp::Ceil:
    case FusedOp::Trunc:
    case FusedOp::Round:
      return FusedOp::Copy;
    case FusedOp::IsNaN:
    case FusedOp::IsInf:
    case FusedOp::IsPosInf:
    case FusedOp::IsNegInf:
      return FusedOp::Zero;
    case FusedOp::IsFinite:
      return FusedOp::One;
    case FusedOp::LogicalAnd:
      return FusedOp::BitwiseAnd;
    case FusedOp::LogicalOr:
      return FusedOp::BitwiseOr;
    case FusedOp::LogicalXor:
      return FusedOp::BitwiseXor;
    default:
      return op;
  }
}

FusedOp op_for(FusedOp op, Dtype dtype, Lane lane) {
  if (lane != Lane::c64) {
    if (op == FusedOp::Real || op == FusedOp::Conjugate) return FusedOp::Copy;
    if (op == FusedOp::Imag) return FusedOp::Zero;
  }
  if (lane == Lane::c64 || is_real(lane)) return op;
  if (dtype == bool_) op = op_of_bool(op);
  return op_of_integers(op);
}

// The f of f(i a) / i, or, for the cosine, f(i a).
std::optional<FusedOp> hyperbolic_of(FusedOp op) {
  switch (op) {
    case FusedOp::Sin:
      return FusedOp::Sinh;
    case FusedOp::Cos:
      return FusedOp::Cosh;
    case FusedOp::Tan:
      return FusedOp::Tanh;
    case FusedOp::ArcSinh:
      return FusedOp::ArcSin;
    case FusedOp::ArcTan:
      return FusedOp::ArcTanh;
    default:
      return std::nullopt;
  }
}

// A float as an integer of this dtype.
FusedOp conversion_from_float(Dtype::Val dtype) {
  switch (dtype) {
    case Dtype::Val::int8:
      return FusedOp::ToInt8;
    case Dtype::Val::int16:
      return FusedOp::ToInt16;
    case Dtype::Val::int32:
      return FusedOp::ToInt32;
    case Dtype::Val::int64:
      return FusedOp::ToInt64;
    case Dtype::Val::uint8:
      return FusedOp::ToUint8;
    case Dtype::Val::uint16:
      return FusedOp::ToUint16;
    case Dtype::Val::uint32:
      return FusedOp::ToUint32;
    default:
      return FusedOp::ToUint64;
  }
}

class Lowering {
 public:
  Lowering(uint16_t inputs, std::vector<LoweredStep>& steps) : inputs_(inputs), steps_(steps) {}

  uint16_t add(FusedOp op, Lane lane, Dtype dtype, std::span<const uint16_t> operands) {
    LoweredStep step{
        op,   lane, finish_of(dtype), static_cast<uint8_t>(operands.size()), {}, lane_of(dtype),
        dtype};
    for (size_t i = 0; i < operands.size(); ++i) step.operands[i] = operands[i];
    steps_.push_back(step);
    return static_cast<uint16_t>(inputs_ + steps_.size() - 1);
  }

  uint16_t convert(uint16_t value, Dtype from, Dtype to) {
    auto add_one = [&](FusedOp op, Lane lane, Dtype dtype) {
      return add(op, lane, dtype, {&value, 1});
    };
    const Lane lane = lane_of(from), target = lane_of(to);
    if (to == bool_) return add_one(from == bool_ ? FusedOp::Copy : FusedOp::ToBool, lane, to);
    if (lane == target) return add_one(FusedOp::Copy, lane, to);
    // Complex numbers and half types are converted by way of float32.
    if (lane == Lane::c64) {
      if (target == Lane::f32) return add_one(FusedOp::Real, lane, to);
      value = add_one(FusedOp::Real, lane, float32);
      return convert(value, float32, to);
    }
    if (target == Lane::c64) {
      if (lane != Lane::f32) value = add_one(FusedOp::ToFloat, lane, float32);
      return add_one(FusedOp::ToComplex, Lane::f32, to);
    }
    if (target == Lane::f32) return add_one(FusedOp::ToFloat, lane, to);
    if (target == Lane::f64) return add_one(FusedOp::ToDouble, lane, to);
    if (is_real(lane)) return add_one(conversion_from_float(to), lane, to);
    if (is_long(target) && !is_long(lane)) return add_one(FusedOp::ToInt64, lane, to);
    if (is_long(lane) && !is_long(target)) return add_one(FusedOp::ToUint32, lane, to);
    return add_one(FusedOp::Copy, lane, to);
  }

 private:
  uint16_t inputs_;
  std::vector<LoweredStep>& steps_;
};

}  // namespace

Lane lane_of(Dtype::Val dtype) {
  switch (dtype) {
    case Dtype::Val::bool_:
    case Dtype::Val::uint8:
    case Dtype::Val::uint16:
    case Dtype::Val::uint32:
      return Lane::u32;
    case Dtype::Val::int8:
    case Dtype::Val::int16:
    case Dtype::Val::int32:
      return Lane::i32;
    case Dtype::Val::int64:
      return Lane::i64;
    case Dtype::Val::uint64:
      return Lane::u64;
    case Dtype::Val::float16:
    case Dtype::Val::bfloat16:
    case Dtype::Val::float32:
      return Lane::f32;
    case Dtype::Val::complex64:
      return Lane::c64;
    case Dtype::Val::float64:
      break;
  }
  return Lane::f64;
}

ElementType element_type_of(Dtype::Val dtype) {
  switch (dtype) {
    case Dtype::Val::bool_:
    case Dtype::Val::uint8:
      return ElementType::u8;
    case Dtype::Val::int8:
      return ElementType::i8;
    case Dtype::Val::uint16:
      return ElementType::u16;
    case Dtype::Val::int16:
      return ElementType::i16;
    case Dtype::Val::float16:
      return ElementType::f16;
    case Dtype::Val::bfloat16:
      return ElementType::bf16;
    case Dtype::Val::uint32:
    case Dtype::Val::int32:
    case Dtype::Val::float32:
      return ElementType::b32;
    case Dtype::Val::uint64:
    case Dtype::Val::int64:
    case Dtype::Val::complex64:
    case Dtype::Val::float64:
      break;
  }
  return ElementType::b64;
}

uint16_t lower(int16_t code, Dtype operand_dtype, Dtype dtype, std::span<const uint16_t> operands,
               uint16_t inputs, std::vector<LoweredStep>& steps) {
  Lowering lowering(inputs, steps);
  if (code == conversion_code) return lowering.convert(operands[0], operand_dtype, dtype);
  const Lane lane = lane_of(operand_dtype);
  const FusedOp op = op_for(static_cast<FusedOp>(code), operand_dtype, lane);
  if (lane == Lane::c64) {
    if (std::optional<FusedOp> other = hyperbolic_of(op)) {
      const uint16_t turned = lowering.add(FusedOp::Turn, lane, dtype, operands);
      const uint16_t value = lowering.add(*other, lane, dtype, {&turned, 1});
      return op == FusedOp::Cos ? value : lowering.add(FusedOp::TurnBack, lane, dtype, {&value, 1});
    }
  }
  // Greater is less with its operands exchanged.
  const uint16_t exchanged[] = {operands.back(), operands.front()};
  if (op == FusedOp::Greater) return lowering.add(FusedOp::Less, lane, dtype, exchanged);
  if (op == FusedOp::GreaterEqual) return lowering.add(FusedOp::LessEqual, lane, dtype, exchanged);
  if (op == FusedOp::Zero || op == FusedOp::One) operands = operands.first(0);
  if (op == FusedOp::Copy) operands = operands.first(1);
  return lowering.add(op, lane, dtype, operands);
}

LoweredGroup lower(std::span<const FusedStep> steps, size_t inputs) {
  LoweredGroup group;
  for (const FusedStep& step : steps) {
    uint16_t operands[3];
    for (int i = 0; i < step.arity; ++i) {
      const uint16_t value = step.values[i];
      operands[i] = value >= FusedStep::result ? group.results[value - FusedStep::result] : value;
    }
    group.results.push_back(lower(step.op, step.operand_dtype, step.dtype, {operands, step.arity},
                                  static_cast<uint16_t>(inputs), group.steps));
  }
  return group;
}

}  // namespace holdfast::kernels
