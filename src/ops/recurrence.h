// h[i] = factors[i] * h[i - 1] + terms[i] along an axis: what the derivatives of scans are made of.
#pragma once

#include "ops/support.h"

namespace holdfast {

// h[0] = terms[0]; the first factor does not count. With `reverse`, from the end. Both arrays have
// one shape and one floating or complex dtype.
array linear_recurrence(const array& factors, const array& terms, int axis, bool reverse,
                        StreamOrDevice s);

}  // namespace holdfast
