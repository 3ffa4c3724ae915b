// What the bases of the library's primitives (holdfast/op.h) speak of.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include <holdfast/encoder.h>
#include <holdfast/op.h>

#include "graph/record.h"

namespace holdfast {

namespace kernels {
class BackendCache;
}

using detail::FusableOp;
using detail::Op;
using detail::Prepared;
using detail::PreparedOp;

namespace detail {
// The node or nodes of one call whose inputs the op has checked; programs make theirs with `array`
// and array::make_arrays.
array make_checked(Shape shape, Dtype dtype, std::shared_ptr<Primitive> primitive,
                   std::vector<array> inputs);
std::vector<array> make_all_checked(std::vector<Shape> shapes, const std::vector<Dtype>& dtypes,
                                    const std::shared_ptr<Primitive>& primitive,
                                    const std::vector<array>& inputs);
}  // namespace detail

// One step of a fused group: an element-wise op on earlier values. A value is the index of an
// external input of the group, or `result` + the index of an earlier step.
struct FusedStep {
  static constexpr uint16_t result = 0x8000;
  int16_t op;  // Primitive::Traits::elementwise
  uint8_t arity;
  uint16_t values[3];
  Dtype dtype;          // of the result
  Dtype operand_dtype;  // of the operands (of the last one, for select)
  array* output;        // where the result goes, or null when nobody outside needs it
};

// Element-wise ops over one iteration shape, run as one pass.
struct detail::FusedGroup {
  const Shape* shape;
  std::span<const array> inputs;  // evaluated; broadcast to `shape`
  // May the memory of input i be taken over by an output? (All its uses are inside the group.)
  uint32_t donatable;          // bit i: input i
  std::span<FusedStep> steps;  // in order of evaluation
  // Of a group that comes again and again, with other arrays: what the backend keeps with it.
  kernels::BackendCache* cache = nullptr;
  // What the backend has made ready for this call (Backend::prepare_fused).
  const Prepared* prepared = nullptr;
};
using detail::FusedGroup;

}  // namespace holdfast
