#include <algorithm>

#include "kernels/metal/encode/rows.h"
#include "kernels/metal/metal_backend.h"
#include "kernels/staging.h"
#include "kernels/views.h"

namespace holdfast::kernels::metal {
namespace {

void softmax_rows(Encoder& encoder, const RowLaunch& rows, const array& in, array& out) {
  const std::string dtype = dtype_name(in.dtype().val());
  if (!rows.is_long()) {
    Launch(encoder, "softmax", "softmax_rows_" + dtype)
        .with(in, output(out), rows.rows(), rows.extents())
        .groups(rows.groups(), rows.threadgroup());
    return;
  }
  array states = make_temporary(encoder, static_cast<size_t>(rows.states()) * 8);
  Launch(encoder, "softmax", "softmax_states_" + dtype)
      .with(in, output(states), rows.rows(), rows.extents())
      .groups(rows.groups(), rows.threadgroup());
  Launch(encoder, "softmax", "softmax_write_" + dtype)
      .with(in, output(out), states, rows.rows(), rows.extents())
      .groups(rows.groups(), rows.threadgroup());
}

}  // namespace

void MetalBackend::softmax(Encoder& encoder, const std::vector<int>& axes, const array& in,
                           array& out) {
  if (out.size() == 0) return encoder.allocate(out);
  const int last = static_cast<int>(in.ndim()) - 1;
  if (axes.size() == 1 && axes[0] == last) {
    const array x = make_rows_walkable(encoder, in);
    in.flags().row_contiguous ? allocate_or_take(encoder, in, out) : encoder.allocate(out);
    return softmax_rows(encoder, {x, out}, x, out);
  }
  // The axes go last, in memory of their own, where the softmax is taken, and back.
  const std::vector<int> order = axes_with_last(in.ndim(), axes);
  std::vector<int> back(in.ndim());
  for (size_t i = 0; i < order.size(); ++i)
    back[static_cast<size_t>(order[i])] = static_cast<int>(i);
  int64_t length = 1;
  for (int axis : axes) length *= in.shape(axis);
  const auto count = static_cast<int64_t>(in.size()) / length;
  const CollapsedLayout starts{count, {count}, {length}};
  const array view = with_axes(in, order);
  if (std::is_sorted(order.begin(), order.end())) {
    encode_copy(encoder, view, out);
    return softmax_rows(encoder, {out, out, starts, length}, out, out);
  }
  array dense(view.shape(), in.dtype(), nullptr, {});
  encode_copy(encoder, view, dense);
  softmax_rows(encoder, {dense, dense, starts, length}, dense, dense);
  encode_copy(encoder, with_axes(dense, back), out);
}

}  // namespace holdfast::kernels::metal
