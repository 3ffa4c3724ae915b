// Scans: one primitive over the table of kernels, and diff, its inverse.
#include <optional>

#include "kernels/plan/scan.h"
#include "ops/dynamic_shape.h"
#include "ops/recurrence.h"
#include "ops/support.h"

namespace holdfast {

namespace {

using kernels::ScanOp;

struct ScanRow {
  const char* function;
  const char* primitive;
};
// In the order of ScanOp.
constexpr ScanRow scan_rows[] = {{"cumsum", "CumSum"},
                                 {"cumprod", "CumProd"},
                                 {"cummin", "CumMin"},
                                 {"cummax", "CumMax"},
                                 {"logcumsumexp", "LogCumSumExp"}};
const ScanRow& row_of(ScanOp op) { return scan_rows[static_cast<size_t>(op)]; }

class Scan final : public Recorded<Scan, Single<Op>> {
 public:
  Scan(Stream stream, ScanOp op, int axis, bool reverse, bool inclusive)
      : Recorded(stream), op_(op), axis_(axis), reverse_(reverse), inclusive_(inclusive) {}
  void encode(Encoder& encoder, const std::vector<array>& inputs,
              std::vector<array>& outputs) override;
  array pull_back(const array& input, const array& cotangent, const array& output) override;
  std::vector<array> decomposed(const std::vector<array>& inputs) override;
  std::shared_ptr<Primitive> with_leading_axis() override {
    return std::make_shared<Scan>(stream(), op_, axis_ + 1, reverse_, inclusive_);
  }
  const char* name() const override { return row_of(op_).primitive; }
  static constexpr const char* recorded_as = "Scan";
  auto members() const { return std::tie(op_, axis_, reverse_, inclusive_); }
  std::vector<Shape> output_shapes(const std::vector<array>& inputs) override {
    return {inputs[0].shape()};
  }

 private:
  ScanOp op_;
  int axis_;
  bool reverse_, inclusive_;
};

void Scan::encode(Encoder& encoder, const std::vector<array>& inputs, std::vector<array>& outputs) {
  kernels::backend_of(encoder).scan(encoder, {op_, axis_, reverse_, inclusive_}, inputs[0],
                                    outputs[0]);
}

array scan(ScanOp op, const array& a, int axis, bool reverse, bool inclusive, StreamOrDevice s) {
  int at = checked_axis(row_of(op).function, axis, a.ndim());
  return make_node<Scan>(a.shape(), a.dtype(), {a}, s, op, at, reverse, inclusive);
}

// All but the first elements along an axis, or all but the last.
array without(const array& a, int axis, bool first, StreamOrDevice s) {
  return slice_by(a, first ? cut_of(a, axis, 1, to_the_end) : cut_of(a, axis, 0, -1), s);
}

// A scan without the element itself is the scan of what comes before it, behind the value for
// nothing. Sums have a rule for that case.
std::vector<array> Scan::decomposed(const std::vector<array>& inputs) {
  const array& a = inputs[0];
  if (inclusive_ || op_ == ScanOp::sum || a.size() == 0) return {};
  Stream s = stream();
  Shape shape = a.shape();
  shape[static_cast<size_t>(axis_)] = 1;
  array nothing = scan(op_, zeros(shape, a.dtype(), s), axis_, reverse_, false, s);
  array rest = scan(op_, without(a, axis_, reverse_, s), axis_, reverse_, true, s);
  return {reverse_ ? concatenate({rest, nothing}, axis_, s)
                   : concatenate({nothing, rest}, axis_, s)};
}

array Scan::pull_back(const array& input, const array& cotangent, const array& output) {
  Stream s = stream();
  if (input.size() == 0) return zeros_like(input, s);
  if (op_ == ScanOp::sum) return scan(op_, cotangent, axis_, !reverse_, inclusive_, s);
  if (op_ == ScanOp::min || op_ == ScanOp::max) {
    // Each element of the result comes from the last place so far where the input was equal to it.
    int size = input.shape(axis_);
    Shape shape(input.ndim(), 1);
    shape[static_cast<size_t>(axis_)] = size;
    array places = reshape_here(arange(0, size, 1, s), shape, s);
    array never(reverse_ ? size - 1 : 0);
    array taken = where(equal(input, output, s), places, never, s);
    array origin =
        reverse_ ? cummin(taken, axis_, true, true, s) : cummax(taken, axis_, false, true, s);
    return scatter_add_axis(zeros_like(input, s), origin, cotangent, axis_, s);
  }
  // What an element adds to the results from its own place on shrinks or grows from one to the
  // next by a factor: a recurrence from the end.
  auto neighbours = [&](const array& a, bool later) {
    return without(a, axis_, later != reverse_, s);
  };
  auto aligned = [&](const array& later) {
    Shape shape = input.shape();
    shape[static_cast<size_t>(axis_)] = 1;
    array last = zeros(shape, input.dtype(), s);
    return reverse_ ? concatenate({last, later}, axis_, s) : concatenate({later, last}, axis_, s);
  };
  if (op_ == ScanOp::prod) {
    array factors = aligned(neighbours(input, true));
    array reach = linear_recurrence(conjugate(factors, s), cotangent, axis_, !reverse_, s);
    return scaled_cotangent(reach, scan(op_, input, axis_, reverse_, false, s), s);
  }
  // exp(output) grows: written so that no exponent is positive.
  array decline = exp(subtract(neighbours(output, false), neighbours(output, true), s), s);
  array reach = linear_recurrence(aligned(conjugate(decline, s)), cotangent, axis_, !reverse_, s);
  return scaled_cotangent(reach, exp(subtract(input, output, s), s), s);
}

}  // namespace

array cumsum(const array& a, int axis, bool reverse, bool inclusive, std::optional<Dtype> dtype,
             StreamOrDevice s) {
  Dtype used = dtype.value_or(a.dtype() == bool_ ? int32 : a.dtype());
  return scan(ScanOp::sum, astype(a, used, s), axis, reverse, inclusive, s);
}

array cumprod(const array& a, int axis, bool reverse, bool inclusive, std::optional<Dtype> dtype,
              StreamOrDevice s) {
  array x = dtype ? astype(a, *dtype, s) : a;
  return scan(ScanOp::prod, x, axis, reverse, inclusive, s);
}

array cummax(const array& a, int axis, bool reverse, bool inclusive, StreamOrDevice s) {
  return scan(ScanOp::max, a, axis, reverse, inclusive, s);
}

array cummin(const array& a, int axis, bool reverse, bool inclusive, StreamOrDevice s) {
  return scan(ScanOp::min, a, axis, reverse, inclusive, s);
}

array logcumsumexp(const array& a, int axis, bool reverse, bool inclusive, StreamOrDevice s) {
  array x = astype(a, at_least_float(a.dtype()), s);
  return scan(ScanOp::log_add_exp, x, axis, reverse, inclusive, s);
}

// The forms that lead to the one with an axis.
#define HOLDFAST_SCAN(name)                                                    \
  array name(const array& a, bool reverse, bool inclusive, StreamOrDevice s) { \
    return name(flatten(a, s), 0, reverse, inclusive, s);                      \
  }
HOLDFAST_SCAN(cummax)
HOLDFAST_SCAN(cummin)
HOLDFAST_SCAN(logcumsumexp)
#undef HOLDFAST_SCAN
#define HOLDFAST_SCAN_WITH_DTYPE(name)                                                 \
  array name(const array& a, bool reverse, bool inclusive, std::optional<Dtype> dtype, \
             StreamOrDevice s) {                                                       \
    return name(flatten(a, s), 0, reverse, inclusive, dtype, s);                       \
  }
HOLDFAST_SCAN_WITH_DTYPE(cumsum)
HOLDFAST_SCAN_WITH_DTYPE(cumprod)
#undef HOLDFAST_SCAN_WITH_DTYPE

array diff(const array& a, int n, int axis, StreamOrDevice s) {
  if (n < 0) throw std::invalid_argument(text("[diff] n must not be negative, got ", n));
  int at = checked_axis("diff", axis, a.ndim());
  array result = a;
  for (int i = 0; i < n && (result.shape(at) > 0 || has_open_shape(a)); ++i) {
    // The difference of truth values is "differs", which subtract gives.
    result = subtract(without(result, at, true, s), without(result, at, false, s), s);
  }
  return result;
}

}  // namespace holdfast
