#include "kernels/plan/indexing.h"

#include "base/text.h"
#include "kernels/metal/indexed.h"
#include "kernels/metal/metal_backend.h"
#include "kernels/staging.h"
#include "kernels/views.h"

namespace holdfast::kernels::metal {
namespace {

// `first`, then `second`, and so on.
template <typename List>
List joined(std::initializer_list<List> parts) {
  List all;
  for (const List& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}
Strides zeros(size_t count) { return Strides(count, 0); }

// What a list says of the dimensions [begin, end) of an array.
template <typename List>
List range_of(const List& list, size_t begin, size_t end) {
  return List(list.begin() + static_cast<int64_t>(begin), list.begin() + static_cast<int64_t>(end));
}

// Which elements the indices name, as kernels read it: the only array of indices, or offsets.
class NamedElements {
 public:
  NamedElements(Encoder& encoder, std::vector<IndexedAxis> axes, const Shape& places)
      : strides(zeros(places.size())) {
    if (axes.empty()) return;
    if (axes.size() == 1 && is_read_directly(axes[0].indices->dtype())) {
      const array& index = *axes[0].indices;
      indices = Indices(std::move(axes[0]));
      strides = broadcast_strides(index.shape(), index.strides(), places);
      return;
    }
    offsets_.push_back(offsets_of_indices(encoder, axes, places));
    indices.axis.indices = &offsets_[0];
    indices.are_offsets = true;
    for (const IndexedAxis& axis : axes) indices.axis.stride |= axis.stride;
    strides = offsets_[0].strides();
  }
  NamedElements(const NamedElements&) = delete;

  Indices indices;
  Strides strides;  // of the indices or offsets, over the places

 private:
  std::vector<array> offsets_;  // at most one
};

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
              joined({range_of(in.strides(), 0, at), zeros(index.ndim()),
                      range_of(in.strides(), at + 1, in.ndim())}),
              joined({zeros(at), named.strides, zeros(inner)}), in, out);
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

// The axes of slices of `a`, of shape `slice`.
std::vector<IndexedAxis> axes_of_slices(const char* function, std::span<const int> axes,
                                        std::span<const array> indices, const array& a,
                                        const Shape& slice) {
  std::vector<IndexedAxis> list;
  for (size_t k = 0; k < axes.size(); ++k) {
    const int64_t size = a.shape(axes[k]);
    list.push_back({&indices[k], size, size - slice[static_cast<size_t>(axes[k])],
                    a.strides(axes[k]),
                    text("[", function, "] index {} at position {} leaves axis ", axes[k],
                         " of shape ", a.shape()),
                    element_count(span_of(slice))});
  }
  return list;
}

void gather_slices(Encoder& encoder, std::span<const int> axes, const array& in,
                   std::span<const array> indices, array& out) {
  const size_t split = out.ndim() - in.ndim();
  const Shape places = range_of(out.shape(), 0, split);
  const Shape slice = range_of(out.shape(), split, out.ndim());
  const NamedElements named(encoder, axes_of_slices("gather", axes, indices, in, slice), places);
  gather_over(encoder, named.indices, joined({zeros(split), in.strides()}),
              joined({named.strides, zeros(in.ndim())}), in, out);
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
