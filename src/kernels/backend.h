// Backend: what a device does for the library's ops, one function per family.
//
// An op says what is computed (shapes, dtypes, derivatives); its `encode` hands that to the backend
// of the queue's device, which encodes the commands. `kernels/plan` holds the words that both
// speak.
//
// Outputs have memory when a function's comment says so; else the function gives it to them
// (Encoder::allocate, or what an input that is not needed any more leaves).
#pragma once

#include <span>
#include <vector>

#include <holdfast/array.h>
#include <holdfast/encoder.h>

#include "exec/queue.h"
#include "kernels/plan/indexing.h"
#include "kernels/plan/reduce.h"
#include "kernels/plan/scan.h"
#include "kernels/plan/update.h"

namespace holdfast::kernels {

class Backend {
 public:
  virtual ~Backend() = default;

  // --- copies, views, indices ---

  // The elements of `in` in row-major order. `out` has memory, and elements.
  virtual void copy(Encoder& encoder, const array& in, array& out) = 0;
  // A slice of `in`, as large as `out`, that starts where `start` says: one integer for each of
  // `axes`. A start from which it would leave `in` is an error when the op runs.
  virtual void dynamic_slice(Encoder& encoder, std::span<const int> axes, const array& in,
                             const array& start, array& out) = 0;
  // `out` holds an array; `update` meets its elements in a region of the same shape. `start`: of
  // the region's axes, as above; null: it has none.
  virtual void slice_update(Encoder& encoder, const SliceRegion& region, UpdateMode mode,
                            const array& update, const array* start, array& out) = 0;
  // `out` holds an array, with elements; where `mask`, of its shape, holds, they are replaced by
  // those of `source` (dense), one after the other. Too few of them are an error when the op runs.
  virtual void masked_scatter(Encoder& encoder, const array& mask, const array& source,
                              array& out) = 0;
  virtual void concatenate(Encoder& encoder, int axis, const std::vector<array>& inputs,
                           array& out) = 0;
  // `in`, surrounded by copies of `value` (one element): `low[i]` in front of it along axis i.
  virtual void pad(Encoder& encoder, const Shape& low, const array& in, const array& value,
                   array& out) = 0;
  // The elements of `in` that the indices name.
  virtual void gather(Encoder& encoder, const Indexing& indexing, const array& in,
                      std::span<const array> indices, array& out) = 0;
  // `out` holds an array; `updates`, with elements, meet those of its elements that the indices
  // name, in their order. Along an axis: int32, uint32 or int64 indices of the updates' shape, and
  // the modes replace and add.
  virtual void scatter(Encoder& encoder, const Indexing& indexing, UpdateMode mode,
                       std::span<const array> indices, const array& updates, array& out) = 0;
  // float32 to e4m3 in uint8, or the other way.
  virtual void convert_fp8(Encoder& encoder, const array& in, array& out) = 0;

  // --- reductions, scans, sorts ---

  // Over distinct axes; `out` keeps the others in order, with or without axes of size 1.
  virtual void reduce(Encoder& encoder, ReduceOp op, const std::vector<int>& axes, const array& in,
                      array& out) = 0;
  // Over sorted axes; of a real floating-point type.
  virtual void softmax(Encoder& encoder, const std::vector<int>& axes, const array& in,
                       array& out) = 0;
  virtual void scan(Encoder& encoder, const ScanKind& kind, const array& in, array& out) = 0;

  // --- norms, attention, transforms, convolutions, factorisations ---

  // --- creation, random numbers ---

  // --- products, quantisation ---

  // --- element-wise programs ---
};

// Of the device that the encoder's queue runs on.
inline Backend& backend_of(Encoder& encoder) { return *encoder.queue().device().backend; }

}  // namespace holdfast::kernels
