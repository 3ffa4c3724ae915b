// What encodes the kernels of indexing.metal.
#pragma once

#include <string>

#include "kernels/metal/walk.h"
#include "kernels/plan/update.h"

namespace holdfast::kernels::metal {

// An axis whose elements an array of integers names.
struct IndexedAxis {
  const array* indices = nullptr;
  int64_t size = 0;     // negative indices count from here; 0: they are errors
  int64_t room = 0;     // the largest index that may be followed
  int64_t stride = 0;   // what the index is multiplied with, in elements
  std::string message;  // of one that may not be followed, with its value and its position
  // Positions count elements of the walk, divided by this; 0: those of `indices`.
  int64_t divisor = 1;
};

// What leads from the positions of a walk to elements: nothing, the indices of an axis, or offsets.
struct Indices {
  Indices() = default;
  // The array outlives the indices.
  explicit Indices(IndexedAxis axis) : axis(std::move(axis)) {}

  IndexedAxis axis;
  // `axis` has int64 offsets of elements instead, multiples of its stride: what offsets_of_indices
  // and offset_of_start give.
  bool are_offsets = false;
};

// Can kernels read indices of this dtype themselves? Others become offsets first.
bool is_read_directly(Dtype dtype);

// Offsets over `places`, to which all arrays of indices broadcast.
array offsets_of_indices(Encoder& encoder, std::span<const IndexedAxis> axes, const Shape& places);
// The offset of a slice (of shape `slice`, in an array of shape `whole`, with `strides`) whose
// starts along `axes` are the elements of `start`. `op` names the public function in errors.
array offset_of_start(Encoder& encoder, const char* op, std::span<const int> axes,
                      const Shape& whole, const Strides& strides, const Shape& slice,
                      const array& start);

// Fills the dense `out` with elements of `in`. `layout` has its shape, and strides of `in` and of
// the indices.
void encode_gather(Encoder& encoder, JointLayout layout, const Indices& indices, const array& in,
                   array& out);
// `updates`, which have elements, meet elements of `out`, no two of them the same one. `layout` has
// their shape, and strides of `out`, of the indices and of the updates.
void encode_update(Encoder& encoder, UpdateMode mode, JointLayout layout, const Indices& indices,
                   const array& updates, array& out);
// Every element becomes that of `block`, 16 bytes of equal elements. The strides of `layout` are as
// above, those of the updates 0.
void encode_repeated(Encoder& encoder, JointLayout layout, const array& block, array& out);

}  // namespace holdfast::kernels::metal
