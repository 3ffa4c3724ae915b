#include "kernels/staging.h"

#include <holdfast/utils.h>

#include "graph/encoder_scope.h"
#include "graph/node.h"
#include "kernels/backend.h"
#include "kernels/views.h"

namespace holdfast {

void encode_copy(Encoder& encoder, const array& in, array& out) {
  encoder.allocate(out);
  if (out.size() > 0) kernels::backend_of(encoder).copy(encoder, in, out);
}

array make_temporary(Encoder& encoder, size_t bytes) {
  // A dimension ends at 2^31; a temporary need not.
  constexpr size_t row = 1 << 20;
  Shape shape = bytes < row ? Shape{static_cast<ShapeElem>(bytes)}
                            : Shape{safe_cast((bytes + row - 1) / row, "temporary"), row};
  array temporary(std::move(shape), uint8, nullptr, {});
  bytes = temporary.nbytes();
  temporary.set_data(encoder.allocate(bytes));
  return temporary;
}

array make_dense(Encoder& encoder, const array& in) {
  if (in.flags().row_contiguous) return in;
  array dense(in.shape(), in.dtype(), nullptr, {});
  encode_copy(encoder, in, dense);
  return dense;
}

array make_rows_dense(Encoder& encoder, const array& in) {
  if (in.ndim() == 0 || in.strides(-1) == 1 || in.shape(-1) <= 1) return in;
  return make_dense(encoder, in);
}

void allocate_or_take(Encoder& encoder, const array& in, array& out) {
  if (in.is_donatable() && in.flags().row_contiguous && in.itemsize() == out.itemsize() &&
      in.size() == out.size()) {
    share(in, out, row_major_strides(out.shape()));
  } else {
    encoder.allocate(out);
  }
}

void copy_or_take(Encoder& encoder, const array& in, array& out, size_t outputs) {
  const bool is_ours =
      EncoderScope::allows_donation() &&
      detail::is_donatable_by(in, static_cast<uint32_t>(outputs), EncoderScope::current());
  if (is_ours && in.flags().row_contiguous) {
    share(in, out, row_major_strides(out.shape()));
  } else {
    encode_copy(encoder, in, out);
  }
}

}  // namespace holdfast
