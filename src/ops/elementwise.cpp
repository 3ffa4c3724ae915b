// Element-wise ops: everything here reads the table, and a new row needs no line here.
#include "ops/elementwise.h"

#include <cmath>
#include <limits>

#include "ops/inner.h"

namespace holdfast {

namespace {

using kernels::conversion_code;
using kernels::ElementwiseOp;

// The column in_types as sets of dtypes.
constexpr uint16_t bit(Dtype::Val val) {
  return static_cast<uint16_t>(1u << static_cast<int>(val));
}
constexpr uint16_t accept_any = (1u << dtype_count) - 1;
constexpr uint16_t accept_boolean = bit(bool_);
constexpr uint16_t accept_float = bit(float16) | bit(bfloat16) | bit(float32) | bit(float64);
constexpr uint16_t accept_inexact = accept_float | bit(complex64);
constexpr uint16_t accept_real = accept_any & ~bit(complex64);
constexpr uint16_t accept_number = accept_any & ~accept_boolean;
constexpr uint16_t accept_integral = accept_any & ~accept_inexact;
constexpr uint16_t accept_integer = accept_integral & ~accept_boolean;

constexpr ElementwiseRow rows[] = {
#define UNARY(function, Name, rule, in_types, description) \
  {#function, DtypeRule::rule##_, accept_##in_types},
#define BINARY UNARY
#define TERNARY UNARY
#include <holdfast/elementwise.def>
};

struct DtypePair {
  Dtype operand;
  Dtype result;
};

// What the operands are converted to, and what comes out; throws where the row refuses the dtype.
DtypePair dtypes_of(ElementwiseOp op, Dtype input) {
  const ElementwiseRow& row = elementwise_row(op);
  DtypePair dtypes{input, input};
  switch (row.rule) {
    case DtypeRule::same_:
    case DtypeRule::select_:
      break;
    case DtypeRule::inexact_:
      dtypes.operand = dtypes.result = at_least_float(input);
      break;
    case DtypeRule::predicate_:
      dtypes.result = bool_;
      break;
    case DtypeRule::logical_:
      dtypes.operand = dtypes.result = bool_;
      break;
    case DtypeRule::part_:
      dtypes.result = input == complex64 ? float32 : input;
      break;
  }
  if ((row.accepted & bit(dtypes.operand)) == 0) {
    std::string accepted;
    for (int i = 0; i < dtype_count; ++i) {
      if ((row.accepted >> i & 1) == 0) continue;
      accepted += accepted.empty() ? "" : ", ";
      accepted += dtype_name(static_cast<Dtype::Val>(i));
    }
    throw std::invalid_argument(
        text("[", row.function, "] expected one of the dtypes ", accepted, ", got ", input));
  }
  return dtypes;
}

// Room for the primitive of any row: what comes for each row is a constructor, not a kind of
// shared_ptr.
class AnyRow {
 public:
  AnyRow(ElementwiseOp op, Stream stream) { constructors[static_cast<size_t>(op)](room_, stream); }
  ~AnyRow() { primitive()->~Elementwise(); }
  AnyRow(const AnyRow&) = delete;
  AnyRow& operator=(const AnyRow&) = delete;
  detail::Elementwise* primitive() {
    return std::launder(reinterpret_cast<detail::Elementwise*>(room_));
  }

 private:
  template <class Name>
  static void construct(void* room, Stream stream) {
    static_assert(sizeof(Name) == sizeof(detail::Elementwise));
    new (room) Name(stream);
  }
  static constexpr void (*constructors[])(void*, Stream) = {
#define UNARY(function, Name, ...) construct<Name>,
#define BINARY UNARY
#define TERNARY UNARY
#include <holdfast/elementwise.def>
  };

  alignas(detail::Elementwise) std::byte room_[sizeof(detail::Elementwise)];
};

array make_row(ElementwiseOp op, Shape shape, Dtype dtype, std::vector<array> inputs,
               StreamOrDevice s) {
  auto row = std::allocate_shared<AnyRow>(PoolAllocator<AnyRow>(), op, to_stream(s));
  detail::Elementwise* primitive = row->primitive();
  return detail::make_checked(std::move(shape), dtype,
                              std::shared_ptr<Primitive>(std::move(row), primitive),
                              std::move(inputs));
}

array unary(ElementwiseOp op, array a, StreamOrDevice s) {
  DtypePair dtypes = dtypes_of(op, a.dtype());
  Shape shape = a.shape();
  return make_row(op, std::move(shape), dtypes.result,
                  inputs_of(astype(std::move(a), dtypes.operand, s)), s);
}

array binary(ElementwiseOp op, array a, array b, StreamOrDevice s) {
  DtypePair dtypes = dtypes_of(op, promote_types(a.dtype(), b.dtype()));
  Shape shape = broadcast_shapes_for(elementwise_row(op).function, a.shape(), b.shape());
  if (a.shape() != b.shape()) checked_size(elementwise_row(op).function, shape, dtypes.result);
  return make_row(
      op, std::move(shape), dtypes.result,
      inputs_of(astype(std::move(a), dtypes.operand, s), astype(std::move(b), dtypes.operand, s)),
      s);
}

array ternary(ElementwiseOp op, array condition, array x, array y, StreamOrDevice s) {
  const char* function = elementwise_row(op).function;
  DtypePair dtypes = dtypes_of(op, promote_types(x.dtype(), y.dtype()));
  Shape shape = broadcast_shapes_for(function, condition.shape(),
                                     broadcast_shapes_for(function, x.shape(), y.shape()));
  checked_size(function, shape, dtypes.result);
  return make_row(
      op, std::move(shape), dtypes.result,
      inputs_of(astype(std::move(condition), bool_, s), astype(std::move(x), dtypes.operand, s),
                astype(std::move(y), dtypes.operand, s)),
      s);
}

}  // namespace

const ElementwiseRow& elementwise_row(ElementwiseOp op) { return rows[static_cast<size_t>(op)]; }

namespace {
void check_count(ElementwiseOp op, const std::vector<array>& inputs) {
  size_t count = static_cast<size_t>(kernels::elementwise_operand_count(op));
  if (inputs.size() != count) {
    throw std::invalid_argument(text("[", elementwise_row(op).function, "] expected ", count,
                                     " inputs, got ", inputs.size()));
  }
}
}  // namespace

array call_elementwise(ElementwiseOp op, const std::vector<array>& inputs, StreamOrDevice s) {
  check_count(op, inputs);
  const size_t count = inputs.size();
  if (count == 1) return unary(op, inputs[0], s);
  if (count == 2) return binary(op, inputs[0], inputs[1], s);
  return ternary(op, inputs[0], inputs[1], inputs[2], s);
}

// --- primitives ---

detail::Elementwise::Elementwise(Stream stream, int16_t row) : FusableOp(stream) {
  traits_.elementwise = row;
  traits_.broadcasts = true;
}

#define UNARY(function, Name, ...)                                                              \
  Name::Name(Stream stream) : Elementwise(stream, static_cast<int16_t>(ElementwiseOp::Name)) {} \
  const char* Name::name() const { return #Name; }
#define BINARY UNARY
#define TERNARY UNARY
#include <holdfast/elementwise.def>

void detail::Elementwise::encode_group(Encoder& encoder, const FusedGroup& group) {
  kernels::backend_of(encoder).fused(encoder, group);
}

bool detail::Elementwise::is_equivalent(const Primitive& other) const {
  return other.traits().elementwise == traits_.elementwise;
}

std::optional<Record> detail::Elementwise::record() const { return Record{name(), {}}; }

std::vector<array> detail::Elementwise::call_again(const RecordedCall& call) const {
  return holdfast::call_again(*record(), call);
}

std::vector<Shape> detail::Elementwise::output_shapes(const std::vector<array>& inputs) {
  check_count(static_cast<ElementwiseOp>(traits_.elementwise), inputs);
  Shape shape = inputs[0].shape();
  for (const array& input : inputs) shape = broadcast_shapes_for(name(), shape, input.shape());
  return {shape};
}

AsType::AsType(Stream stream, Dtype dtype) : FusableOp(stream), dtype_(dtype) {
  traits_.elementwise = conversion_code;
  traits_.broadcasts = true;
}

void AsType::encode_group(Encoder& encoder, const FusedGroup& group) {
  kernels::backend_of(encoder).fused(encoder, group);
}

bool AsType::is_equivalent(const Primitive& other) const {
  return other.traits().elementwise == conversion_code &&
         static_cast<const AsType&>(other).dtype_ == dtype_;
}

std::optional<Record> AsType::record() const { return Record{name(), {dtype_}}; }

std::vector<array> AsType::call_again(const RecordedCall& call) const {
  return holdfast::call_again(*record(), call);
}

std::vector<Shape> AsType::output_shapes(const std::vector<array>& inputs) {
  return {only(inputs).shape()};
}

void DivMod::encode(Encoder& encoder, const std::vector<array>& inputs,
                    std::vector<array>& outputs) {
  Dtype dtype = outputs[0].dtype();
  FusedStep steps[] = {
      {static_cast<int16_t>(ElementwiseOp::FloorDivide), 2, {0, 1, 0}, dtype, dtype, &outputs[0]},
      {static_cast<int16_t>(ElementwiseOp::Remainder), 2, {0, 1, 0}, dtype, dtype, &outputs[1]}};
  kernels::backend_of(encoder).fused(encoder, {&outputs[0].shape(), inputs, 0, steps});
}

// --- functions ---

#define UNARY(function, Name, ...) \
  array function(array a, StreamOrDevice s) { return unary(ElementwiseOp::Name, std::move(a), s); }
#define BINARY(function, Name, ...)                                    \
  array function(array a, array b, StreamOrDevice s) {                 \
    return binary(ElementwiseOp::Name, std::move(a), std::move(b), s); \
  }
#define TERNARY(function, Name, ...)                                                          \
  array function(array condition, array x, array y, StreamOrDevice s) {                       \
    return ternary(ElementwiseOp::Name, std::move(condition), std::move(x), std::move(y), s); \
  }
#include <holdfast/elementwise.def>

array astype(array a, Dtype dtype, StreamOrDevice s) {
  if (a.dtype() == dtype) return a;
  Shape shape = a.shape();
  return make_node<AsType>(std::move(shape), dtype, inputs_of(std::move(a)), s, dtype);
}

array positive(const array& a, StreamOrDevice) {
  a.node();  // throws where it was moved from
  return a;
}

array reciprocal(const array& a, StreamOrDevice s) {
  return divide(array(1.0f, at_least_float(a.dtype())), a, s);
}

namespace {
// a * factor in the smallest inexact dtype that holds a.
array scaled(const array& a, double factor, StreamOrDevice s) {
  Dtype dtype = at_least_float(a.dtype()), compute = computed_in(dtype);
  return astype(multiply(astype(a, compute, s), array(factor, compute), s), dtype, s);
}
}  // namespace

array degrees(const array& a, StreamOrDevice s) { return scaled(a, 180.0 / M_PI, s); }
array radians(const array& a, StreamOrDevice s) { return scaled(a, M_PI / 180.0, s); }

array round(const array& a, StreamOrDevice s) { return round(a, 0, s); }

// To a multiple of 10^digits, halves to an even one. No floating dtype that every device has holds
// all integers.
static array round_integers(const array& a, int64_t digits, StreamOrDevice s) {
  Dtype dtype = a.dtype();
  uint64_t unit = 1;
  for (int64_t i = 0; i < digits; ++i) {
    if (unit > iinfo(dtype).max / 10) return zeros_like(a, s);
    unit *= 10;
  }
  array units(unit, dtype), half(unit / 2, dtype), one(1, dtype);
  array quotient = floor_divide(a, units, s);
  array rest = subtract(a, multiply(quotient, units, s), s);
  array is_odd = equal(bitwise_and(quotient, one, s), one, s);
  array up = where(is_odd, greater_equal(rest, half, s), greater(rest, half, s), s);
  return multiply(add(quotient, astype(up, dtype, s), s), units, s);
}

array round(const array& a, int decimals, StreamOrDevice s) {
  bool is_integral = !issubdtype(a.dtype(), inexact);
  if (decimals == 0) return rint(a, s);
  if (is_integral && decimals > 0) return a;
  if (is_integral && a.dtype() != bool_) return round_integers(a, -int64_t{decimals}, s);
  Dtype dtype = computed_in(at_least_float(a.dtype()));
  array scale(std::pow(10.0, std::abs(static_cast<double>(decimals))), dtype);
  array x = astype(a, dtype, s);
  array result = decimals > 0 ? divide(rint(multiply(x, scale, s), s), scale, s)
                              : multiply(rint(divide(x, scale, s), s), scale, s);
  return astype(result, a.dtype(), s);
}

array nan_to_num(const array& a, float nan, const std::optional<float>& posinf,
                 const std::optional<float>& neginf, StreamOrDevice s) {
  auto wide = [](const std::optional<float>& value) -> std::optional<double> { return value; };
  return nan_to_num(a, double{nan}, wide(posinf), wide(neginf), s);
}

array nan_to_num(const array& a, double nan, std::optional<double> posinf,
                 std::optional<double> neginf, StreamOrDevice s) {
  Dtype dtype = a.dtype();
  if (!issubdtype(dtype, inexact)) return a;
  if (dtype == complex64) {
    throw std::invalid_argument(text("[nan_to_num] expected a real dtype, got ", dtype));
  }
  finfo limits(dtype);
  auto value = [&](std::optional<double> given, double limit) {
    return array(given.value_or(limit), dtype);
  };
  array result = where(isnan(a, s), array(nan, dtype), a, s);
  result = where(isposinf(a, s), value(posinf, limits.max), result, s);
  return where(isneginf(a, s), value(neginf, limits.min), result, s);
}

array clip(const array& a, const std::optional<array>& a_min, const std::optional<array>& a_max,
           StreamOrDevice s) {
  if (!a_min && !a_max) {
    throw std::invalid_argument("[clip] expected a_min or a_max, got neither");
  }
  array result = a;
  if (a_min) result = maximum(result, *a_min, s);
  if (a_max) result = minimum(result, *a_max, s);
  return result;
}

std::vector<array> divmod(const array& a, const array& b, StreamOrDevice s) {
  Dtype dtype = promote_types(a.dtype(), b.dtype());
  if (dtype == complex64) {
    throw std::invalid_argument(
        text("[divmod] expected real dtypes, got ", a.dtype(), " and ", b.dtype()));
  }
  Shape shape = broadcast_shapes_for("divmod", a.shape(), b.shape());
  checked_size("divmod", shape, dtype);
  return detail::make_all_checked({shape, shape}, {dtype, dtype},
                                  std::make_shared<DivMod>(to_stream(s)),
                                  {astype(a, dtype, s), astype(b, dtype, s)});
}

}  // namespace holdfast
