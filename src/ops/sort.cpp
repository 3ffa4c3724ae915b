// Sorting, and what is found by sorting.
#include <algorithm>

#include "kernels/plan/sort.h"
#include "ops/dynamic_shape.h"
#include "ops/inner.h"
#include "ops/support.h"

namespace holdfast {

namespace {

using kernels::SortKind;

// Along the last axis.
class Sort final : public Recorded<Sort, Single<Op>> {
 public:
  Sort(Stream stream, const SortKind& kind) : Recorded(stream), kind_(kind) {}
  void encode(Encoder& encoder, const std::vector<array>& inputs,
              std::vector<array>& outputs) override;
  array pull_back(const array& input, const array& cotangent, const array&) override {
    if (input.size() == 0) return cotangent;
    array places = kind_.kth == SortKind::whole
                       ? argsort(input, -1, stream())
                       : argpartition(input, static_cast<int>(kind_.kth), -1, stream());
    return put_along_axis(zeros_like(input, stream()), places, cotangent, -1, stream());
  }
  std::shared_ptr<Primitive> with_leading_axis() override {
    return std::make_shared<Sort>(stream(), kind_);
  }
  const char* name() const override {
    if (kind_.kth != SortKind::whole) return kind_.is_arg ? "ArgPartition" : "Partition";
    return kind_.is_arg ? "ArgSort" : "Sort";
  }
  static constexpr const char* recorded_as = "Sort";
  auto members() const { return std::tie(kind_.is_arg, kind_.kth); }
  std::vector<Shape> output_shapes(const std::vector<array>& inputs) override {
    if (kind_.kth != SortKind::whole && kind_.kth >= inputs[0].shape(-1)) {
      throw std::invalid_argument(
          text("[partition] kth ", kind_.kth, " is out of range for shape ", inputs[0].shape()));
    }
    return {inputs[0].shape()};
  }

 private:
  SortKind kind_;
};

void Sort::encode(Encoder& encoder, const std::vector<array>& inputs, std::vector<array>& outputs) {
  kernels::backend_of(encoder).sort(encoder, kind_, inputs[0], outputs[0]);
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
  kernels::backend_of(encoder).search_sorted(encoder, right_, inputs[0], inputs[1], outputs[0]);
}

// More values are more of the same; more sequences are searched one after the other.
std::pair<std::vector<array>, std::vector<int>> SearchSorted::vmap_rule(
    const std::vector<array>& inputs, const std::vector<int>& axes) {
  if (axes[0] >= 0) return {};
  return {{searchsorted(inputs[0], inputs[1], right_ ? "right" : "left", stream())}, {axes[1]}};
}

// Sorts along `axis`: other axes than the last are moved there and back.
array sorted_along(const char* op, const array& a, int axis, const SortKind& kind,
                   StreamOrDevice s) {
  int at = checked_axis(op, axis, a.ndim());
  int last = static_cast<int>(a.ndim()) - 1;
  array x = swapaxes(a, at, last, s);
  Dtype dtype = kind.is_arg ? uint32 : a.dtype();
  array result = make_node<Sort>(x.shape(), dtype, {x}, s, kind);
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
  return sorted_along(op, a, at, {is_arg, kth < 0 ? kth + size : kth}, s);
}

}  // namespace

array sort(const array& a, int axis, StreamOrDevice s) {
  return sorted_along("sort", a, axis, {.is_arg = false}, s);
}
array sort(const array& a, StreamOrDevice s) { return sort(flatten(a, s), 0, s); }

array argsort(const array& a, int axis, StreamOrDevice s) {
  return sorted_along("argsort", a, axis, {.is_arg = true}, s);
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
  if (k == 0) return slice_by(a, cut_of(a, at, 0, 0), s);
  return slice_by(partition(a, -k, at, s), cut_of(a, at, -k, to_the_end), s);
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
