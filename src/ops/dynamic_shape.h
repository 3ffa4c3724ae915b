// Shapes that are known only when a trace for any shape is called (compile and export with
// `shapeless`). Elsewhere each function gives what the ordinary op gives.
#pragma once

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

// For shapes that an op has computed from those of its arguments, and not the user has given: they
// would be wrong for others, and a trace for any shape is refused.
array reshape_here(const array& a, Shape shape, StreamOrDevice s);
array broadcast_here(const array& a, const Shape& shape, StreamOrDevice s);

}  // namespace holdfast
