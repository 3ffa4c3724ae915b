// What encodes the kernels of indexing.metal.
#pragma once

#include <string>

#include "kernels/metal/walk.h"
#include "kernels/plan/update.h"

namespace holdfast::kernels::metal {

// One list after the other.
template <typename List>
List joined(const List& first, const List& second) {
  List all = first;
  all.insert(all.end(), second.begin(), second.end());
  return all;
}
// What a list says of the dimensions [begin, end) of an array.
template <typename List>
List range_of(const List& list, size_t begin, size_t end) {
  return List(list.begin() + static_cast<int64_t>(begin), list.begin() + static_cast<int64_t>(end));
}
inline Strides no_strides(size_t dimensions) { return Strides(dimensions, 0); }

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

// Offsets over `places`, to which all arrays of indices (at least one) broadcast, from origins of
// these strides. Negative where an index may not be followed.
array offsets_of_indices(Encoder& encoder, std::span<const IndexedAxis> axes, const Shape& places,
                         const Strides& origins);
// The offset of a slice (of shape `slice`, in an array of shape `whole`, with `strides`) whose
// starts along `axes` are the elements of `start`. `op` names the public function in errors.
array offset_of_start(Encoder& encoder, const char* op, std::span<const int> axes,
                      const Shape& whole, const Strides& strides, const Shape& slice,
                      const array& start);
// Of a start that is not from 0 to `room`.
std::string start_message(const char* op, int axis, int64_t room);

// Which elements arrays of indices name, as kernels read it: the only array, or offsets.
class NamedElements {
 public:
  NamedElements(Encoder& encoder, std::vector<IndexedAxis> axes, const Shape& places);
  NamedElements(const NamedElements&) = delete;

  Indices indices;
  Strides strides;  // of the indices or offsets, over the places

 private:
  std::vector<array> offsets_;  // at most one
};

// The axes of `a` that indices of slices name; `function` is the public one, for errors.
std::vector<IndexedAxis> axes_of_slices(const char* function, std::span<const int> axes,
                                        std::span<const array> indices, const array& a,
                                        const Shape& slice);

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
