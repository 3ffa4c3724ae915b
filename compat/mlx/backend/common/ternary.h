// Which layouts three operands of an element-wise primitive have, and the memory of its output.
#pragma once

#include <functional>

#include <holdfast/allocator.h>

#include "mlx/backend/common/utils.h"

namespace holdfast {

enum class TernaryOpType {
  ScalarScalarScalar,
  VectorVectorVector,
  VectorVectorScalar,
  VectorScalarVector,
  General
};

inline TernaryOpType get_ternary_op_type(const array& a, const array& b, const array& c) {
  auto alike = [](const array& x, const array& y) {
    return (x.flags().row_contiguous && y.flags().row_contiguous) ||
           (x.flags().col_contiguous && y.flags().col_contiguous);
  };
  const bool b_is_scalar = b.data_size() == 1, c_is_scalar = c.data_size() == 1;
  if (a.data_size() == 1 && b_is_scalar && c_is_scalar) return TernaryOpType::ScalarScalarScalar;
  if (alike(a, b) && alike(b, c)) return TernaryOpType::VectorVectorVector;
  if (c_is_scalar && alike(a, b)) return TernaryOpType::VectorVectorScalar;
  if (b_is_scalar && alike(a, c)) return TernaryOpType::VectorScalarVector;
  return TernaryOpType::General;
}

inline void set_ternary_op_output_data(
    const array& a, const array& b, const array& c, array& out, TernaryOpType type,
    const std::function<allocator::Buffer(size_t)>& allocate = allocator::malloc) {
  for (const array* operand : {&a, &b, &c}) {
    const bool fits = type == TernaryOpType::General ? operand->flags().row_contiguous
                                                     : operand->data_size() == a.data_size();
    if (fits && operand->size() == out.size() && is_donatable(*operand, out)) {
      return out.copy_shared_buffer(*operand);
    }
  }
  if (type == TernaryOpType::General) return out.set_data(allocate(out.nbytes()));
  out.set_data(allocate(a.data_size() * out.itemsize()), a.data_size(), a.strides(), a.flags());
}

}  // namespace holdfast
