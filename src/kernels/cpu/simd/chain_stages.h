// The stages of chains (kernels/cpu/chain.h) for one instruction set.
//
// A stage is a function that takes the tile as eight vector arguments, which the calling convention
// passes in registers, and ends with a call of the next stage, which the compiler makes a jump.
#pragma once

#include "kernels/cpu/chain.h"
#include "kernels/cpu/simd/loops.h"
#include "kernels/cpu/simd/math.h"
#include "kernels/cpu/simd/vector_math.h"

namespace holdfast::kernels::cpu::HOLDFAST_SIMD_TARGET {

inline constexpr int64_t tile_size = 8 * float_count;

using TileFunction = void (*)(const ChainStage*, int64_t, FloatVector, FloatVector, FloatVector,
                              FloatVector, FloatVector, FloatVector, FloatVector, FloatVector);
using RestFunction = void (*)(const ChainStage*, int64_t, int64_t, FloatVector);

// --- A stage is a struct with `static FloatVector apply(FloatVector v, FloatVector operand)`, or
// without the operand; these two make its functions. ---

template <typename Body>
concept UsesOperand = requires(FloatVector v) { Body::apply(v, v); };

HOLDFAST_INLINE const float* operand_of(const ChainStage* stage, int64_t offset) {
  return reinterpret_cast<const float*>(stage->address + offset * stage->step);
}

// The first `count` elements of a register; the others repeat the first one.
HOLDFAST_INLINE FloatVector load_part(const float* from, int64_t count) {
  if (count == float_count) return load(from);
  float chunk[float_count];
  pad(chunk, from, count, float_count);
  return load(chunk);
}

HOLDFAST_INLINE void continue_tile(const ChainStage* stage, int64_t offset, FloatVector v0,
                                   FloatVector v1, FloatVector v2, FloatVector v3, FloatVector v4,
                                   FloatVector v5, FloatVector v6, FloatVector v7) {
  reinterpret_cast<TileFunction>(stage[1].code.tile)(stage + 1, offset, v0, v1, v2, v3, v4, v5, v6,
                                                     v7);
}
HOLDFAST_INLINE void continue_rest(const ChainStage* stage, int64_t offset, int64_t count,
                                   FloatVector v) {
  reinterpret_cast<RestFunction>(stage[1].code.rest)(stage + 1, offset, count, v);
}

template <typename Body>
HOLDFAST_INLINE FloatVector apply_part(const float* operand, int part, FloatVector v) {
  if constexpr (UsesOperand<Body>)
    return Body::apply(v, load(operand + part * float_count));
  else
    return Body::apply(v);
}

template <typename Body>
void tile_stage(const ChainStage* stage, int64_t offset, FloatVector v0, FloatVector v1,
                FloatVector v2, FloatVector v3, FloatVector v4, FloatVector v5, FloatVector v6,
                FloatVector v7) {
  const float* operand = operand_of(stage, offset);
  v0 = apply_part<Body>(operand, 0, v0);
  v1 = apply_part<Body>(operand, 1, v1);
  v2 = apply_part<Body>(operand, 2, v2);
  v3 = apply_part<Body>(operand, 3, v3);
  v4 = apply_part<Body>(operand, 4, v4);
  v5 = apply_part<Body>(operand, 5, v5);
  v6 = apply_part<Body>(operand, 6, v6);
  v7 = apply_part<Body>(operand, 7, v7);
  continue_tile(stage, offset, v0, v1, v2, v3, v4, v5, v6, v7);
}

template <typename Body>
void rest_stage(const ChainStage* stage, int64_t offset, int64_t count, FloatVector v) {
  if constexpr (UsesOperand<Body>)
    v = Body::apply(v, load_part(operand_of(stage, offset), count));
  else
    v = Body::apply(v);
  continue_rest(stage, offset, count, v);
}

template <typename Body>
StageCode stage_code() {
  return {reinterpret_cast<void (*)()>(&tile_stage<Body>),
          reinterpret_cast<void (*)()>(&rest_stage<Body>)};
}

// --- Ops as stages. An op takes part when it has a form for registers (math.h). ---

HOLDFAST_INLINE FloatVector as_register(FloatVector v) { return v; }

template <typename Op>
concept IsFunction = requires(FloatVector v) {
  as_register(Op::vector(v));
  requires !Op::calls_library;
};
template <typename Op>
concept IsArithmetic = requires(FloatVector v) { as_register(Op::apply(v)); };
template <typename Op>
concept ChainsBinary = requires(FloatVector v) { as_register(Op::apply(v, v)); };

template <typename Op>
concept ChainsUnary = IsFunction<Op> || IsArithmetic<Op>;

template <ChainsUnary Op>
struct UnaryBody {
  static FloatVector apply(FloatVector v) {
    if constexpr (IsFunction<Op>)
      return Op::vector(v);
    else
      return Op::apply(v);
  }
};

// Ops with a form that is exact enough for half types.
template <typename Op>
  requires requires(FloatVector v) { Op::half(v); }
struct HalfBody {
  static FloatVector apply(FloatVector v) { return Op::half(v); }
};

template <ChainsBinary Op>
struct BinaryBody {
  static FloatVector apply(FloatVector v, FloatVector operand) { return Op::apply(v, operand); }
};
template <ChainsBinary Op>
struct ExchangedBody {
  static FloatVector apply(FloatVector v, FloatVector operand) { return Op::apply(operand, v); }
};

// --- An op over a block, as a chain of its own: a BlockKernel. ---

StageCode load_stage();
StageCode store_stage();
StageCode end_stage();
void run_chain(const ChainStage* stages, int64_t begin, int64_t end);

template <typename Body>
void run_as_chain(void* out, const void* const* in, int64_t n) {
  auto stage = [](StageCode code, const void* address) {
    return ChainStage{code, static_cast<char*>(const_cast<void*>(address)), sizeof(float)};
  };
  const ChainStage stages[] = {stage(load_stage(), in[0]),
                               stage(stage_code<Body>(), UsesOperand<Body> ? in[1] : in[0]),
                               stage(store_stage(), out), stage(end_stage(), nullptr)};
  run_chain(stages, 0, n);
}

}  // namespace holdfast::kernels::cpu::HOLDFAST_SIMD_TARGET
