#include "kernels/plan/sort.h"

#include <algorithm>
#include <bit>
#include <optional>

#include "kernels/metal/launch.h"
#include "kernels/metal/metal_backend.h"
#include "kernels/plan/scan.h"
#include "kernels/staging.h"
#include "kernels/views.h"

namespace holdfast::kernels::metal {
namespace {

// As in sort.metal.
struct Sort {
  uint64_t rows, length, chunks;
  uint32_t padded, shift, infinity;
  bool is_signed, equal_zeros, has_indices, writes_keys;
};
struct Search {
  int64_t stride;
  uint64_t count, size;
  int32_t dimensions;
  bool right;
};

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

// Rows that are longer than a threadgroup sorts: a byte of the keys after the other, from the
// least significant one on.
class LongRows {
 public:
  LongRows(Encoder& encoder, Sort sort, Dtype dtype, bool is_arg)
      : encoder_(encoder), sort_(sort), dtype_(dtype), is_arg_(is_arg) {
    sort_.chunks =
        static_cast<uint64_t>(divide_up(static_cast<int64_t>(sort_.length), chunk_items));
  }

  void run(const array& in, array& out) {
    const auto size = static_cast<int64_t>(sort_.rows * sort_.length);
    const uint64_t count = static_cast<uint64_t>(size);
    const Dtype key = dtype_.size() == 8 ? uint64 : uint32;
    const std::string item = key == uint64 ? "ulong" : "uint";
    const int passes = static_cast<int>(dtype_.size());
    auto temporary = [&](Dtype of) {
      return make_temporary(encoder_, static_cast<size_t>(size) * of.size());
    };
    array keys = temporary(key), moved = temporary(key);
    // The last pass writes the indices to `out`.
    std::optional<array> other;
    if (is_arg_ && passes > 1) other = temporary(uint32);
    Launch(encoder_, "sort", "sort_keys_" + keys_of(dtype_))
        .input(in)
        .output(keys)
        .value(sort_)
        .value(count)
        .over(divide_up(size, 4));
    const int64_t groups = static_cast<int64_t>(sort_.rows * sort_.chunks);
    for (int pass = 0; pass < passes; ++pass) {
      const bool to_out = (passes - 1 - pass) % 2 == 0;
      sort_.shift = static_cast<uint32_t>(8 * pass);
      sort_.has_indices = pass > 0;
      sort_.writes_keys = !is_arg_ || pass + 1 < passes;
      const array places = count_and_sum(keys, item, groups);
      array* to = !is_arg_ ? &moved : to_out ? &out : &*other;
      array* from = !is_arg_ || !other ? to : to_out ? &*other : &out;
      Launch(encoder_, "sort", (is_arg_ ? "sort_move_arg_" : "sort_move_") + item)
          .input(keys)
          .output(moved)
          .output(*from)
          .output(*to)
          .input(places)
          .value(sort_)
          .groups(groups, 256);
      std::swap(keys, moved);
    }
    if (is_arg_) return;
    Launch(encoder_, "sort", "sort_values_" + keys_of(dtype_))
        .input(keys)
        .output(out)
        .value(sort_)
        .value(count)
        .over(divide_up(size, 4));
  }

 private:
  // Where the items of each byte and chunk go, in their row.
  array count_and_sum(const array& keys, const std::string& item, int64_t groups) {
    const auto rows = static_cast<ShapeElem>(sort_.rows);
    array counts({rows, static_cast<ShapeElem>(radix * static_cast<int64_t>(sort_.chunks))}, uint32,
                 nullptr, {});
    encoder_.allocate(counts);
    Launch(encoder_, "sort", "sort_count_" + item)
        .input(keys)
        .output(counts)
        .value(sort_)
        .groups(groups, 256);
    array places(counts.shape(), uint32, nullptr, {});
    MetalBackend::get().scan(encoder_, {ScanOp::sum, 1, false, false}, counts, places);
    return places;
  }

  Encoder& encoder_;
  Sort sort_;
  Dtype dtype_;
  bool is_arg_;
};

}  // namespace

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
  sort.length = static_cast<uint64_t>(length);
  if (length > sorted_together)
    return LongRows(encoder, sort, in.dtype(), kind.is_arg).run(from, out);
  sort.padded = static_cast<uint32_t>(std::bit_ceil(sort.length));
  Launch(encoder, "sort", (kind.is_arg ? "sort_rows_arg_" : "sort_rows_") + keys_of(in.dtype()))
      .input(from)
      .output(out)
      .value(sort)
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
  const Search search{sorted.size() == 0 ? 0 : sorted.strides(0),
                      static_cast<uint64_t>(sorted.shape(0)), static_cast<uint64_t>(layout.size),
                      layout.dimensions(), right};
  Launch launch(encoder, "sort", "search_sorted_" + keys_of(values.dtype()));
  // A sequence without elements has no memory, and is not read.
  launch.input(sorted.size() > 0 ? sorted : wanted).input(wanted).output(out).value(search);
  launch.value(sort_settings(values.dtype(), true)).list(extents_of(layout)).over(layout.size);
}

}  // namespace holdfast::kernels::metal
