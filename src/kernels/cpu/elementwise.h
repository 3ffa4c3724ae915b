// Element-wise kernels over dense blocks: the inner loops of the fused block engine.
//
// Every kernel is a pure function of its operands. For all of them:
//  - `out` may be one of the inputs (in place) if its elements are no wider than that input's; it
//  may
//    not overlap an input in any other way;
//  - `n` is any count >= 0; nothing beyond `n` elements is read or written;
//  - pointers need only the alignment of their element;
//  - the result for an element depends on the values of its operands alone: not on its position, on
//    `n`, or on how the work was cut into blocks. It may depend on the instruction set.
// Kernels do not throw, allocate or lock; any thread may call them.
#pragma once

#include <cstddef>
#include <cstdint>

#include <holdfast/dtype.h>

#include "kernels/plan/elementwise.h"

namespace holdfast::kernels::cpu {

// The type a block is computed in. float16 and bfloat16 are computed in f32 and rounded after each
// op.
enum class Lane : uint8_t { b8, u8, u16, u32, u64, i8, i16, i32, i64, f32, f64, c64, count };

Lane lane_of(Dtype::Val dtype);
size_t lane_size(Lane lane);

// `in` holds one pointer an operand, each to `n` elements of the operand lane; Select takes
// {condition (b8), x, y}. b8 operands hold 0 or 1, nothing else.
using BlockKernel = void (*)(void* out, const void* const* in, int64_t n);

// The kernel of `op` for operands of type `lane` (Select: the type of x and y); nullptr where the
// op does not take that type, i.e. where in_types of its table row rejects it.
BlockKernel elementwise_kernel(ElementwiseOp op, Lane lane);

// The type of the result: b8 for predicates and logical ops, f32 for abs, real and imag of c64,
// else `lane`.
Lane elementwise_result_lane(ElementwiseOp op, Lane lane);

using ConvertKernel = void (*)(void* out, const void* in, int64_t n);

// Dense astype; never nullptr. In place (`in` == `out`) only where both types have one size.
//  - to bool: `value != 0`; NaN is true;
//  - integer to integer: wraps (the low bits);
//  - float to integer: truncates toward zero and saturates at the limits of the target, so
//  infinities
//    give the limits, negative values give 0 in unsigned types; NaN gives 0;
//  - to a narrower float: rounds to nearest even; beyond the range gives infinity. Half types take
//  part
//    as float32: float64 or an integer becomes a half by way of float32, fused or not;
//  - complex to real: takes the real part; real to complex: imaginary part 0.
ConvertKernel convert_kernel(Dtype::Val from, Dtype::Val to);

// The same between two lanes, for an astype inside a fused group.
ConvertKernel lane_convert_kernel(Lane from, Lane to);

// From a storage dtype to its lane (halves to f32), and back (f32 to halves, rounding to nearest
// even). nullptr where the lane is the storage type. Loading quiets a signalling float16 NaN.
ConvertKernel load_kernel(Dtype::Val from);
ConvertKernel store_kernel(Dtype::Val to);

// f32 to f32, each value rounded to the half type and widened again; nullptr for dtypes other than
// float16 and bfloat16. store(round(x)) == store(x).
ConvertKernel round_kernel(Dtype::Val half);

// `n` copies of one scalar of `itemsize` bytes (1, 2, 4 or 8).
void fill_block(void* out, const void* scalar, size_t itemsize, int64_t n);

}  // namespace holdfast::kernels::cpu
