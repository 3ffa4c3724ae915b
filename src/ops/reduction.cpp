// Reductions: one primitive over the table of kernels, and what is composed from them.
#include <algorithm>
#include <limits>
#include <optional>

#include <holdfast/tracing.h>

#include "ops/dynamic_shape.h"
#include "ops/inner.h"
#include "ops/reduction.h"
#include "ops/support.h"

namespace holdfast {

namespace {

using kernels::ReduceOp;

struct ReduceRow {
  const char* function;
  const char* primitive;
  bool is_arg;
  int type;  // of Reduce or ArgReduce
};
// In the order of ReduceOp.
constexpr ReduceRow reduce_rows[] = {{"sum", "Sum", false, Reduce::Sum},
                                     {"prod", "Prod", false, Reduce::Prod},
                                     {"min", "Min", false, Reduce::Min},
                                     {"max", "Max", false, Reduce::Max},
                                     {"all", "All", false, Reduce::And},
                                     {"any", "Any", false, Reduce::Or},
                                     {"argmin", "ArgMin", true, ArgReduce::ArgMin},
                                     {"argmax", "ArgMax", true, ArgReduce::ArgMax}};
const ReduceRow& row_of(ReduceOp op) { return reduce_rows[static_cast<size_t>(op)]; }

uint8_t number_of(bool is_arg, int type) {
  for (size_t i = 0; i < std::size(reduce_rows); ++i) {
    if (reduce_rows[i].is_arg == is_arg && reduce_rows[i].type == type) {
      return static_cast<uint8_t>(i);
    }
  }
  throw std::invalid_argument(text("[", is_arg ? "ArgReduce" : "Reduce", "] no such type: ", type));
}

template <class T>
std::shared_ptr<Primitive> pooled(Stream stream, int type, std::vector<int> axes, bool keepdims) {
  return std::allocate_shared<T>(PoolAllocator<T>(), stream,
                                 static_cast<typename T::ReduceType>(type), std::move(axes),
                                 keepdims);
}
std::shared_ptr<Primitive> make_reduction(ReduceOp op, std::vector<int> axes, bool keepdims,
                                          Stream stream) {
  const ReduceRow& row = row_of(op);
  return (row.is_arg ? pooled<ArgReduce> : pooled<Reduce>)(stream, row.type, std::move(axes),
                                                           keepdims);
}

// The product of all other elements: of those before times of those behind, along the axes as one.
array product_of_others(const array& a, const std::vector<int>& axes, Stream s) {
  std::vector<int> order, inverse(a.ndim());
  for (int axis = 0; axis < static_cast<int>(a.ndim()); ++axis) {
    if (std::find(axes.begin(), axes.end(), axis) == axes.end()) order.push_back(axis);
  }
  int kept = static_cast<int>(order.size());
  order.insert(order.end(), axes.begin(), axes.end());
  for (size_t i = 0; i < order.size(); ++i) {
    inverse[static_cast<size_t>(order[i])] = static_cast<int>(i);
  }
  array ordered = transpose(a, order, s);
  array flat = flatten(ordered, kept, -1, s);
  array product = multiply(cumprod(flat, kept, false, false, std::nullopt, s),
                           cumprod(flat, kept, true, false, std::nullopt, s), s);
  return transpose(reshape_like(product, ordered, s), inverse, s);
}

Shape reduced_shape(const array& a, const std::vector<int>& axes, bool keepdims) {
  Shape shape = a.shape();
  for (size_t i = axes.size(); i-- > 0;) {
    if (keepdims)
      shape[static_cast<size_t>(axes[i])] = 1;
    else
      shape.erase(shape.begin() + axes[i]);
  }
  return shape;
}

}  // namespace

// --- primitives ---

detail::Reduction::Reduction(Stream stream, uint8_t op, std::vector<int> axes, bool keepdims)
    : Op(stream), op_(op), keepdims_(keepdims), axes_(std::move(axes)) {}

const char* detail::Reduction::name() const { return row_of(op_of(*this)).primitive; }

bool detail::Reduction::is_equivalent(const Primitive& other) const {
  const auto* same = dynamic_cast<const Reduction*>(&other);
  return same != nullptr && op_ == same->op_ && axes_ == same->axes_;
}

std::optional<Record> detail::Reduction::record() const {
  return Record{"Reduce", {int{op_}, axes_, keepdims_}};
}

std::vector<array> detail::Reduction::call_again(const RecordedCall& call) const {
  return holdfast::call_again(*record(), call);
}

void detail::Reduction::encode(Encoder& encoder, const std::vector<array>& inputs,
                               std::vector<array>& outputs) {
  kernels::backend_of(encoder).reduce(encoder, op_of(*this), axes_, inputs[0], outputs[0]);
}

std::vector<array> detail::Reduction::vjp_rule(const std::vector<array>& primals,
                                               const std::vector<array>& cotangents,
                                               const std::vector<int>&,
                                               const std::vector<array>& outputs) {
  Stream s = stream();
  const array& input = primals[0];
  auto kept = [&](const array& a) {
    return a.ndim() == input.ndim() ? a : expand_dims(a, axes_, s);
  };
  array repeated = broadcast_like(kept(cotangents[0]), input, s);
  switch (op_of(*this)) {
    case ReduceOp::sum:
      return {astype(repeated, input.dtype(), s)};
    case ReduceOp::prod:
      return {scaled_cotangent(repeated, product_of_others(input, axes_, s), s)};
    default: {
      // min and max: those that are equal to it share.
      array is_it = astype(equal(input, kept(outputs[0]), s), input.dtype(), s);
      return {multiply(repeated, divide(is_it, sum(is_it, axes_, true, s), s), s)};
    }
  }
}

std::vector<Shape> detail::Reduction::output_shapes(const std::vector<array>& inputs) {
  const array& a = only(inputs);
  for (int axis : axes_) checked_axis(row_of(op_of(*this)).function, axis, a.ndim());
  return {reduced_shape(a, axes_, keepdims_)};
}

std::shared_ptr<Primitive> detail::Reduction::with_leading_axis() {
  return make_reduction(op_of(*this), one_further(axes_), keepdims_, stream());
}

Reduce::Reduce(Stream stream, ReduceType type, std::vector<int> axes, bool keepdims)
    : Reduction(stream, number_of(false, type), std::move(axes), keepdims) {}

std::pair<Reduce::ReduceType, std::vector<int>> Reduce::state() const {
  return {static_cast<ReduceType>(row_of(op_of(*this)).type), axes()};
}

ArgReduce::ArgReduce(Stream stream, ReduceType type, int axis)
    : ArgReduce(stream, type, std::vector<int>{axis}, true) {}
ArgReduce::ArgReduce(Stream stream, ReduceType type, std::vector<int> axes, bool keepdims)
    : Reduction(stream, number_of(true, type), std::move(axes), keepdims) {}

std::pair<ArgReduce::ReduceType, int> ArgReduce::state() const {
  int first = axes().empty() ? -1 : axes().front();
  return {static_cast<ReduceType>(row_of(op_of(*this)).type), first};
}

// --- functions ---

array reduce(ReduceOp op, const array& a, const std::vector<int>& axes, bool keepdims,
             StreamOrDevice s, bool widens) {
  const char* function = row_of(op).function;
  std::vector<int> sorted = checked_axes(function, axes, a.ndim());
  Shape shape = reduced_shape(a, sorted, keepdims);
  Dtype dtype = dtype_of(kernels::reduce_output_type(op, a.dtype()));
  if (widens && op == ReduceOp::sum && is_half(dtype)) dtype = float32;
  bool is_arg = row_of(op).is_arg;
  int64_t count = 1;
  for (int axis : sorted) {
    count *= a.shape(axis);
    if (a.shape(axis) == 0 && !kernels::has_identity(op) &&
        checked_size(function, shape, dtype) > 0) {
      throw std::invalid_argument(text("[", function, "] cannot reduce no elements: axis ", axis,
                                       " of shape ", a.shape(), " has size 0"));
    }
  }
  if (is_arg && count > int64_t{std::numeric_limits<uint32_t>::max()} + 1) {
    throw std::overflow_error(text(
        "[", function, "] expected at most 2^32 elements to choose from, got shape ", a.shape()));
  }
  // Over no axis, every element is its own result.
  if (sorted.empty() && !is_arg) return astype(a, dtype, s);
  return detail::make_checked(std::move(shape), dtype,
                              make_reduction(op, std::move(sorted), keepdims, to_stream(s)), {a});
}

namespace {

// The axes as given by the overload forms.
array over_axis(array (*function)(const array&, const std::vector<int>&, bool, StreamOrDevice),
                const array& a, int axis, bool keepdims, StreamOrDevice s) {
  return function(a, std::vector<int>{axis}, keepdims, s);
}

double element_count(const char* op, const array& a, const std::vector<int>& axes) {
  double count = 1;
  for (int axis : checked_axes(op, axes, a.ndim())) count *= a.shape(axis);
  return count;
}

// max(number of elements - without, 0), which a trace for any shape must not take for a constant.
array divisor(const char* op, const array& a, const std::vector<int>& axes, int without,
              Dtype dtype, StreamOrDevice s) {
  double count = element_count(op, a, axes);
  if (!detail::in_dynamic_tracing()) return array(std::max(count - without, 0.0), dtype);
  array number = number_of_elements(a, axes, false, dtype, s);
  return without == 0 ? number
                      : maximum(subtract(number, array(without, dtype), s), array(0, dtype), s);
}

}  // namespace

// --- sum, prod, min, max, all, any ---

// The three forms that lead to the one with axes.
#define HOLDFAST_REDUCTION_FORMS(name)                                                    \
  array name(const array& a, bool keepdims, StreamOrDevice s) {                           \
    return name(a, all_axes(a), keepdims, s);                                             \
  }                                                                                       \
  array name(const array& a, StreamOrDevice s) { return name(a, all_axes(a), false, s); } \
  array name(const array& a, int axis, bool keepdims, StreamOrDevice s) {                 \
    return over_axis(name, a, axis, keepdims, s);                                         \
  }
#define HOLDFAST_REDUCTION(name)                                                              \
  HOLDFAST_REDUCTION_FORMS(name)                                                              \
  array name(const array& a, const std::vector<int>& axes, bool keepdims, StreamOrDevice s) { \
    return reduce(ReduceOp::name, a, axes, keepdims, s);                                      \
  }
HOLDFAST_REDUCTION(sum)
HOLDFAST_REDUCTION(prod)
HOLDFAST_REDUCTION(min)
HOLDFAST_REDUCTION(max)
HOLDFAST_REDUCTION(all)
HOLDFAST_REDUCTION(any)
#undef HOLDFAST_REDUCTION
HOLDFAST_REDUCTION_FORMS(mean)
HOLDFAST_REDUCTION_FORMS(logsumexp)
#undef HOLDFAST_REDUCTION_FORMS

#define HOLDFAST_ARG_REDUCTION(name)                                         \
  array name(const array& a, bool keepdims, StreamOrDevice s) {              \
    return reduce(ReduceOp::name, a, all_axes(a), keepdims, s);              \
  }                                                                          \
  array name(const array& a, StreamOrDevice s) { return name(a, false, s); } \
  array name(const array& a, int axis, bool keepdims, StreamOrDevice s) {    \
    return reduce(ReduceOp::name, a, {axis}, keepdims, s);                   \
  }
HOLDFAST_ARG_REDUCTION(argmin)
HOLDFAST_ARG_REDUCTION(argmax)
#undef HOLDFAST_ARG_REDUCTION

// --- composed ---

// Half types sum up in float32: their own range ends at 65504.
array mean(const array& a, const std::vector<int>& axes, bool keepdims, StreamOrDevice s) {
  Dtype dtype = at_least_float(a.dtype());
  Dtype compute = computed_in(dtype);
  array count = divisor("mean", a, axes, 0, compute, s);
  array total = reduce(ReduceOp::sum, is_half(dtype) ? a : astype(a, compute, s), axes, keepdims, s,
                       is_half(dtype));
  return astype(divide(total, count, s), dtype, s);
}

array var(const array& a, const std::vector<int>& axes, bool keepdims, int ddof, StreamOrDevice s) {
  Dtype dtype = at_least_float(a.dtype());
  Dtype compute = computed_in(dtype);
  array x = astype(a, compute, s);
  array distance = abs(subtract(x, mean(x, axes, true, s), s), s);
  Dtype real_dtype = distance.dtype();
  array total = sum(square(distance, s), axes, keepdims, s);
  array result = divide(total, divisor("var", a, axes, ddof, real_dtype, s), s);
  return dtype == complex64 ? result : astype(result, dtype, s);
}

// The variance of a half type is not rounded before its root is taken, nor out of its range.
array std(const array& a, const std::vector<int>& axes, bool keepdims, int ddof, StreamOrDevice s) {
  Dtype dtype = at_least_float(a.dtype());
  array root = sqrt(var(astype(a, computed_in(dtype), s), axes, keepdims, ddof, s), s);
  return is_half(dtype) ? astype(root, dtype, s) : root;
}

#define HOLDFAST_REDUCTION_FORMS(name)                                                       \
  array name(const array& a, bool keepdims, int ddof, StreamOrDevice s) {                    \
    return name(a, all_axes(a), keepdims, ddof, s);                                          \
  }                                                                                          \
  array name(const array& a, StreamOrDevice s) { return name(a, all_axes(a), false, 0, s); } \
  array name(const array& a, int axis, bool keepdims, int ddof, StreamOrDevice s) {          \
    return name(a, std::vector<int>{axis}, keepdims, ddof, s);                               \
  }
HOLDFAST_REDUCTION_FORMS(var)
HOLDFAST_REDUCTION_FORMS(std)
#undef HOLDFAST_REDUCTION_FORMS

namespace {

// Axes of what has none are a bad argument of these, as in MLX, not an axis out of range.
void check_has_axes(const char* op, const std::vector<int>& axes, const array& a) {
  if (a.ndim() == 0 && !axes.empty()) {
    throw std::invalid_argument(
        text("[", op, "] an array without dimensions has no axes, got ", axes));
  }
}

}  // namespace

array logsumexp(const array& a, const std::vector<int>& axes, bool keepdims, StreamOrDevice s) {
  check_has_axes("logsumexp", axes, a);
  std::vector<int> sorted = checked_axes("logsumexp", axes, a.ndim());
  Dtype dtype = at_least_float(a.dtype());
  if (dtype == complex64) {
    throw std::invalid_argument(text("[logsumexp] expected a real dtype, got ", dtype));
  }
  if (a.size() == 0 && element_count("logsumexp", a, axes) == 0) {
    throw std::invalid_argument(text("[logsumexp] cannot reduce no elements: shape ", a.shape()));
  }
  array x = astype(a, computed_in(dtype), s);
  // Infinite maxima are not subtracted: inf - inf would be NaN.
  array largest = max(x, sorted, true, s);
  array shift = where(isfinite(largest, s), largest, array(0, x.dtype()), s);
  array total = sum(exp(subtract(x, shift, s), s), sorted, true, s);
  array result = astype(add(log(total, s), shift, s), dtype, s);
  return keepdims ? result : squeeze(result, sorted, s);
}

array vecdot(const array& a, const array& b, int axis, StreamOrDevice s) {
  if (a.ndim() == 0 || b.ndim() == 0) {
    throw std::invalid_argument(text("[vecdot] expected one dimension or more, got shapes ",
                                     a.shape(), " and ", b.shape()));
  }
  Shape shape = broadcast_shapes_for("vecdot", a.shape(), b.shape());
  int at = checked_axis("vecdot", axis, shape.size());
  // The axis itself does not broadcast.
  int behind = static_cast<int>(shape.size()) - at;
  auto length = [&](const array& x) {
    return behind <= static_cast<int>(x.ndim()) ? x.shape(-behind) : 1;
  };
  if (length(a) != length(b)) {
    throw std::invalid_argument(text("[vecdot] expected the same size along axis ", axis,
                                     ", got shapes ", a.shape(), " and ", b.shape()));
  }
  array product = multiply(conjugate(a, s), b, s);
  // The product of truth values is one; integers are counted as in sum.
  return sum(product, at, false, s);
}

array count_nonzero(const array& a, const std::vector<int>& axes, bool keepdims, StreamOrDevice s) {
  return sum(not_equal(a, array(0, a.dtype()), s), axes, keepdims, s);
}
array count_nonzero(const array& a, bool keepdims, StreamOrDevice s) {
  return count_nonzero(a, all_axes(a), keepdims, s);
}
array count_nonzero(const array& a, int axis, bool keepdims, StreamOrDevice s) {
  return count_nonzero(a, std::vector<int>{axis}, keepdims, s);
}

// --- softmax ---

namespace {

class Softmax final : public Recorded<Softmax, Single<Op>> {
 public:
  Softmax(Stream stream, std::vector<int> axes) : Recorded(stream), axes_(std::move(axes)) {}
  void encode(Encoder& encoder, const std::vector<array>& inputs,
              std::vector<array>& outputs) override {
    kernels::backend_of(encoder).softmax(encoder, axes_, inputs[0], outputs[0]);
  }
  array pull_back(const array&, const array& cotangent, const array& output) override {
    array weighted = multiply(cotangent, output, stream());
    return subtract(weighted, multiply(output, sum(weighted, axes_, true, stream()), stream()),
                    stream());
  }
  std::shared_ptr<Primitive> with_leading_axis() override {
    return std::make_shared<Softmax>(stream(), one_further(axes_));
  }
  const char* name() const override { return "Softmax"; }
  auto members() const { return std::tie(axes_); }
  std::vector<Shape> output_shapes(const std::vector<array>& inputs) override {
    return {inputs[0].shape()};
  }

 private:
  std::vector<int> axes_;
};

}  // namespace

array softmax(const array& a, const std::vector<int>& axes, bool, StreamOrDevice s) {
  check_has_axes("softmax", axes, a);
  std::vector<int> sorted = checked_axes("softmax", axes, a.ndim());
  Dtype dtype = at_least_float(a.dtype());
  if (dtype == complex64) {
    throw std::invalid_argument(text("[softmax] expected a real dtype, got ", dtype));
  }
  return make_node<Softmax>(a.shape(), dtype, {astype(a, dtype, s)}, s, std::move(sorted));
}

array softmax(const array& a, bool precise, StreamOrDevice s) {
  return softmax(a, all_axes(a), precise, s);
}
array softmax(const array& a, int axis, bool precise, StreamOrDevice s) {
  return softmax(a, std::vector<int>{axis}, precise, s);
}

}  // namespace holdfast
