// Errors of encoding, with the op's name.
#pragma once

#include <holdfast/primitive.h>

namespace holdfast {

// Rethrows the exception being handled, of the same type where it is a standard one, with "[op] "
// before its text unless it starts with a name already.
[[noreturn]] void rethrow_with_op(const char* op);

// The primitive's name as a string that outlives it.
const char* literal_name(const Primitive& primitive);

}  // namespace holdfast
