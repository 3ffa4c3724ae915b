#include "kernels/plan/sort.h"

#include <algorithm>
#include <bit>
#include <optional>

#include "kernels/metal/launch.h"
#include "kernels/metal/metal_backend.h"
#include "kernels/metal/radix_sort.h"
#include "kernels/plan/scan.h"
#include "kernels/staging.h"
#include "kernels/views.h"

namespace holdfast::kernels::metal {
namespace {

#include "kernels/metal/support/sort_parameters.h"

constexpr int64_t sorted_together = 2048, chunk_items = 4096, radix = 256;

Sort sort_settings(Dtype dtype, bool equal_zeros) {
  Sort sort{};
  sort.is_signed = issubdtype(dtype, signedinteger);
  sort.infinity = dtype == float16 ? 0x7c00 : 0x7f80;
  sort.equal_zeros = equal_zeros;
  return sort;
}

std::string keys_of(Dtype dtype) {
  if (dtype == complex64) return "complex";
  if (dtype == float32) return "float";
  return issubdtype(dtype, inexact) ? "half" : std::to_string(dtype.size());
}

// Sorts the rows of `keys` (unsigned, of 4 or 8 bytes), a byte after the other, from the least
// significant one on; returns the sorted keys, of whose last pass only the positions are written
// where `keeps_keys` is false. `positions`, if given, are where each was in its row.
array sort_by_bytes(Encoder& encoder, Sort sort, const array& keys, size_t item, int passes,
                    bool keeps_keys, array* positions) {
  const auto rows = static_cast<int64_t>(sort.rows);
  const auto chunks = divide_up(static_cast<int64_t>(sort.length), chunk_items);
  const auto size = static_cast<size_t>(sort.rows * sort.length);
  sort.chunks = fit(chunks);
  const std::string name = item == 8 ? "ulong" : "uint";
  std::optional<array> moved[2], other;
  // The last pass writes the positions to their array.
  if (positions && passes > 1) other = make_temporary(encoder, size * sizeof(uint32_t));
  const array* from = &keys;
  for (int pass = 0; pass < passes; ++pass) {
    std::optional<array>& to = moved[pass % 2];
    if (!to) to = make_temporary(encoder, size * item);
    sort.shift = fit(8 * pass);
    sort.has_indices = pass > 0;
    sort.writes_keys = keeps_keys || pass + 1 < passes;
    array counts({static_cast<ShapeElem>(rows), static_cast<ShapeElem>(radix * chunks)}, uint32,
                 nullptr, {});
    encoder.allocate(counts);
    Launch(encoder, "sort", "sort_count_" + name)
        .with(*from, output(counts), sort)
        .groups(rows * chunks, 256);
    // Where the items of each byte and chunk go, in their row.
    array places(counts.shape(), uint32, nullptr, {});
    MetalBackend::get().scan(encoder, {ScanOp::sum, 1, false, false}, counts, places);
    const bool is_final = (passes - 1 - pass) % 2 == 0;
    array* new_positions = !positions ? &*to : is_final ? positions : &*other;
    array* old_positions = !other ? new_positions : is_final ? &*other : positions;
    Launch(encoder, "sort", (positions ? "sort_move_arg_" : "sort_move_") + name)
        .with(*from, output(*to), output(*old_positions), output(*new_positions), places, sort)
        .groups(rows * chunks, 256);
    from = &*to;
  }
  return *from;
}

// Rows that are longer than a threadgroup sorts.
void sort_long_rows(Encoder& encoder, const Sort& sort, bool is_arg, const array& in, array& out) {
  const uint64_t count = sort.rows * sort.length;
  const int64_t threads = divide_up(static_cast<int64_t>(count), int64_t{4});
  const size_t item = in.itemsize() == 8 ? 8 : 4;
  array keys = make_temporary(encoder, static_cast<size_t>(count) * item);
  auto convert = [&](const char* entry, const array& from, array& to) {
    Launch(encoder, "sort", entry + keys_of(in.dtype()))
        .with(from, output(to), sort, count)
        .over(threads);
  };
  convert("sort_keys_", in, keys);
  const array sorted = sort_by_bytes(encoder, sort, keys, item, static_cast<int>(in.itemsize()),
                                     !is_arg, is_arg ? &out : nullptr);
  if (!is_arg) convert("sort_values_", sorted, out);
}

}  // namespace

SortedNumbers sort_numbers(Encoder& encoder, const array& numbers, int64_t limit) {
  Sort sort{};
  sort.rows = 1;
  sort.length = numbers.size();
  const auto bits = std::bit_width(static_cast<uint64_t>(std::max<int64_t>(limit - 1, 1)));
  array positions(numbers.shape(), uint32, nullptr, {});
  encoder.allocate(positions);
  array sorted =
      sort_by_bytes(encoder, sort, numbers, 8, (static_cast<int>(bits) + 7) / 8, true, &positions);
  return {std::move(sorted), std::move(positions)};
}

// A partition is a sort, too.
void MetalBackend::sort(Encoder& encoder, const SortKind& kind, const array& in, array& out) {
  const array from = out.size() > 0 ? make_dense(encoder, in) : in;
  if (kind.is_arg || !in.flags().row_contiguous) {
    encoder.allocate(out);
  } else {
    allocate_or_take(encoder, in, out);
  }
  if (out.size() == 0) return;
  const int64_t length = out.shape(-1);
  Sort sort = sort_settings(in.dtype(), kind.is_arg);
  sort.rows = out.size() / static_cast<uint64_t>(length);
  sort.length = fit(length);
  if (length > sorted_together) return sort_long_rows(encoder, sort, kind.is_arg, from, out);
  sort.padded = fit(std::bit_ceil(sort.length));
  Launch(encoder, "sort", (kind.is_arg ? "sort_rows_arg_" : "sort_rows_") + keys_of(in.dtype()))
      .with(from, output(out), sort)
      .groups(divide_up(static_cast<int64_t>(sort.rows), sorted_together / sort.padded), 256);
}

void MetalBackend::search_sorted(Encoder& encoder, bool right, const array& sorted,
                                 const array& values, array& out) {
  encoder.allocate(out);
  if (out.size() == 0) return;
  CollapsedLayout layout = collapse(span_of(values.shape()), span_of(values.strides()));
  const bool is_large = layout.dimensions() > 1 && layout.size > most_small_elements;
  const array wanted = is_large ? make_dense(encoder, values) : values;
  if (is_large) layout = {layout.size, {layout.size}, {1}};
  const Search search{sorted.size() == 0 ? 0 : sorted.strides(0), fit(sorted.shape(0)),
                      fit(layout.size), layout.dimensions(), right};
  Launch launch(encoder, "sort", "search_sorted_" + keys_of(values.dtype()));
  // A sequence without elements has no memory, and is not read.
  launch.with(sorted.size() > 0 ? sorted : wanted, wanted, output(out), search);
  launch.with(sort_settings(values.dtype(), true), extents_of(layout)).over(layout.size);
}

}  // namespace holdfast::kernels::metal
