#pragma once

#include <holdfast/ops.h>

#include "mlx/core.h"
#include "mlx/utils.h"

namespace mlx::core {

// Not public in MLX, but some programs declare it themselves; beside it the public ones have to
// stay visible.
using ::holdfast::astype;
array astype(array a, Dtype dtype, bool force_copy, StreamOrDevice s);

}  // namespace mlx::core
