// Memory for the outputs and temporaries of an op, on any device.
#pragma once

#include <cstddef>

#include <holdfast/array.h>
#include <holdfast/encoder.h>

namespace holdfast {

// Gives `out` (same dtype and number of elements) memory of its own, and encodes the copy of `in`'s
// elements into it, in row-major order.
void encode_copy(Encoder& encoder, const array& in, array& out);
// An evaluated array over memory that commands of this list use: a temporary.
array make_temporary(Encoder& encoder, size_t bytes);
// `in` itself when its elements are row-contiguous, else a temporary copy that is.
array make_dense(Encoder& encoder, const array& in);
// The same, but rows (the last axis) need only be contiguous by themselves.
array make_rows_dense(Encoder& encoder, const array& in);
// Lets `out` take over `in`'s memory when nothing else uses it and it is dense; else allocates.
void allocate_or_take(Encoder& encoder, const array& in, array& out);
// `out` holds the elements of `in`, row-contiguous, in memory that may be changed: `in`'s own when
// nothing else uses it. `outputs`: of the op, each of which has `in` as an input, once.
void copy_or_take(Encoder& encoder, const array& in, array& out, size_t outputs = 1);

}  // namespace holdfast
