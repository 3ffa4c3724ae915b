// Copies that a primitive makes while it is evaluated.
#pragma once

#include <functional>

#include <holdfast/allocator.h>

#include "mlx/backend/common/utils.h"

namespace holdfast {

// What is known of the layouts: one element for all; both without gaps and alike; a dense
// destination; nothing.
enum class CopyType { Scalar, Vector, General, GeneralGeneral };

// Gives `out` memory, or that of `in` where it can be taken over: true then, and nothing is left to
// copy.
inline bool set_copy_output_data(
    const array& in, array& out, CopyType type,
    const std::function<allocator::Buffer(size_t)>& allocate = allocator::malloc) {
  if (type == CopyType::Vector) {
    if (in.dtype() == out.dtype() && is_donatable(in, out)) {
      out.copy_shared_buffer(in);
      return true;
    }
    out.set_data(allocate(in.data_size() * out.itemsize()), in.data_size(), in.strides(),
                 in.flags());
    return false;
  }
  out.set_data(allocate(out.nbytes()));
  return false;
}

// Inside eval_cpu: copies with conversion, as a command of the stream.
void copy_cpu(const array& source, array& destination, CopyType type, Stream stream);
// The same into memory that `destination` has already.
void copy_cpu_inplace(const array& source, array& destination, CopyType type, Stream stream);
// A row-major copy, which lives until the stream's commands that use it have completed.
array contiguous_copy_cpu(const array& source, Stream stream);

}  // namespace holdfast
