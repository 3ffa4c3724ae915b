#include "kernels/plan/scan.h"

#include <algorithm>
#include <bit>

#include "kernels/metal/encode/rows.h"
#include "kernels/metal/metal_backend.h"
#include "kernels/staging.h"

namespace holdfast::kernels::metal {
namespace {

#include "kernels/metal/support/scan_parameters.h"

// Columns are cut into chunks below so many threads.
constexpr int64_t enough_threads = 128 << 10, least_rows = 64, least_scanned_blocks = 256 * 4;

// Of 0 and 1 the product is the smaller one, and its identity is the largest bool.
ScanOp op_of(const ScanKind& kind, Dtype dtype) {
  return kind.op == ScanOp::min && dtype == bool_ ? ScanOp::prod : kind.op;
}

std::string scan_name(ScanOp op) {
  return op == ScanOp::sum           ? "sum_"
         : op == ScanOp::prod        ? "prod_"
         : op == ScanOp::log_add_exp ? "log_"
                                     : "extreme_";
}

// Integers by size: sums wrap, and masks make the order.
std::string type_name(Dtype dtype) {
  return issubdtype(dtype, inexact) ? dtype_name(dtype.val()) : std::to_string(dtype.size());
}
std::string state_name(Dtype dtype) {
  if (issubdtype(dtype, inexact)) return dtype == complex64 ? "float2" : "float";
  return dtype.size() == 8 ? "ulong" : "uint";
}

Scan settings(const ScanKind& kind, Dtype dtype, int64_t inner) {
  Scan scan{};
  scan.inner = fit(inner);
  scan.reverse = kind.reverse;
  scan.inclusive = kind.inclusive;
  scan.sign = kind.op == ScanOp::max ? -1.0f : 1.0f;
  const uint64_t sign = uint64_t{1} << (8 * dtype.size() - 1);
  scan.mask =
      (issubdtype(dtype, signedinteger) ? sign : 0) ^ (kind.op == ScanOp::max ? ~uint64_t{0} : 0);
  return scan;
}

int64_t inner_size(const array& a, int axis) {
  int64_t inner = 1;
  for (int i = axis + 1; i < static_cast<int>(a.ndim()); ++i) inner *= a.shape(i);
  return inner;
}

}  // namespace

void MetalBackend::scan(Encoder& encoder, const ScanKind& kind, const array& in, array& out) {
  const bool is_dense = in.flags().row_contiguous;
  if (is_dense) {
    allocate_or_take(encoder, in, out);
  } else {
    encode_copy(encoder, in, out);
  }
  if (out.size() == 0) return;
  const array& from = is_dense ? in : out;
  const int64_t length = out.shape(kind.axis), inner = inner_size(out, kind.axis);
  const auto item = static_cast<int64_t>(out.itemsize()), size = static_cast<int64_t>(out.size());
  const int64_t lines = size / length, block = 16 / item;
  Scan scan = settings(kind, out.dtype(), inner);
  RowLaunch::Rows rows{};
  rows.count = fit(lines / inner);
  rows.length = fit(length);
  rows.chunks = 1;
  rows.in_misalignment = fit(static_cast<int64_t>(from.offset()) / item % block);
  int64_t threads, width = 1;
  if (inner == 1) {
    // Both sides are aligned alike, or are read and written by the element.
    if (!is_aligned(out, 16) || !is_aligned(from, 16)) rows.in_misalignment = 1;
    const int64_t blocks = divide_up(length, block);
    rows.threads =
        static_cast<uint32_t>(std::bit_ceil(static_cast<uint64_t>(std::min<int64_t>(blocks, 256))));
    rows.chunk = fit(blocks);
    if (lines < enough_groups && blocks >= 2 * least_scanned_blocks) {
      const int64_t wanted =
          std::max(least_scanned_blocks, divide_up(lines * blocks, enough_groups));
      rows.chunk = fit(divide_up(wanted, 256) * 256);
      rows.chunks = fit(divide_up(blocks, static_cast<int64_t>(rows.chunk)));
    }
    threads = divide_up(lines * static_cast<int64_t>(rows.chunks), 256 / rows.threads);
  } else {
    width = std::min<int64_t>(block, 8);
    scan.vector = inner % width == 0 && is_aligned(from, 16) && is_aligned(out, 16);
    const int64_t blocks = lines / inner * divide_up(inner, width);
    scan.chunk = fit(length);
    if (blocks < enough_threads && length >= 2 * least_rows) {
      const int64_t wanted = divide_up(length, divide_up(enough_threads, blocks));
      scan.chunk = fit(std::max(least_rows, wanted));
      rows.chunks = fit(divide_up(length, static_cast<int64_t>(scan.chunk)));
    }
    threads = blocks * static_cast<int64_t>(rows.chunks);
  }
  const std::string name = scan_name(op_of(kind, out.dtype()));
  // One chunk has no state, but the kernel an argument.
  const size_t states_count = rows.chunks > 1 ? static_cast<size_t>(lines) * rows.chunks : 1;
  array states = make_temporary(encoder, states_count * static_cast<size_t>(item == 8 ? 8 : 4));
  auto run = [&] {
    Launch launch(encoder, "scan",
                  (inner == 1 ? "scan_lines_" : "scan_columns_") + name + type_name(out.dtype()));
    launch.with(from, output(out), output(states), scan, rows);
    inner == 1 ? launch.groups(threads, 256) : launch.over(threads);
  };
  if (rows.chunks > 1) {
    scan.totals = true;
    run();
    RowLaunch::Rows chunks{};
    chunks.count = fit(lines);
    chunks.length = rows.chunks;
    Launch(encoder, "scan", "scan_states_" + name + state_name(out.dtype()))
        .with(output(states), scan, chunks)
        .groups(lines, 256);
    scan.totals = false;
    scan.carries = true;
  }
  run();
}

void MetalBackend::recurrence(Encoder& encoder, int axis, bool reverse, const array& factors,
                              const array& terms, array& out) {
  encoder.allocate(out);
  if (out.size() == 0) return;
  const array dense_factors = make_dense(encoder, factors);
  const array dense_terms = make_dense(encoder, terms);
  Scan scan{};
  scan.inner = fit(inner_size(out, axis));
  scan.reverse = reverse;
  RowLaunch::Rows rows{};
  rows.length = fit(out.shape(axis));
  rows.count = out.size() / rows.length;
  Launch(encoder, "scan", std::string("recurrence_") + dtype_name(out.dtype().val()))
      .with(dense_factors, dense_terms, output(out), scan, rows)
      .over(static_cast<int64_t>(rows.count), 64);
}

}  // namespace holdfast::kernels::metal
