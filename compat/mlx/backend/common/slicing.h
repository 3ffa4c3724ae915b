// Slices as views, inside the evaluation of a primitive.
#pragma once

#include "mlx/backend/common/utils.h"

namespace holdfast {

// {the first element, the strides} of a slice.
std::tuple<int64_t, Strides> prepare_slice(const array& in, const Shape& start,
                                           const Shape& strides);
// Makes `out` a view of `in`.
void shared_buffer_slice(const array& in, const Strides& out_strides, int64_t offset,
                         size_t data_size, array& out);

}  // namespace holdfast
