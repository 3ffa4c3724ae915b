// Shapes that are known only when a trace for any shape is called (compile and export with
// `shapeless`). Elsewhere each function gives what the ordinary op gives.
#pragma once

#include <limits>

#include "ops/support.h"

namespace holdfast {

// Must the shape of `a` be left open? Then no number may be taken from it.
bool has_open_shape(const array& a);

// For ops that compute with the sizes of `a`: std::invalid_argument when they are open.
void check_shape_known(const char* op, const array& a);

// `a` broadcast to the shape of `like`.
array broadcast_like(const array& a, const array& like, StreamOrDevice s);
// `a` broadcast with all of `others` and to `target`.
array broadcast_with(const array& a, const std::vector<array>& others, const Shape& target,
                     StreamOrDevice s);
// The sum over what was repeated when an array like `like` was broadcast to a's shape; `leading`
// dimensions in front of both are of both.
array sum_like(const array& a, const array& like, StreamOrDevice s, int leading = 0);
// `a` with the shape of `like`, which has as many elements.
array reshape_like(const array& a, const array& like, StreamOrDevice s);
// A recipe says for each dimension of the result: a number; -1, once, for what is left;
// same_as(i) for the size of dimension i of `a`.
constexpr ShapeElem same_as(int dimension) { return -2 - dimension; }
array reshape_by(const array& a, Shape recipe, StreamOrDevice s);

// A slice as it is given: start:stop:step of each axis, counted from the end where they are
// negative, and cut where they lie outside.
struct SliceNumbers {
  Shape start, stop, steps;
};
constexpr ShapeElem to_the_end = std::numeric_limits<ShapeElem>::max();
constexpr ShapeElem to_the_front = std::numeric_limits<ShapeElem>::min();  // with a negative step
// start:stop along one axis, and all of the others.
SliceNumbers cut_of(const array& a, int axis, ShapeElem start, ShapeElem stop);
// std::invalid_argument unless there is a start, a stop and a step that is not 0 for each axis.
void check_slice(const char* op, const array& a, const SliceNumbers& numbers);
// What `slice` and `slice_update` give; in a trace for any shape, what they give there.
array slice_by(const array& a, const SliceNumbers& numbers, StreamOrDevice s);
array slice_update_by(const array& src, const array& update, const SliceNumbers& numbers,
                      StreamOrDevice s);

// The matrices of `a`, the last two of whose dimensions are theirs, one after the other.
array as_one_batch(const array& a, StreamOrDevice s);
// Their numbers 0, 1, … in the shape of the other dimensions: uint32.
array numbers_of_matrices(const array& a, StreamOrDevice s);

// For shapes that an op has computed from those of its arguments, and not the user has given: they
// would be wrong for others, and a trace for any shape is refused.
array reshape_here(const array& a, Shape shape, StreamOrDevice s);
array broadcast_here(const array& a, const Shape& shape, StreamOrDevice s);

}  // namespace holdfast
