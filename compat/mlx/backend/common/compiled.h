// What primitives ask of the operands of a fused group.
#pragma once

#include "mlx/backend/common/utils.h"
#include "mlx/primitives.h"

namespace holdfast {

inline bool is_scalar(const array& x) { return x.ndim() == 0; }

}  // namespace holdfast
