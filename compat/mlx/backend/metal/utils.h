// Names of dtypes in kernel names, and grids.
#pragma once

#include <string>

#include "mlx/backend/common/utils.h"
#include "mlx/backend/metal/device.h"

namespace holdfast {

// "float32", "bool_", …
std::string type_to_name(const Dtype& dtype);
inline std::string type_to_name(const array& a) { return type_to_name(a.dtype()); }

// A threadgroup of at most 2^power threads for a grid of these sizes: powers of two.
MTL::Size get_block_dims(int dim0, int dim1, int dim2, int power = 10);
MTL::Size get_2d_grid_dims(const Shape& shape, const Strides& strides);
inline size_t ceildiv(size_t n, size_t m) { return (n + m - 1) / m; }

}  // namespace holdfast
