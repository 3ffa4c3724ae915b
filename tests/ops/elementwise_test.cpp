// Every row of elementwise.def, for every dtype it takes and every kind of view, against
// reference.h. A new row is tested without a line here.
#include <optional>

#include "ops/array_testing.h"
#include "ops/elementwise.h"
#include "ops/reference.h"

using namespace holdfast;
using namespace holdfast::testing;

namespace {

using kernels::ElementwiseOp;

// An element in the widest type of its kind. Everything below works on these, so that nothing but
// reading is compiled once per dtype.
struct Value {
  enum Kind { integer, real, complex } kind;
  WideInt integer_value = 0;
  double real_value = 0;
  WideComplex complex_value;
};

std::vector<Value> wide_values(const array& a) {
  std::vector<Value> result;
  dispatch_dtype(a.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (T element : values_of<T>(a)) {
      if constexpr (std::is_integral_v<T>)
        result.push_back({Value::integer, element, 0, 0});
      else if constexpr (std::is_same_v<T, complex64_t>) {
        result.push_back({Value::complex, 0, 0, WideComplex(element.real(), element.imag())});
      } else {
        result.push_back({Value::real, 0, static_cast<double>(element), 0});
      }
    }
  });
  return result;
}

std::ostream& operator<<(std::ostream& os, const Value& value) {
  switch (value.kind) {
    case Value::integer:
      return os << static_cast<double>(value.integer_value);
    case Value::real:
      return os << value.real_value;
    default:
      return os << value.complex_value;
  }
}

template <typename W>
using UnaryReference = W (*)(W);
template <typename W>
using BinaryReference = W (*)(W, W);

struct UnaryRow {
  ElementwiseOp op;
  array (*function)(array, StreamOrDevice);
  UnaryReference<WideInt> integers;
  UnaryReference<double> reals;
  UnaryReference<WideComplex> complexes;
};
struct BinaryRow {
  ElementwiseOp op;
  array (*function)(array, array, StreamOrDevice);
  BinaryReference<WideInt> integers;
  BinaryReference<double> reals;
  BinaryReference<WideComplex> complexes;
};

// The reference of a row, or null where reference.h has none.
#define FIND_UNARY(Primitive)                         \
  template <typename R, typename W>                   \
  constexpr UnaryReference<W> find_##Primitive() {    \
    if constexpr (requires(W w) { R::Primitive(w); }) \
      return &R::template Primitive<W>;               \
    else                                              \
      return nullptr;                                 \
  }
#define FIND_BINARY(Primitive)                           \
  template <typename R, typename W>                      \
  constexpr BinaryReference<W> find_##Primitive() {      \
    if constexpr (requires(W w) { R::Primitive(w, w); }) \
      return &R::template Primitive<W>;                  \
    else                                                 \
      return nullptr;                                    \
  }
#define UNARY(function, Primitive, ...) FIND_UNARY(Primitive)
#define BINARY(function, Primitive, ...) FIND_BINARY(Primitive)
#include <holdfast/elementwise.def>

#define FOUND(Primitive)                                                         \
  find_##Primitive<Reference, WideInt>(), find_##Primitive<Reference, double>(), \
      find_##Primitive<Reference, WideComplex>()
const UnaryRow unary_rows[] = {
#define UNARY(function, Primitive, ...) {ElementwiseOp::Primitive, function, FOUND(Primitive)},
#include <holdfast/elementwise.def>
};
const BinaryRow binary_rows[] = {
#define BINARY(function, Primitive, ...) {ElementwiseOp::Primitive, function, FOUND(Primitive)},
#include <holdfast/elementwise.def>
};

// What the reference says, or false where there is none.
template <typename Row, typename... Values>
bool find_expected(const Row& row, Value& expected, const Value& first, const Values&... others) {
  expected.kind = first.kind;
  switch (first.kind) {
    case Value::integer:
      if (!row.integers) return false;
      expected.integer_value = row.integers(first.integer_value, others.integer_value...);
      return true;
    case Value::real:
      if (!row.reals) return false;
      expected.real_value = row.reals(first.real_value, others.real_value...);
      return true;
    default:
      if (!row.complexes) return false;
      expected.complex_value = row.complexes(first.complex_value, others.complex_value...);
      return true;
  }
}

// Values that matter for a type: limits, signs, zeros, halves; no complex number on a branch cut.
template <typename T>
std::vector<T> samples() {
  if constexpr (std::is_same_v<T, bool>) {
    return {true, false, false, true, true};
  } else if constexpr (std::is_integral_v<T>) {
    return {T(3),
            T(-1),
            T(0),
            std::numeric_limits<T>::max(),
            T(7),
            std::numeric_limits<T>::min(),
            T(2),
            T(-5),
            T(100),
            T(1),
            T(sizeof(T) * 8 - 1)};
  } else if constexpr (std::is_same_v<T, complex64_t>) {
    return {{0.5f, 0.25f}, {-1.5f, 2.0f},  {1.0f, -1.0f}, {0.25f, -0.75f},
            {3.0f, 0.5f},  {-2.0f, -0.5f}, {0.125f, 1.5f}};
  } else {
    const float infinity = std::numeric_limits<float>::infinity();
    return {T(0.5f),          T(-0.75f), T(2.0f),     T(1.0f),   T(-1.0f),     T(0.0f),
            T(-2.5f),         T(0.25f),  T(infinity), T(10.0f),  T(-infinity), T(3.625f),
            T(std::nanf("")), T(-0.0f),  T(1.5f),     T(-10.0f), T(0.03125f)};
  }
}
// Other values for the second operand of binary ops, out of step with the first ones.
template <typename T>
std::vector<T> second_samples() {
  if constexpr (std::is_same_v<T, bool>) {
    return {true, true, false};
  } else if constexpr (std::is_integral_v<T>) {
    return {T(2), T(1), T(3), T(0), T(5), T(4), T(sizeof(T) * 8)};
  } else if constexpr (std::is_same_v<T, complex64_t>) {
    return {{1.5f, 0.25f}, {0.5f, -2.0f}, {1.0f, 1.0f}, {0.25f, -0.75f}, {2.0f, 0.5f}};
  } else {
    return {T(0.5f), T(2.0f), T(-1.5f), T(3.0f), T(1.0f), T(-0.25f), T(4.0f)};
  }
}

// How far a result may be from the exact one, relative to its size.
double tolerance(Dtype dtype) {
  switch (dtype) {
    case Dtype::Val::float16:
      return 1e-3;
    case Dtype::Val::bfloat16:
      return 8e-3;
    case Dtype::Val::float64:
      return 2e-13;
    case Dtype::Val::complex64:
      return 1e-5;
    default:
      return 2e-6;
  }
}

bool near(double got, double expected, double bound) {
  if (std::isnan(expected)) return std::isnan(got);
  return got == expected || std::abs(got - expected) <= bound;
}

// The integer as a dtype of this size holds it.
WideInt wrapped(WideInt value, Dtype dtype) {
  int bits = 8 * dtype.size();
  WideInt modulus = WideInt(1) << bits;
  value = ((value % modulus) + modulus) % modulus;
  bool is_negative = issubdtype(dtype, signedinteger) && value >= modulus / 2;
  return is_negative ? value - modulus : value;
}

double largest(Dtype dtype) { return finfo(dtype).max; }

// Is `got`, of the given dtype, what the wide result rounds to?
bool matches(const Value& got, const Value& expected, Dtype dtype, double relative) {
  if (dtype == bool_) {
    bool truth =
        expected.integer_value != 0 || expected.real_value != 0 || expected.complex_value != 0.0;
    return (got.integer_value != 0) == truth;
  }
  if (expected.kind == Value::integer)
    return got.integer_value == wrapped(expected.integer_value, dtype);
  if (dtype == complex64) {
    double bound = relative * std::abs(expected.complex_value) + 1e-7;
    return near(got.complex_value.real(), expected.complex_value.real(), bound) &&
           near(got.complex_value.imag(), expected.complex_value.imag(), bound);
  }
  double exact =
      expected.kind == Value::complex ? expected.complex_value.real() : expected.real_value;
  if (std::abs(exact) > largest(dtype))
    return std::isinf(got.real_value) && (got.real_value > 0) == (exact > 0);
  return near(got.real_value, exact, relative * std::abs(exact) + relative * 1e-2);
}

// The dtype the table converts an operand to.
Dtype operand_dtype(ElementwiseOp op, Dtype dtype) {
  switch (elementwise_row(op).rule) {
    case DtypeRule::inexact_:
      return at_least_float(dtype);
    case DtypeRule::logical_:
      return bool_;
    default:
      return dtype;
  }
}
bool is_accepted(ElementwiseOp op, Dtype dtype) {
  int val = static_cast<int>(operand_dtype(op, dtype).val());
  return (elementwise_row(op).accepted >> val & 1) != 0;
}
Dtype expected_result(ElementwiseOp op, Dtype dtype) {
  switch (elementwise_row(op).rule) {
    case DtypeRule::predicate_:
    case DtypeRule::logical_:
      return bool_;
    case DtypeRule::part_:
      return dtype == complex64 ? float32 : dtype;
    default:
      return operand_dtype(op, dtype);
  }
}

// Position of element `i` (row-major in `shape`) in an array of `from`, broadcast to it.
size_t broadcast_position(size_t i, const Shape& shape, const Shape& from) {
  size_t position = 0, stride = 1;
  for (size_t d = shape.size(), f = from.size(); d-- > 0;) {
    size_t index = i % static_cast<size_t>(shape[d]);
    i /= static_cast<size_t>(shape[d]);
    if (f == 0) break;
    --f;
    if (from[f] != 1) position += index * stride;
    stride *= static_cast<size_t>(from[f]);
  }
  return position;
}

// Infinities and zeros in divisions, and negative integer powers, are left to the kernels' tests.
bool is_specified(ElementwiseOp op, const Value& a, const Value& b) {
  bool divides = op == ElementwiseOp::FloorDivide || op == ElementwiseOp::Remainder;
  switch (a.kind) {
    case Value::integer:
      return op != ElementwiseOp::Power || (b.integer_value >= 0 && b.integer_value <= 64);
    case Value::real:
      return !divides ||
             (std::isfinite(a.real_value) && std::isfinite(b.real_value) && b.real_value != 0);
    default:
      return !divides;
  }
}

void check_same_bits(const array& got, const array& expected) {
  std::vector<char> bytes[2];
  for (int k = 0; k < 2; ++k) {
    array dense = contiguous(k == 0 ? got : expected);
    dense.eval();
    bytes[k].assign(dense.data<char>(), dense.data<char>() + dense.nbytes());
  }
  CHECK(bytes[0] == bytes[1]);
}

std::vector<NamedView> sample_views(Dtype dtype, bool second) {
  std::vector<NamedView> views;
  dispatch_dtype(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    views = views_of(second ? second_samples<T>() : samples<T>(), dtype);
  });
  return views;
}

template <typename Row>
void check_refused(const Row& row, const std::function<void()>& call) {
  check_error<std::invalid_argument>(elementwise_row(row.op).function, call);
}

void check_unary(const UnaryRow& row, Dtype dtype) {
  for (const NamedView& input : sample_views(dtype, false)) {
    CAPTURE(input.name);
    array out = row.function(input.view, {});
    REQUIRE(out.shape() == input.view.shape());
    REQUIRE(out.dtype() == expected_result(row.op, dtype));
    Dtype operand = operand_dtype(row.op, dtype);
    Reference::width = operand == bool_ ? 1 : 8 * operand.size();
    std::vector<Value> operands = wide_values(astype(input.view, operand)),
                       results = wide_values(out);
    for (size_t i = 0; i < results.size(); ++i) {
      Value expected;
      if (!find_expected(row, expected, operands[i])) break;
      CHECK_MESSAGE(matches(results[i], expected, out.dtype(), tolerance(operand)), operands[i],
                    " gave ", results[i], ", expected ", expected);
    }
    // The same bits as from a dense copy of the input: a layout never changes a result.
    check_same_bits(out, row.function(copy(input.view), {}));
  }
}

void check_binary(const BinaryRow& row, Dtype dtype) {
  std::vector<NamedView> lefts = sample_views(dtype, false);
  std::vector<NamedView> rights = sample_views(dtype, true);
  array dense = rights[0].view;
  rights.push_back({"a row", contiguous(slice(dense, {0, 0}, {1, 4}))});
  rights.push_back({"a column", slice(dense, {0, 1}, {3, 2})});
  for (NamedView& right : rights) right.view.eval();
  auto is = [](const NamedView& view, std::string_view name) { return view.name == name; };
  for (const NamedView& left : lefts) {
    for (const NamedView& right : rights) {
      // Every view of one side against a dense array, a row, a column and a scalar on the other.
      bool left_plain = is(left, "contiguous") || is(left, "0-d");
      bool right_plain = is(right, "contiguous") || is(right, "0-d") || is(right, "a row") ||
                         is(right, "a column");
      bool only_one_empty = is(left, "empty") != is(right, "empty");
      bool broadcasts_empty = is(left, "0-d") || is(right, "0-d") || is(right, "a row");
      if (!left_plain && !right_plain) continue;
      if (only_one_empty && !broadcasts_empty) continue;
      CAPTURE(left.name);
      CAPTURE(right.name);
      array out = row.function(left.view, right.view, {});
      REQUIRE(out.shape() == broadcast_shapes(left.view.shape(), right.view.shape()));
      REQUIRE(out.dtype() == expected_result(row.op, dtype));
      Dtype operand = operand_dtype(row.op, dtype);
      Reference::width = operand == bool_ ? 1 : 8 * operand.size();
      std::vector<Value> a = wide_values(astype(left.view, operand)),
                         b = wide_values(astype(right.view, operand));
      std::vector<Value> results = wide_values(out);
      for (size_t i = 0; i < results.size(); ++i) {
        const Value& x = a[broadcast_position(i, out.shape(), left.view.shape())];
        const Value& y = b[broadcast_position(i, out.shape(), right.view.shape())];
        Value expected;
        if (!is_specified(row.op, x, y)) continue;
        if (!find_expected(row, expected, x, y)) break;
        CHECK_MESSAGE(matches(results[i], expected, out.dtype(), tolerance(operand)), x, " and ", y,
                      " gave ", results[i], ", expected ", expected);
      }
    }
  }
}

}  // namespace

TEST_CASE("unary rows: every dtype, every view") {
  for (const UnaryRow& row : unary_rows) {
    CAPTURE(std::string(elementwise_row(row.op).function));
    for (Dtype dtype : all_dtypes()) {
      CAPTURE(std::string(dtype_name(dtype)));
      if (is_accepted(row.op, dtype)) {
        check_unary(row, dtype);
      } else {
        check_refused(row, [&] { row.function(array({1, 2}, dtype), {}); });
      }
    }
  }
}

TEST_CASE("binary rows: every dtype, every pair of views") {
  for (const BinaryRow& row : binary_rows) {
    CAPTURE(std::string(elementwise_row(row.op).function));
    for (Dtype dtype : all_dtypes()) {
      CAPTURE(std::string(dtype_name(dtype)));
      if (is_accepted(row.op, dtype)) {
        check_binary(row, dtype);
      } else {
        check_refused(row, [&] { row.function(array({1, 2}, dtype), array({1, 2}, dtype), {}); });
      }
    }
    check_error<std::invalid_argument>(elementwise_row(row.op).function, [&] {
      row.function(zeros({2, 3}, is_accepted(row.op, int32) ? int32 : float32),
                   zeros({4}, is_accepted(row.op, int32) ? int32 : float32), {});
    });
  }
}

TEST_CASE("where selects for every dtype and view") {
  array condition = array({1, 0, 2, 0}, {4}, int32);
  for (Dtype dtype : all_dtypes()) {
    CAPTURE(std::string(dtype_name(dtype)));
    for (const NamedView& x : sample_views(dtype, true)) {
      CAPTURE(x.name);
      array y(1, dtype);
      array out = where(condition, x.view, y);
      CHECK(out.dtype() == dtype);
      Shape shape = broadcast_shapes(x.view.shape(), {4});
      REQUIRE(out.shape() == shape);
      std::vector<Value> elements = wide_values(x.view), one = wide_values(y),
                         results = wide_values(out);
      for (size_t i = 0; i < out.size(); ++i) {
        const Value& expected =
            i % 4 % 2 == 0 ? elements[broadcast_position(i, shape, x.view.shape())] : one[0];
        CHECK(matches(results[i], expected, dtype, 0));
      }
    }
  }
  CHECK(where(array(true), array(1, int32), array(2.5f)).dtype() == float32);
  check_error<std::invalid_argument>("where", [] { where(zeros({3}), zeros({2}), zeros({2})); });
}

TEST_CASE("binary ops promote their operands") {
  CHECK(add(array(1, int8), array(1, uint8)).dtype() == int16);
  CHECK((array({1, 2}, int32) + 1.5f).dtype() == float32);
  CHECK((array({1, 2}, float16) + 1).dtype() == float16);
  CHECK((array({1, 2}, float16) * 2.0f).dtype() == float32);
  CHECK((array({1, 2}, int32) / 2).dtype() == float32);
  CHECK((array({1, 2}, int32) == 1).dtype() == bool_);
  CHECK((complex64_t(0, 1) * array({1, 2}, int32)).dtype() == complex64);
  check_values<float>(1.0f - array({1, 2}, int32), {2}, {0.0f, -1.0f});
  check_values<int>(-array({1, -2}, int32), {2}, {-1, 2});
  check_values<int>(~array({1, -2}, int32), {2}, {-2, 1});
  check_values<int>(array({7, -7}, int32) % 4, {2}, {3, 1});
  check_values<bool>(array({true, false}) && array({true, true}), {2}, {true, false});
  check_values<bool>(2 > array({1, 2, 3}, int32), {3}, {true, false, false});
}

TEST_CASE("astype converts every dtype to every other, and itself for free") {
  for (Dtype from : all_dtypes()) {
    for (const NamedView& input : sample_views(from, false)) {
      for (Dtype to : all_dtypes()) {
        CAPTURE(input.name);
        CAPTURE(std::string(dtype_name(from)));
        CAPTURE(std::string(dtype_name(to)));
        array out = astype(input.view, to);
        if (from == to) CHECK(out.id() == input.view.id());
        CHECK(out.dtype() == to);
        std::optional<array> expected;
        dispatch_dtype(from, [&](auto tag) {
          std::vector<typename decltype(tag)::type> elements =
              values_of<typename decltype(tag)::type>(input.view);
          expected = array(elements.begin(), input.view.shape(), to);  // converts on the host
        });
        std::vector<Value> got = wide_values(out), wanted = wide_values(*expected);
        REQUIRE(got.size() == wanted.size());
        for (size_t i = 0; i < got.size(); ++i) {
          CHECK_MESSAGE(matches(got[i], wanted[i], to, 0), got[i], " instead of ", wanted[i]);
        }
      }
    }
  }
}

TEST_CASE("divmod gives quotient and remainder as siblings") {
  std::vector<array> both = divmod(array({7, -7, 8}, int32), array(3, int32));
  REQUIRE(both.size() == 2);
  check_values<int>(both[0], {3}, {2, -3, 2});
  check_values<int>(both[1], {3}, {1, 2, 2});
  array remainder_only = divmod(array({7.5f, -7.0f}), transpose(array({2.0f, 4.0f}, {1, 2})))[1];
  check_values<float>(remainder_only, {2, 2}, {1.5f, 1.0f, 3.5f, 1.0f});
  CHECK(divmod(zeros({0, 2}), zeros({2}))[0].shape() == Shape{0, 2});
  check_error<std::invalid_argument>("divmod", [] { divmod(array(complex64_t(1, 1)), array(1)); });
  check_error<std::invalid_argument>("divmod", [] { divmod(zeros({2}), zeros({3})); });
}

TEST_CASE("round, clip, nan_to_num, reciprocal, degrees, radians") {
  check_values<float>(round(array({1.25f, 2.5f, -3.5f, 0.75f})), {4}, {1.0f, 2.0f, -4.0f, 1.0f});
  check_values<float>(round(array({1.25f, -0.375f}), 1), {2}, {1.2f, -0.4f});
  check_values<int>(round(array({125, 135}, int32), -1), {2}, {120, 140});
  check_values<int>(round(array({125, 135}, int32), 2), {2}, {125, 135});
  // More digits than float32 has.
  check_values<int>(round(array({123456789, -123456785, 16777217, -5}, int32), -1), {4},
                    {123456790, -123456780, 16777220, 0});
  check_values<int64_t>(round(array(1234567890123456789, int64), -2), {}, {1234567890123456800});
  check_values<uint8_t>(round(array({250, 15, 25, 4}, uint8), -1), {4}, {250, 20, 20, 0});
  check_values<int8_t>(round(array({100, -128}, int8), -3), {2}, {0, 0});
  check_values<float>(clip(array({1.0f, 5.0f, 9.0f}), array(2.5f), array(6.0f)), {3},
                      {2.5f, 5.0f, 6.0f});
  check_values<float>(clip(array({1, 5, 9}, int32), array(2.5f), std::nullopt), {3},
                      {2.5f, 5.0f, 9.0f});
  check_error<std::invalid_argument>("clip", [] { clip(array(1.0f)); });
  float infinity = std::numeric_limits<float>::infinity();
  check_values<float>(
      nan_to_num(array({std::nanf(""), infinity, -infinity, 1.0f})), {4},
      {0.0f, std::numeric_limits<float>::max(), std::numeric_limits<float>::lowest(), 1.0f});
  check_values<float>(nan_to_num(array({std::nanf(""), infinity, -infinity}), 7.0f, 8.0f, 9.0f),
                      {3}, {7.0f, 8.0f, 9.0f});
  CHECK(values_of<float16_t>(nan_to_num(array({infinity}, float16)))[0] == 65504.0f);
  array integers({1, 2}, int32);
  CHECK(nan_to_num(integers).id() == integers.id());
  CHECK(positive(integers).id() == integers.id());
  check_error<std::invalid_argument>("nan_to_num", [] { nan_to_num(array(complex64_t(1, 1))); });
  check_values<float>(reciprocal(array({2, 4}, int32)), {2}, {0.5f, 0.25f});
  CHECK(values_of<float>(degrees(array({1.0f})))[0] == doctest::Approx(57.29578));
  CHECK(values_of<float>(radians(array({180.0f})))[0] == doctest::Approx(3.1415927));
  CHECK(radians(array({180.0f}, float16)).dtype() == float16);
}
