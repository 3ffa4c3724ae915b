#pragma once

#include "mlx/backend/common/utils.h"

namespace holdfast {

// Inside the evaluation of a primitive: makes `out` a view of `in` with more elements.
void broadcast(const array& in, array& out);

}  // namespace holdfast
