#include "kernels/metal/encode/rows.h"

#include <algorithm>
#include <bit>

#include "kernels/staging.h"
#include "kernels/views.h"

namespace holdfast::kernels::metal {
namespace {

constexpr int64_t held_elements = 16, most_held = 16384;
constexpr int64_t least_blocks = 256 * 4;  // of a chunk of a long row

}  // namespace

CollapsedLayout row_starts(const array& in) {
  const size_t outer = in.ndim() - 1;
  return collapse(span_of(in.shape()).first(outer), span_of(in.strides()).first(outer));
}

array make_rows_walkable(Encoder& encoder, const array& in) {
  const CollapsedLayout starts = row_starts(in);
  const bool is_walkable = starts.dimensions() <= 1 || starts.size <= most_small_elements;
  return is_walkable ? make_rows_dense(encoder, in) : make_dense(encoder, in);
}

RowLaunch::RowLaunch(const array& in, const array& out, const CollapsedLayout& layout,
                     int64_t length) {
  const int64_t item = static_cast<int64_t>(in.itemsize()), per_block = 16 / item;
  extents_ = extents_of(layout);
  rows_.count = fit(layout.size);
  rows_.length = fit(length);
  rows_.dimensions = layout.dimensions();
  auto misalignment = [&](const array& a) {
    return static_cast<uint32_t>(static_cast<int64_t>(a.offset()) / item % per_block);
  };
  rows_.in_misalignment = misalignment(in);
  rows_.out_misalignment = misalignment(out);
  if (length <= most_held) {
    const auto held = static_cast<uint64_t>(divide_up(length, held_elements));
    rows_.threads = fit(std::bit_ceil(held));
    threadgroup_ = std::max(rows_.threads, threadgroup_);
    groups_ = divide_up(layout.size, threadgroup_ / rows_.threads);
    return;
  }
  const int64_t blocks = divide_up(length, per_block);
  const int64_t wanted = divide_up(layout.size * blocks, enough_groups);
  rows_.threads = threadgroup_;
  rows_.chunk = fit(divide_up(std::max(wanted, least_blocks), 256) * 256);
  rows_.chunks = fit(divide_up(blocks, static_cast<int64_t>(rows_.chunk)));
  groups_ = layout.size * static_cast<int64_t>(rows_.chunks);
}

}  // namespace holdfast::kernels::metal
