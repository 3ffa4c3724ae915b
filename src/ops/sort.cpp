// Sorting, and what is found by sorting.
#include "kernels/cpu/sort.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "kernels/cpu/copy.h"
#include "ops/dynamic_shape.h"
#include "ops/inner.h"
#include "ops/support.h"

namespace holdfast {

namespace {

// Along the last axis; `kth` other than whole: a partition.
class Sort final : public Recorded<Sort, Single<Op>> {
 public:
  Sort(Stream stream, bool is_arg, int64_t kth = kernels::cpu::SortPlan::whole)
      : Recorded(stream), is_arg_(is_arg), kth_(kth) {}
  void encode(Encoder& encoder, const std::vector<array>& inputs,
              std::vector<array>& outputs) override;
  array pull_back(const array& input, const array& cotangent, const array&) override {
    if (input.size() == 0) return cotangent;
    array places = kth_ == kernels::cpu::SortPlan::whole
                       ? argsort(input, -1, stream())
                       : argpartition(input, static_cast<int>(kth_), -1, stream());
    return put_along_axis(zeros_like(input, stream()), places, cotangent, -1, stream());
  }
  std::shared_ptr<Primitive> with_leading_axis() override {
    return std::make_shared<Sort>(stream(), is_arg_, kth_);
  }
  const char* name() const override {
    if (kth_ != kernels::cpu::SortPlan::whole) return is_arg_ ? "ArgPartition" : "Partition";
    return is_arg_ ? "ArgSort" : "Sort";
  }
  static constexpr const char* recorded_as = "Sort";
  auto members() const { return std::tie(is_arg_, kth_); }
  std::vector<Shape> output_shapes(const std::vector<array>& inputs) override {
    if (kth_ != kernels::cpu::SortPlan::whole && kth_ >= inputs[0].shape(-1)) {
      throw std::invalid_argument(
          text("[partition] kth ", kth_, " is out of range for shape ", inputs[0].shape()));
    }
    return {inputs[0].shape()};
  }

 private:
  bool is_arg_;
  int64_t kth_;
};

void Sort::encode(Encoder& encoder, const std::vector<array>& inputs, std::vector<array>& outputs) {
  array& out = outputs[0];
  std::optional<array> dense;
  if (out.size() > 0 && !inputs[0].flags().row_contiguous) {
    dense.emplace(inputs[0].shape(), inputs[0].dtype(), nullptr, std::vector<array>{});
    encode_copy(encoder, inputs[0], *dense);
  }
  if (is_arg_) {
    encoder.allocate(out);
  } else if (dense) {
    share(*dense, out, dense->strides());
  } else {
    allocate_or_take(encoder, inputs[0], out);
  }
  if (out.size() == 0) return;
  const array& in = dense ? *dense : inputs[0];
  int64_t length = out.shape(-1);
  kernels::cpu::SortPlan plan(in.dtype(), static_cast<int64_t>(out.size()) / length, length,
                              is_arg_, kth_);
  std::optional<array> scratch;
  if (plan.scratch_bytes() > 0) scratch = make_temporary(encoder, plan.scratch_bytes());
  const void* source = in.data<char>();
  void* target = out.data<char>();
  void* memory = scratch ? scratch->data<char>() : nullptr;
  for (int64_t phase = 0; phase < plan.phases(); ++phase) {
    encoder.input(in);
    encoder.output(out);
    if (scratch) encoder.output(*scratch);
    encoder.native(name(), plan.tasks(phase), plan.work(phase), [=](int64_t begin, int64_t end) {
      for (int64_t task = begin; task < end; ++task) plan.run(phase, task, source, target, memory);
    });
  }
}

class SearchSorted final : public Recorded<SearchSorted, Op> {
 public:
  SearchSorted(Stream stream, bool right) : Recorded(stream), right_(right) {}
  void encode(Encoder& encoder, const std::vector<array>& inputs,
              std::vector<array>& outputs) override;
  std::pair<std::vector<array>, std::vector<int>> vmap_rule(const std::vector<array>& inputs,
                                                            const std::vector<int>& axes) override;
  std::vector<Shape> output_shapes(const std::vector<array>& inputs) override {
    return {inputs[1].shape()};
  }
  const char* name() const override { return "SearchSorted"; }
  auto members() const { return std::tie(right_); }

 private:
  bool right_;
};

void SearchSorted::encode(Encoder& encoder, const std::vector<array>& inputs,
                          std::vector<array>& outputs) {
  const array& sorted = inputs[0];
  const array& values = inputs[1];
  array& out = outputs[0];
  encoder.allocate(out);
  if (out.size() == 0) return;
  encoder.input(sorted);
  encoder.input(values);
  encoder.output(out);
  constexpr int64_t grain = 1 << 10;
  kernels::CollapsedLayout layout =
      kernels::collapse(span_of(values.shape()), span_of(values.strides()));
  const char* sequence = sorted.data<char>();
  const char* wanted = values.data<char>();
  uint32_t* target = out.data<uint32_t>();
  size_t item = values.itemsize();
  Dtype::Val dtype = values.dtype();
  encoder.native(name(), (layout.size + grain - 1) / grain, layout.size * 128,
                 [=, count = int64_t{sorted.shape(0)}, stride = sorted.strides(0), right = right_,
                  layout = std::move(layout)](int64_t begin, int64_t end) {
                   alignas(64) char block[grain * 8];
                   for (int64_t task = begin; task < end; ++task) {
                     int64_t first = task * grain, last = std::min(layout.size, first + grain);
                     kernels::cpu::gather_range(wanted, layout, item, first, last, block);
                     kernels::cpu::search_sorted(dtype, sequence, count, stride, block,
                                                 last - first, right, target + first);
                   }
                 });
}

// More values are more of the same; more sequences are searched one after the other.
std::pair<std::vector<array>, std::vector<int>> SearchSorted::vmap_rule(
    const std::vector<array>& inputs, const std::vector<int>& axes) {
  if (axes[0] >= 0) return {};
  return {{searchsorted(inputs[0], inputs[1], right_ ? "right" : "left", stream())}, {axes[1]}};
}

// Sorts along `axis`: other axes than the last are moved there and back.
array sorted_along(const char* op, const array& a, int axis, bool is_arg, StreamOrDevice s,
                   int64_t kth = kernels::cpu::SortPlan::whole) {
  int at = checked_axis(op, axis, a.ndim());
  int last = static_cast<int>(a.ndim()) - 1;
  array x = swapaxes(a, at, last, s);
  Dtype dtype = is_arg ? uint32 : a.dtype();
  array result = make_node<Sort>(x.shape(), dtype, {x}, s, is_arg, kth);
  return swapaxes(result, at, last, s);
}

array partitioned(const char* op, const array& a, int kth, int axis, bool is_arg,
                  StreamOrDevice s) {
  int at = checked_axis(op, axis, a.ndim());
  int size = a.shape(at);
  if (kth < -size || kth >= size) {
    throw std::invalid_argument(text("[", op, "] kth ", kth, " must be between ", -size, " and ",
                                     size - 1, " for axis ", at, " of shape ", a.shape()));
  }
  if (kth < 0) check_shape_known(op, a);
  return sorted_along(op, a, at, is_arg, s, kth < 0 ? kth + size : kth);
}

}  // namespace

array sort(const array& a, int axis, StreamOrDevice s) {
  return sorted_along("sort", a, axis, false, s);
}
array sort(const array& a, StreamOrDevice s) { return sort(flatten(a, s), 0, s); }

array argsort(const array& a, int axis, StreamOrDevice s) {
  return sorted_along("argsort", a, axis, true, s);
}
array argsort(const array& a, StreamOrDevice s) { return argsort(flatten(a, s), 0, s); }

array partition(const array& a, int kth, int axis, StreamOrDevice s) {
  return partitioned("partition", a, kth, axis, false, s);
}
array partition(const array& a, int kth, StreamOrDevice s) {
  return partition(flatten(a, s), kth, 0, s);
}

array argpartition(const array& a, int kth, int axis, StreamOrDevice s) {
  return partitioned("argpartition", a, kth, axis, true, s);
}
array argpartition(const array& a, int kth, StreamOrDevice s) {
  return argpartition(flatten(a, s), kth, 0, s);
}

array topk(const array& a, int k, int axis, StreamOrDevice s) {
  int at = checked_axis("topk", axis, a.ndim());
  int size = a.shape(at);
  if (k < 0 || k > size) {
    throw std::invalid_argument(text("[topk] k ", k, " must be between 0 and ", size, " for axis ",
                                     at, " of shape ", a.shape()));
  }
  if (k == size) return a;
  Shape start(a.ndim(), 0);
  start[static_cast<size_t>(at)] = size - k;
  if (k == 0) return slice(a, std::move(start), a.shape(), s);
  return slice(partition(a, -k, at, s), std::move(start), a.shape(), s);
}
array topk(const array& a, int k, StreamOrDevice s) { return topk(flatten(a, s), k, 0, s); }

array searchsorted(const array& sorted_sequence, const array& values, const std::string& side,
                   StreamOrDevice s) {
  if (sorted_sequence.ndim() != 1) {
    throw std::invalid_argument(
        text("[searchsorted] expected a sorted sequence of one dimension, "
             "got shape ",
             sorted_sequence.shape()));
  }
  if (side != "left" && side != "right") {
    throw std::invalid_argument(
        text("[searchsorted] expected side \"left\" or \"right\", got \"", side, "\""));
  }
  Dtype dtype = promote_types(sorted_sequence.dtype(), values.dtype());
  return make_node<SearchSorted>(values.shape(), uint32,
                                 {astype(sorted_sequence, dtype, s), astype(values, dtype, s)}, s,
                                 side == "right");
}

// --- median ---

array median(const array& a, const std::vector<int>& axes, bool keepdims, StreamOrDevice s) {
  std::vector<int> sorted_axes = checked_axes("median", axes, a.ndim());
  Dtype dtype = at_least_float(a.dtype());
  // The axes that are reduced go behind the others, and become one.
  std::vector<int> order;
  Shape shape, kept;
  int64_t count = 1;
  for (int i = 0; i < static_cast<int>(a.ndim()); ++i) {
    bool is_reduced = std::find(sorted_axes.begin(), sorted_axes.end(), i) != sorted_axes.end();
    if (is_reduced) {
      count *= a.shape(i);
      if (keepdims) kept.push_back(1);
    } else {
      order.push_back(i);
      shape.push_back(a.shape(i));
      kept.push_back(a.shape(i));
    }
  }
  if (count == 0) {
    throw std::invalid_argument(
        text("[median] cannot reduce no elements: axes ", axes, " of shape ", a.shape()));
  }
  order.insert(order.end(), sorted_axes.begin(), sorted_axes.end());
  shape.push_back(safe_cast(count, "median"));
  array rows = sort(reshape_here(transpose(a, order, s), shape, s), -1, s);
  auto middle = [&](int64_t at) {
    return astype(take(rows, static_cast<int>(at), -1, s), dtype, s);
  };
  array result = middle(count / 2);
  if (count % 2 == 0) {
    Dtype compute = computed_in(dtype);
    array sum = add(astype(middle(count / 2 - 1), compute, s), astype(result, compute, s), s);
    result = astype(multiply(sum, array(0.5, compute), s), dtype, s);
  }
  if (issubdtype(a.dtype(), inexact)) {
    // NaN is sorted behind everything, and makes the median NaN.
    array last = middle(count - 1);
    result = where(isnan(last, s), last, result, s);
  }
  return reshape_here(result, std::move(kept), s);
}
array median(const array& a, bool keepdims, StreamOrDevice s) {
  return median(a, all_axes(a), keepdims, s);
}
array median(const array& a, StreamOrDevice s) { return median(a, all_axes(a), false, s); }
array median(const array& a, int axis, bool keepdims, StreamOrDevice s) {
  return median(a, std::vector<int>{axis}, keepdims, s);
}

}  // namespace holdfast
