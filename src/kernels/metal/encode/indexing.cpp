#include "kernels/plan/indexing.h"

#include "base/text.h"
#include "kernels/metal/indexed.h"
#include "kernels/metal/metal_backend.h"
#include "kernels/staging.h"
#include "kernels/views.h"

namespace holdfast::kernels::metal {
namespace {

void gather_over(Encoder& encoder, const Indices& indices, const Strides& in_strides,
                 const Strides& index_strides, const array& in, array& out) {
  std::span<const int64_t> views[] = {span_of(in_strides), span_of(index_strides)};
  encode_gather(encoder, collapse_jointly(span_of(out.shape()), views), indices, in, out);
}

void take(Encoder& encoder, int axis, const array& in, const array& indices, array& out) {
  const array index = make_dense(encoder, indices);
  const int64_t size = in.shape(axis);
  const auto at = static_cast<size_t>(axis);
  const size_t inner = in.ndim() - at - 1;
  const NamedElements named(encoder,
                            {{&index, size, size - 1, in.strides(axis),
                              text("[take] index {} at position {} must be between ", -size,
                                   " and ", size - 1, " for axis ", axis),
                              0}},
                            index.shape());
  gather_over(encoder, named.indices,
              joined(joined(range_of(in.strides(), 0, at), no_strides(index.ndim())),
                     range_of(in.strides(), at + 1, in.ndim())),
              joined(joined(no_strides(at), named.strides), no_strides(inner)), in, out);
}

void take_along_axis(Encoder& encoder, int axis, const array& in, const array& indices,
                     array& out) {
  const int64_t size = in.shape(axis);
  Shape seen = in.shape();
  seen[static_cast<size_t>(axis)] = 1;
  Strides in_strides = broadcast_strides(seen, in.strides(), out.shape());
  in_strides[static_cast<size_t>(axis)] = 0;  // the index says where to go
  const NamedElements named(encoder,
                            {{&indices, size, size - 1, in.strides(axis),
                              text("[take_along_axis] index {} at position {} must be between ",
                                   -size, " and ", size - 1, " for axis ", axis)}},
                            out.shape());
  gather_over(encoder, named.indices, in_strides, named.strides, in, out);
}

void gather_slices(Encoder& encoder, std::span<const int> axes, const array& in,
                   std::span<const array> indices, array& out) {
  const size_t split = out.ndim() - in.ndim();
  const Shape places = range_of(out.shape(), 0, split);
  const Shape slice = range_of(out.shape(), split, out.ndim());
  const NamedElements named(encoder, axes_of_slices("gather", axes, indices, in, slice), places);
  gather_over(encoder, named.indices, joined(no_strides(split), in.strides()),
              joined(named.strides, no_strides(in.ndim())), in, out);
}

}  // namespace

void MetalBackend::gather(Encoder& encoder, const Indexing& indexing, const array& in,
                          std::span<const array> indices, array& out) {
  encoder.allocate(out);
  if (out.size() == 0) return;
  switch (indexing.kind) {
    case IndexKind::take:
      return take(encoder, indexing.axes[0], in, indices[0], out);
    case IndexKind::along_axis:
      return take_along_axis(encoder, indexing.axes[0], in, indices[0], out);
    case IndexKind::slices:
      return gather_slices(encoder, indexing.axes, in, indices, out);
  }
}

}  // namespace holdfast::kernels::metal
