// Which layouts the operands of an element-wise primitive have, and the memory of its output.
#pragma once

#include <functional>

#include <holdfast/allocator.h>

#include "mlx/backend/common/utils.h"

namespace holdfast {

// A vector has no gaps; two vectors have the same layout.
enum class BinaryOpType { ScalarScalar, ScalarVector, VectorScalar, VectorVector, General };

inline BinaryOpType get_binary_op_type(const array& a, const array& b) {
  const bool a_is_scalar = a.data_size() == 1, b_is_scalar = b.data_size() == 1;
  if (a_is_scalar && b_is_scalar) return BinaryOpType::ScalarScalar;
  if (a_is_scalar && b.flags().contiguous) return BinaryOpType::ScalarVector;
  if (b_is_scalar && a.flags().contiguous) return BinaryOpType::VectorScalar;
  if ((a.flags().row_contiguous && b.flags().row_contiguous) ||
      (a.flags().col_contiguous && b.flags().col_contiguous)) {
    return BinaryOpType::VectorVector;
  }
  return BinaryOpType::General;
}

// In the memory of an operand of the same layout where nothing else needs it.
inline void set_binary_op_output_data(
    const array& a, const array& b, array& out, BinaryOpType type,
    const std::function<allocator::Buffer(size_t)>& allocate = allocator::malloc) {
  const bool a_decides = type != BinaryOpType::ScalarVector;
  const bool b_decides = type == BinaryOpType::ScalarVector || type == BinaryOpType::VectorVector;
  if (type == BinaryOpType::General) {
    // Every element is read before it is written only where the layout is the output's.
    for (const array* operand : {&a, &b}) {
      if (is_donatable(*operand, out) && operand->flags().row_contiguous &&
          operand->size() == out.size()) {
        return out.copy_shared_buffer(*operand);
      }
    }
    return out.set_data(allocate(out.nbytes()));
  }
  if (a_decides && is_donatable(a, out)) return out.copy_shared_buffer(a);
  if (b_decides && is_donatable(b, out)) return out.copy_shared_buffer(b);
  const array& shape_of = a_decides ? a : b;
  out.set_data(allocate(shape_of.data_size() * out.itemsize()), shape_of.data_size(),
               shape_of.strides(), shape_of.flags());
}

}  // namespace holdfast
