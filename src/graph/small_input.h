// Small inputs of the library's own kernels go to a device by value, in the parameters of a
// dispatch: a scalar of the program never costs a copy command.
#pragma once

#include <holdfast/encoder.h>

namespace holdfast {

// How `a` is bound for reading: as bytes where only the host has them, at most 64 of them, and
// nothing in flight makes them; as an array else. The binding refers to what `a` holds.
KernelBinding input_by_value(Encoder& encoder, const array& a);

}  // namespace holdfast
