#include "kernels/plan/reduce.h"

#include <algorithm>
#include <bit>
#include <optional>

#include "kernels/metal/launch.h"
#include "kernels/metal/metal_backend.h"
#include "kernels/staging.h"
#include "kernels/views.h"

namespace holdfast::kernels::metal {
namespace {

#include "kernels/metal/support/reduce_parameters.h"

constexpr uint32_t reduce_threads = 256;
// All of these shape the result's bits: they depend on nothing but the shape.
constexpr int64_t blocks_per_thread = 4, rows_per_thread = 16;

bool is_order(ReduceOp op) {
  return op == ReduceOp::min || op == ReduceOp::max || op == ReduceOp::argmin ||
         op == ReduceOp::argmax;
}
bool is_arg(ReduceOp op) { return op == ReduceOp::argmin || op == ReduceOp::argmax; }

bool is_inexact(Dtype dtype) { return issubdtype(dtype, inexact); }

// The end of the entries' names: one entry serves all integers of a size where order decides.
std::string entry_of(ReduceOp op, Dtype dtype) {
  if (op == ReduceOp::all || op == ReduceOp::any) return "truth_" + std::to_string(dtype.size());
  if (is_order(op)) {
    return (is_arg(op) ? "arg_" : "extreme_") +
           (is_inexact(dtype) ? dtype_name(dtype.val()) : std::to_string(dtype.size()));
  }
  // Sums wrap: wide integers add the same bits, signed or not.
  if (dtype == bool_) dtype = uint8;
  if (dtype == int32) dtype = uint32;
  if (dtype == int64) dtype = uint64;
  return (op == ReduceOp::sum ? "sum_" : "prod_") + std::string(dtype_name(dtype.val()));
}

int64_t state_size(ReduceOp op, Dtype dtype) {
  if (op == ReduceOp::all || op == ReduceOp::any) return 4;
  if (is_order(op)) return is_arg(op) ? (dtype.size() == 8 ? 16 : 8) : dtype.size() == 8 ? 8 : 4;
  return dtype == complex64 ? 16 : is_inexact(dtype) || dtype.size() == 8 ? 8 : 4;
}

void set_order(Reduction& r, ReduceOp op, Dtype dtype) {
  const bool greatest = op == ReduceOp::max || op == ReduceOp::argmax;
  const uint64_t sign = uint64_t{1} << (8 * dtype.size() - 1);
  r.sign = greatest ? -1.0f : 1.0f;
  r.is_all = op == ReduceOp::all;
  if (is_order(op)) {
    r.mask = (issubdtype(dtype, signedinteger) ? sign : 0) ^ (greatest ? ~uint64_t{0} : 0);
  } else {
    r.mask = dtype == complex64 ? ~(sign | sign >> 32) : is_inexact(dtype) ? ~sign : ~uint64_t{0};
  }
}

uint32_t power_of_two(int64_t count, uint32_t most) {
  return std::min(most, static_cast<uint32_t>(std::bit_ceil(
                            static_cast<uint64_t>(std::clamp<int64_t>(count, 1, most)))));
}

bool are_multiples(const Dimensions& strides, int64_t of, bool but_last) {
  return std::all_of(strides.begin(), strides.end() - (but_last && !strides.empty()),
                     [&](int64_t stride) { return stride % of == 0; });
}

class Reducing {
 public:
  Reducing(Encoder& encoder, ReduceOp op, const array& in, array& out, ReducedLayout layout)
      : encoder_(encoder), op_(op), in_(in), out_(out), layout_(std::move(layout)) {
    set_order(r_, op, in.dtype());
    r_.outputs = fit(layout_.kept.size);
    r_.length = fit(layout_.reduced.size);
    r_.base = layout_.base;
    r_.kept_dimensions = layout_.kept.dimensions();
    r_.reduced_dimensions = layout_.reduced.dimensions();
    r_.chunks = 1;
    r_.widens = out.itemsize() > in.itemsize() && is_inexact(in.dtype());
    start_ = static_cast<int64_t>(in.offset()) / static_cast<int64_t>(in.itemsize()) + r_.base;
  }

  void rows() {
    const CollapsedLayout& reduced = layout_.reduced;
    const int64_t block = 16 / static_cast<int64_t>(in_.itemsize());
    const int64_t blocks = divide_up(reduced.size, block);
    r_.misalignment = fit(start_ & (block - 1));
    r_.vector = reduced.dimensions() == 0 || reduced.strides.back() == 1;
    if (reduced.dimensions() > 1) {
      r_.vector = r_.vector && start_ % block == 0 && reduced.shape.back() % block == 0 &&
                  are_multiples(reduced.strides, block, true) &&
                  are_multiples(layout_.kept.strides, block, false);
    }
    r_.threads = power_of_two(divide_up(blocks, blocks_per_thread), reduce_threads);
    r_.chunk = r_.length;
    constexpr int64_t least = reduce_threads * blocks_per_thread;
    if (layout_.kept.size < enough_groups && blocks >= 2 * least) {
      const int64_t wanted = divide_up(layout_.kept.size * blocks, 2 * enough_groups);
      r_.chunk = fit(divide_up(wanted, least) * least);
      r_.chunks = fit(divide_up(blocks, static_cast<int64_t>(r_.chunk)));
    }
    run("reduce_rows_", divide_up(layout_.kept.size * static_cast<int64_t>(r_.chunks),
                                  reduce_threads / r_.threads));
  }

  void columns() {
    const int64_t block = std::min<int64_t>(8, 16 / static_cast<int64_t>(in_.itemsize()));
    const int64_t columns = layout_.kept.shape.back(), rows = layout_.reduced.size;
    r_.vector = start_ % block == 0 && are_multiples(layout_.kept.strides, block, true) &&
                are_multiples(layout_.reduced.strides, block, false);
    r_.columns = fit(columns);
    r_.threads = power_of_two(divide_up(columns, block), 32);
    r_.column_blocks = fit(divide_up(columns, block * r_.threads));
    const int64_t groups = layout_.kept.size / columns * static_cast<int64_t>(r_.column_blocks);
    const int64_t least = reduce_threads / r_.threads * rows_per_thread;
    r_.chunk = r_.length;
    if (groups < enough_groups / 2 && rows >= 2 * least) {
      const int64_t wanted = divide_up(rows, divide_up(enough_groups, groups));
      r_.chunk = fit(divide_up(wanted, least) * least);
      r_.chunks = fit(divide_up(rows, static_cast<int64_t>(r_.chunk)));
    }
    run("reduce_columns_", groups * static_cast<int64_t>(r_.chunks));
  }

 private:
  void run(const char* form, int64_t groups) {
    std::optional<array> states;
    if (r_.chunks > 1) {
      states = make_temporary(encoder_,
                              static_cast<size_t>(static_cast<int64_t>(r_.outputs * r_.chunks) *
                                                  state_size(op_, in_.dtype())));
      r_.writes_states = true;
    }
    launch(form, in_, states ? *states : out_, groups);
    if (!states) return;
    r_.reads_states = true;
    r_.writes_states = false;
    r_.length = r_.chunks;
    r_.chunks = 1;
    r_.threads =
        power_of_two(divide_up(static_cast<int64_t>(r_.length), blocks_per_thread), reduce_threads);
    launch("reduce_rows_", *states, out_,
           divide_up(static_cast<int64_t>(r_.outputs), reduce_threads / r_.threads));
  }

  void launch(const char* form, const array& from, array& to, int64_t groups) {
    Launch launch(encoder_, "reduce", form + entry_of(op_, in_.dtype()));
    if (from.size() > 0)
      launch.input(from);
    else
      launch.list(Extents{});
    launch.with(output(to), r_, extents_of(layout_.kept), extents_of(layout_.reduced))
        .groups(groups, reduce_threads);
  }

  Encoder& encoder_;
  ReduceOp op_;
  const array& in_;
  array& out_;
  ReducedLayout layout_;
  int64_t start_;  // of the first element, counted from an address that is a multiple of 16
  Reduction r_{};
};

}  // namespace

void MetalBackend::reduce(Encoder& encoder, ReduceOp op, const std::vector<int>& axes,
                          const array& in, array& out) {
  encoder.allocate(out);
  if (out.size() == 0) return;
  ReducedLayout layout = reduced_layout(op, span_of(in.shape()), span_of(in.strides()), axes);
  const bool has_columns = layout.has_columns() && layout.kept.strides.back() == 1;
  auto is_large = [](const CollapsedLayout& part) {
    return part.dimensions() > 1 && part.size > most_small_elements;
  };
  if ((has_columns && op == ReduceOp::prod) || is_large(layout.kept) || is_large(layout.reduced)) {
    const array view = with_axes(in, axes_with_last(in.ndim(), axes));
    array dense(view.shape(), in.dtype(), nullptr, {});
    encode_copy(encoder, view, dense);
    ReducedLayout rows{0, {layout.kept}, {layout.reduced}};
    for (CollapsedLayout* part : {&rows.kept, &rows.reduced}) {
      const int64_t stride = part == &rows.kept ? layout.reduced.size : 1;
      *part = {part->size, {part->size}, {stride}};
    }
    return Reducing(encoder, op, dense, out, std::move(rows)).rows();
  }
  Reducing reducing(encoder, op, in, out, std::move(layout));
  has_columns ? reducing.columns() : reducing.rows();
}

}  // namespace holdfast::kernels::metal
