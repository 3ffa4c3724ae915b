#include <algorithm>

#include "kernels/metal/launch.h"
#include "kernels/metal/metal_backend.h"
#include "kernels/metal/walk.h"
#include "kernels/views.h"

namespace holdfast::kernels::metal {
namespace {

#include "kernels/metal/support/copy_parameters.h"

constexpr int64_t block_bytes = 16;

std::string with_bytes(const char* name, int64_t bytes) { return name + std::to_string(bytes); }

void copy_linear(Encoder& encoder, const array& in, array& out) {
  int64_t unit = block_bytes;
  while (!is_aligned(in, static_cast<size_t>(unit)) || !is_aligned(out, static_cast<size_t>(unit)))
    unit /= 2;
  const uint64_t bytes = out.nbytes();
  Launch(encoder, "copy", with_bytes("copy_linear_", unit))
      .with(in, output(out), bytes)
      .over(divide_up(static_cast<int64_t>(bytes), block_bytes));
}

void copy_strided(Encoder& encoder, const array& in, array& out, const CollapsedLayout& layout,
                  int64_t unit) {
  const int64_t per_thread = block_bytes / unit;
  const StridedCopy copy{fit(layout.size), layout.dimensions(), is_aligned(out, block_bytes),
                         layout.shape.back() % per_thread == 0};
  const char* name = layout.size <= most_small_elements ? "copy_strided_" : "copy_strided_large_";
  Launch(encoder, "copy", with_bytes(name, unit))
      .with(in, output(out), copy, extents_of(layout))
      .over(divide_up(layout.size, per_thread));
}

// The side of a tile of copy_transposed.
int64_t tile_side(int64_t unit) { return unit == 1 ? 128 : unit == 2 ? 64 : unit == 16 ? 16 : 32; }

// Tiles pay where both sides of the matrices are at least half a tile. False, and nothing encoded,
// for other layouts.
bool copy_transposed(Encoder& encoder, const array& in, array& out, const CollapsedLayout& layout,
                     int64_t unit) {
  const size_t last = layout.shape.size() - 1;
  const int64_t side = tile_side(unit);
  size_t near = last;  // the dimension whose elements are neighbours in the input
  for (size_t i = 0; i < last; ++i) {
    if (layout.strides[i] == 1) near = i;
  }
  if (near == last || layout.shape[near] < side / 2 || layout.shape[last] < side / 2) return false;
  constexpr int64_t most_batches = most_small_elements;
  TransposedCopy copy{fit(layout.shape[near]), fit(layout.shape[last]), 1, layout.strides[last], 0};
  Extents in_batch, out_batch;
  int64_t batches = 1, stride = 1;
  SmallVector<size_t, 6> batch_dimensions;
  for (size_t i = layout.shape.size(); i-- > 0;) {
    if (i == near) copy.row_stride = stride;
    if (i != near && i != last) {
      in_batch.push_back(extent_of(layout.shape[i], layout.strides[i]));
      out_batch.push_back(extent_of(layout.shape[i], stride));
      batches *= layout.shape[i];
    }
    stride *= layout.shape[i];
  }
  if (batches > most_batches || layout.shape[near] > most_small_elements ||
      layout.shape[last] > most_small_elements)
    return false;
  std::reverse(in_batch.begin(), in_batch.end());
  std::reverse(out_batch.begin(), out_batch.end());
  copy.dimensions = fit(in_batch.size());
  Launch(encoder, "copy", with_bytes("copy_transposed_", unit))
      .with(in, output(out), copy, in_batch, out_batch)
      .over({grid_length(encoder, divide_up(layout.shape[last], side), 256),
             grid_length(encoder, divide_up(layout.shape[near], side), 1),
             grid_length(encoder, batches, 1)},
            {256});
  return true;
}

}  // namespace

void MetalBackend::copy(Encoder& encoder, const array& in, array& out) {
  CollapsedLayout layout = collapse(span_of(in.shape()), span_of(in.strides()));
  if (layout.is_dense()) return copy_linear(encoder, in, out);
  // Neighbours are copied together, in units of up to 16 bytes.
  JointLayout joint{layout.size, layout.shape, {}};
  joint.strides.push_back(layout.strides);
  const int64_t unit = join_units(joint, static_cast<int64_t>(in.itemsize()),
                                  {std::min(alignment_of(in), alignment_of(out))});
  layout = joint.view(0);
  if (layout.is_dense()) return copy_linear(encoder, in, out);
  if (!copy_transposed(encoder, in, out, layout, unit))
    copy_strided(encoder, in, out, layout, unit);
}

}  // namespace holdfast::kernels::metal
