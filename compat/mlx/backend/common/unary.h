// The memory of the output of an element-wise primitive.
#pragma once

#include <functional>

#include <holdfast/allocator.h>

#include "mlx/backend/common/utils.h"

namespace holdfast {

// In the layout of the input where that has no gaps, and in its memory where nothing else needs it.
inline void set_unary_output_data(
    const array& in, array& out,
    const std::function<allocator::Buffer(size_t)>& allocate = allocator::malloc) {
  if (!in.flags().contiguous) {
    out.set_data(allocate(out.nbytes()));
  } else if (is_donatable(in, out)) {
    out.copy_shared_buffer(in);
  } else {
    out.set_data(allocate(in.data_size() * out.itemsize()), in.data_size(), in.strides(),
                 in.flags());
  }
}

}  // namespace holdfast
