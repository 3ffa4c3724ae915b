// The values of the element-wise block kernels, for every op, real element type and instruction set
// of this machine, against a plain scalar reference: integers exactly, floats within a bound in
// units in the last place.
#include <stdexcept>

#include "elementwise_test_support.h"

using namespace holdfast;
using namespace holdfast::kernels;
using namespace holdfast::kernels::cpu;
using namespace holdfast::kernels::cpu::test;

namespace {

__extension__ typedef __int128 Wide;

template <typename T>
Wide floor_quotient(T a, T b) {
  Wide quotient = Wide(a) / Wide(b);
  return quotient * Wide(b) != Wide(a) && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

template <typename T>
T integer_power(T base, T exponent) {
  if (std::is_signed_v<T> && exponent < 0) {
    return base == 1 ? T(1) : base == T(-1) ? (exponent % 2 ? T(-1) : T(1)) : T(0);
  }
  uint64_t result = 1, left = static_cast<uint64_t>(exponent);
  // An exponent beyond 64 bits of an even base leaves nothing; an odd base has an order dividing
  // 2^62.
  if (base % 2 == 0 && left > 64) return 0;
  left %= uint64_t{1} << 62;
  for (int bit = 63; bit >= 0; --bit) {
    result *= result;
    if ((left >> bit) & 1) result *= static_cast<uint64_t>(base);
  }
  return static_cast<T>(result);
}

template <typename T>
T unary_reference(Op op, T a) {
  switch (op) {
    case Op::Abs:
      return static_cast<T>(Wide(a) < 0 ? -Wide(a) : Wide(a));
    case Op::Negative:
      return static_cast<T>(-Wide(a));
    case Op::Sign:
      return static_cast<T>(a > 0 ? 1 : a < 0 ? -1 : 0);
    case Op::Square:
      return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(a));
    case Op::BitwiseInvert:
      return static_cast<T>(-Wide(a) - 1);
    case Op::IsNaN:
    case Op::IsInf:
    case Op::IsPosInf:
    case Op::IsNegInf:
    case Op::Imag:
      return 0;
    case Op::IsFinite:
      return 1;
    default:
      return a;  // roundings, real, conjugate
  }
}

template <typename T>
T binary_reference(Op op, T a, T b) {
  constexpr int width = 8 * sizeof(T);
  bool in_width = b >= 0 && static_cast<uint64_t>(b) < width;
  switch (op) {
    case Op::Add:
      return static_cast<T>(Wide(a) + Wide(b));
    case Op::Subtract:
      return static_cast<T>(Wide(a) - Wide(b));
    case Op::Multiply:
      return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
    case Op::FloorDivide:
      return b == 0 ? T(0) : static_cast<T>(floor_quotient(a, b));
    case Op::Remainder:
      return b == 0 ? T(0) : static_cast<T>(Wide(a) - Wide(b) * floor_quotient(a, b));
    case Op::Power:
      return integer_power(a, b);
    case Op::Maximum:
      return a > b ? a : b;
    case Op::Minimum:
      return a < b ? a : b;
    case Op::BitwiseAnd:
      return static_cast<T>(a & b);
    case Op::BitwiseOr:
      return static_cast<T>(a | b);
    case Op::BitwiseXor:
      return static_cast<T>(a ^ b);
    case Op::LeftShift:
      return in_width ? static_cast<T>(static_cast<uint64_t>(a) << b) : T(0);
    case Op::RightShift:
      return in_width ? static_cast<T>(a >> b) : a < 0 ? T(-1) : T(0);
    case Op::Equal:
      return a == b;
    case Op::NotEqual:
      return a != b;
    case Op::Greater:
      return a > b;
    case Op::GreaterEqual:
      return a >= b;
    case Op::Less:
      return a < b;
    default:
      return a <= b;
  }
}

// 1-bit arithmetic, as elementwise.def describes it.
int bool_reference(Op op, int a, int b) {
  switch (op) {
    case Op::BitwiseInvert:
    case Op::LogicalNot:
      return !a;
    case Op::IsNaN:
    case Op::IsInf:
    case Op::IsPosInf:
    case Op::IsNegInf:
    case Op::Imag:
    case Op::Remainder:
      return 0;
    case Op::IsFinite:
      return 1;
    case Op::Add:
    case Op::Maximum:
    case Op::BitwiseOr:
    case Op::LogicalOr:
      return a | b;
    case Op::Subtract:
    case Op::BitwiseXor:
    case Op::LogicalXor:
    case Op::NotEqual:
      return a ^ b;
    case Op::Multiply:
    case Op::Minimum:
    case Op::BitwiseAnd:
    case Op::LogicalAnd:
    case Op::FloorDivide:
      return a & b;
    case Op::Power:
      return a || !b;
    case Op::Equal:
      return a == b;
    case Op::Greater:
      return a > b;
    case Op::GreaterEqual:
      return a >= b;
    case Op::Less:
      return a < b;
    case Op::LessEqual:
      return a <= b;
    default:
      return a;
  }
}

// erfinv by bisection on erf, in long double.
Long inverse_erf(Long x) {
  if (std::isnan(x) || std::fabs(x) > 1) return NAN;
  if (std::fabs(x) == 1) return x * INFINITY;
  Long magnitude = std::fabs(x), low = 0, high = 7;
  // Small arguments: the series, since bisection has absolute steps.
  if (magnitude < 1e-6L)
    return x * (std::sqrt(std::acos(-1.0L)) / 2) * (1 + std::acos(-1.0L) / 12 * x * x);
  for (int i = 0; i < 80; ++i) {
    Long middle = (low + high) / 2;
    bool below =
        magnitude < 0.5L ? std::erf(middle) < magnitude : std::erfc(middle) > 1 - magnitude;
    (below ? low : high) = middle;
  }
  return std::copysign((low + high) / 2, x);
}

Long sigmoid_reference(Long x) {
  return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x));
}

Long logaddexp_reference(Long a, Long b) {
  if (std::isnan(a) || std::isnan(b)) return NAN;
  Long larger = std::fmax(a, b), smaller = std::fmin(a, b);
  if (std::isinf(larger)) return larger;
  return larger + std::log1p(std::exp(smaller - larger));
}

struct FloatFunction {
  Op op;
  Long (*reference)(Long);
  double bound;  // in units in the last place
};

// The bounds of single and double precision; 0.5 means correctly rounded.
const FloatFunction float_functions[] = {
    {Op::Sqrt, [](Long x) { return std::sqrt(x); }, 0.501},
    {Op::Rsqrt, [](Long x) { return 1 / std::sqrt(x); }, 1.5},
    {Op::Exp, [](Long x) { return std::exp(x); }, 3},
    {Op::Expm1, [](Long x) { return std::expm1(x); }, 4},
    {Op::Log, [](Long x) { return std::log(x); }, 4},
    {Op::Log2, [](Long x) { return std::log2(x); }, 4},
    {Op::Log10, [](Long x) { return std::log10(x); }, 4},
    {Op::Log1p, [](Long x) { return std::log1p(x); }, 4},
    {Op::Sin, [](Long x) { return std::sin(x); }, 4},
    {Op::Cos, [](Long x) { return std::cos(x); }, 4},
    {Op::Tan, [](Long x) { return std::tan(x); }, 4},
    {Op::ArcSin, [](Long x) { return std::asin(x); }, 4},
    {Op::ArcCos, [](Long x) { return std::acos(x); }, 4},
    {Op::ArcTan, [](Long x) { return std::atan(x); }, 4},
    {Op::Sinh, [](Long x) { return std::sinh(x); }, 4},
    {Op::Cosh, [](Long x) { return std::cosh(x); }, 4},
    {Op::Tanh, [](Long x) { return std::tanh(x); }, 4},
    {Op::ArcSinh, [](Long x) { return std::asinh(x); }, 4},
    {Op::ArcCosh, [](Long x) { return std::acosh(x); }, 4},
    {Op::ArcTanh, [](Long x) { return std::atanh(x); }, 4},
    {Op::Sigmoid, sigmoid_reference, 4},
    {Op::Erf, [](Long x) { return std::erf(x); }, 4.1},
    {Op::ErfInv, inverse_erf, 5},
};

template <typename T>
void check_float_functions(Lane lane) {
  std::vector<T> a = float_operands<T>(30000);
  for (const FloatFunction& function : float_functions) {
    std::vector<T> out = run_unary<T>(function.op, lane, a);
    double worst = 0;
    T at = 0;
    for (size_t i = 0; i < a.size(); ++i) {
      double distance = ulps(out[i], function.reference(a[i]));
      if (distance > worst) worst = distance, at = a[i];
    }
    INFO(name_of(function.op), " worst at ", static_cast<double>(at));
    CHECK(worst <= function.bound);
  }
}

template <typename T>
T exact_unary_reference(Op op, T a) {
  switch (op) {
    case Op::Abs:
      return std::fabs(a);
    case Op::Negative:
      return -a;
    case Op::Sign:
      return a > 0 ? T(1) : a < 0 ? T(-1) : a == 0 ? T(0) : a;
    case Op::Floor:
      return std::floor(a);
    case Op::Ceil:
      return std::ceil(a);
    case Op::Trunc:
      return std::trunc(a);
    case Op::Round:
      return std::nearbyint(a);
    case Op::Square:
      return a * a;
    case Op::Imag:
      return 0;
    case Op::IsNaN:
      return std::isnan(a);
    case Op::IsInf:
      return std::isinf(a);
    case Op::IsFinite:
      return std::isfinite(a);
    case Op::IsPosInf:
      return std::isinf(a) && a > 0;
    case Op::IsNegInf:
      return std::isinf(a) && a < 0;
    default:
      return a;
  }
}

template <typename T>
T float_remainder(T a, T b) {
  T remainder = std::fmod(a, b);
  if (remainder == 0) return std::copysign(T(0), b);
  return (remainder < 0) != (b < 0) ? remainder + b : remainder;
}

// The floor of the exact quotient. Long double holds the quotient of floats exactly enough.
float float_floor_divide(float a, float b) {
  return static_cast<float>(std::floor(static_cast<Long>(a) / static_cast<Long>(b)));
}
double float_floor_divide(double a, double b) {
  if (b == 0 || !std::isfinite(a) || !std::isfinite(b)) return std::floor(a / b);
  if (!std::isfinite(a / b)) return a / b;
  double remainder = std::fmod(a, b);
  double quotient = std::nearbyint((a - remainder) / b);
  return remainder != 0 && (remainder < 0) != (b < 0) ? quotient - 1 : quotient;
}

template <typename T>
T exact_binary_reference(Op op, T a, T b) {
  bool nan = std::isnan(a) || std::isnan(b);
  switch (op) {
    case Op::Add:
      return a + b;
    case Op::Subtract:
      return a - b;
    case Op::Multiply:
      return a * b;
    case Op::Divide:
      return a / b;
    case Op::FloorDivide:
      return float_floor_divide(a, b);
    case Op::Remainder:
      return float_remainder(a, b);
    case Op::Maximum:
      return nan ? T(NAN) : a > b ? a : b;
    case Op::Minimum:
      return nan ? T(NAN) : a < b ? a : b;
    case Op::Equal:
      return a == b;
    case Op::NotEqual:
      return a != b;
    case Op::Greater:
      return a > b;
    case Op::GreaterEqual:
      return a >= b;
    case Op::Less:
      return a < b;
    default:
      return a <= b;
  }
}

const Op exact_unary_ops[] = {Op::Abs,   Op::Negative, Op::Sign,      Op::Floor,
                              Op::Ceil,  Op::Trunc,    Op::Round,     Op::Square,
                              Op::Real,  Op::Imag,     Op::Conjugate, Op::IsNaN,
                              Op::IsInf, Op::IsFinite, Op::IsPosInf,  Op::IsNegInf};
const Op exact_binary_ops[] = {Op::Add,         Op::Subtract,  Op::Multiply, Op::Divide,
                               Op::FloorDivide, Op::Remainder, Op::Maximum,  Op::Minimum,
                               Op::Equal,       Op::NotEqual,  Op::Greater,  Op::GreaterEqual,
                               Op::Less,        Op::LessEqual};

template <typename T>
void check_exact_float_ops(Lane lane) {
  std::vector<T> a = float_operands<T>(6000);
  for (Op op : exact_unary_ops) {
    bool predicate = elementwise_result_lane(op, lane) == Lane::b8;
    std::vector<uint8_t> flags;
    std::vector<T> out;
    if (predicate)
      flags = run_unary<uint8_t>(op, lane, a);
    else
      out = run_unary<T>(op, lane, a);
    int wrong = 0;
    for (size_t i = 0; i < a.size(); ++i) {
      T expected = exact_unary_reference(op, a[i]), got = predicate ? flags[i] : out[i];
      wrong += !same_bits_or_nan(got, expected);
    }
    INFO(name_of(op));
    CHECK(wrong == 0);
  }
  auto [left, right] = all_pairs(float_operands<T>(150));
  for (Op op : exact_binary_ops) {
    bool predicate = elementwise_result_lane(op, lane) == Lane::b8;
    std::vector<uint8_t> flags;
    std::vector<T> out;
    if (predicate)
      flags = run_binary<uint8_t>(op, lane, left, right);
    else
      out = run_binary<T>(op, lane, left, right);
    int wrong = 0;
    for (size_t i = 0; i < left.size(); ++i) {
      T expected = exact_binary_reference(op, left[i], right[i]),
        got = predicate ? flags[i] : out[i];
      bool zeros = op == Op::Maximum || op == Op::Minimum;  // of +0 and -0 either may be returned
      bool right_result = same_bits_or_nan(got, expected) || (zeros && got == expected);
      if (!right_result && wrong++ == 0) {
        MESSAGE(name_of(op), "(", left[i], ", ", right[i], ") = ", got, ", not ", expected);
      }
    }
    INFO(name_of(op));
    CHECK(wrong == 0);
  }
}

template <typename T>
void check_float_pair_functions(Lane lane) {
  auto [a, b] = all_pairs(float_operands<T>(150));
  struct {
    Op op;
    Long (*reference)(Long, Long);
    double bound;
  } functions[] = {
      {Op::Power, [](Long x, Long y) { return std::pow(x, y); }, 4},
      {Op::ArcTan2, [](Long x, Long y) { return std::atan2(x, y); }, 4},
      {Op::LogAddExp, logaddexp_reference, 4},
  };
  for (auto& function : functions) {
    std::vector<T> out = run_binary<T>(function.op, lane, a, b);
    double worst = 0;
    size_t at = 0;
    for (size_t i = 0; i < a.size(); ++i) {
      Long exact = function.reference(a[i], b[i]);
      double distance = ulps(out[i], exact);
      // logaddexp near its zero: the sum cancels; the error is that of its terms.
      if (function.op == Op::LogAddExp && distance > 4) {
        Long scale = std::fmax(std::fabs(a[i]), Long(0.7));
        distance = static_cast<double>(std::fabs(out[i] - exact) /
                                       (scale * std::numeric_limits<T>::epsilon()));
      }
      if (!(distance <= worst)) worst = distance, at = i;
    }
    INFO(name_of(function.op), " worst at ", static_cast<double>(a[at]), ", ",
         static_cast<double>(b[at]), ": ", static_cast<double>(out[at]));
    CHECK(worst <= function.bound);
  }
}

template <typename T>
void check_integer_ops(Lane lane) {
  std::vector<T> values = integer_operands<T>();
  auto [left, right] = all_pairs(values);
  for (const TableRow& row : table()) {
    if (!accepts(row.in_types, lane) || row.op == Op::Select) continue;
    bool unary = elementwise_operand_count(row.op) == 1;
    bool predicate = elementwise_result_lane(row.op, lane) == Lane::b8;
    const std::vector<T>& a = unary ? values : left;
    std::vector<uint8_t> flags;
    std::vector<T> out;
    if (unary && predicate)
      flags = run_unary<uint8_t>(row.op, lane, a);
    else if (unary)
      out = run_unary<T>(row.op, lane, a);
    else if (predicate)
      flags = run_binary<uint8_t>(row.op, lane, a, right);
    else
      out = run_binary<T>(row.op, lane, a, right);
    int wrong = 0;
    for (size_t i = 0; i < a.size(); ++i) {
      T expected = unary ? unary_reference(row.op, a[i]) : binary_reference(row.op, a[i], right[i]);
      T got = predicate ? static_cast<T>(flags[i]) : out[i];
      if (got != expected && wrong++ == 0) {
        MESSAGE(name_of(row.op), "(", +a[i], ", ", unary ? T(0) : +right[i], ") = ", +got, ", not ",
                +expected);
      }
    }
    INFO(name_of(row.op), " of ", 8 * sizeof(T), " bits");
    CHECK(wrong == 0);
  }
}

}  // namespace

TEST_CASE("a kernel exists exactly where the table accepts the type") {
  for_each_instruction_set([] {
    for (const TableRow& row : table()) {
      for (int i = 0; i < lane_count; ++i) {
        Lane lane = static_cast<Lane>(i);
        INFO(name_of(row.op), " lane ", i);
        CHECK((elementwise_kernel(row.op, lane) != nullptr) == accepts(row.in_types, lane));
      }
    }
  });
  CHECK(name_of(Op::Add) == "Add");
  CHECK(elementwise_result_lane(Op::Add, Lane::i16) == Lane::i16);
  CHECK(elementwise_result_lane(Op::Less, Lane::f64) == Lane::b8);
  CHECK(elementwise_result_lane(Op::Abs, Lane::c64) == Lane::f32);
  CHECK(elementwise_result_lane(Op::Abs, Lane::i8) == Lane::i8);
  CHECK(elementwise_operand_count(Op::Select) == 3);
}

TEST_CASE("integer ops") {
  for_each_instruction_set([] {
    check_integer_ops<uint8_t>(Lane::u8);
    check_integer_ops<uint16_t>(Lane::u16);
    check_integer_ops<uint32_t>(Lane::u32);
    check_integer_ops<uint64_t>(Lane::u64);
    check_integer_ops<int8_t>(Lane::i8);
    check_integer_ops<int16_t>(Lane::i16);
    check_integer_ops<int32_t>(Lane::i32);
    check_integer_ops<int64_t>(Lane::i64);
  });
}

TEST_CASE("8-bit division, every pair of operands") {
  for_each_instruction_set([] {
    std::vector<int8_t> values;
    for (int i = -128; i < 128; ++i) values.push_back(static_cast<int8_t>(i));
    auto [a, b] = all_pairs(values);
    auto quotient = run_binary<int8_t>(Op::FloorDivide, Lane::i8, a, b);
    auto remainder = run_binary<int8_t>(Op::Remainder, Lane::i8, a, b);
    int wrong = 0;
    for (size_t i = 0; i < a.size(); ++i) {
      wrong += quotient[i] != binary_reference(Op::FloorDivide, a[i], b[i]);
      wrong += remainder[i] != binary_reference(Op::Remainder, a[i], b[i]);
    }
    CHECK(wrong == 0);
  });
}

TEST_CASE("bool ops") {
  for_each_instruction_set([] {
    auto [a, b] = all_pairs(std::vector<uint8_t>{0, 1});
    for (const TableRow& row : table()) {
      if (!accepts(row.in_types, Lane::b8) || row.op == Op::Select) continue;
      auto out = elementwise_operand_count(row.op) == 1
                     ? run_unary<uint8_t>(row.op, Lane::b8, a)
                     : run_binary<uint8_t>(row.op, Lane::b8, a, b);
      for (size_t i = 0; i < a.size(); ++i) {
        INFO(name_of(row.op), "(", int(a[i]), ", ", int(b[i]), ")");
        CHECK(int(out[i]) == bool_reference(row.op, a[i], b[i]));
      }
    }
  });
}

TEST_CASE("float ops with an exact result") {
  for_each_instruction_set([] {
    check_exact_float_ops<float>(Lane::f32);
    check_exact_float_ops<double>(Lane::f64);
  });
}

TEST_CASE("float functions within their bounds, special operands included") {
  for_each_instruction_set([] {
    check_float_functions<float>(Lane::f32);
    check_float_functions<double>(Lane::f64);
    check_float_pair_functions<float>(Lane::f32);
    check_float_pair_functions<double>(Lane::f64);
  });
}

TEST_CASE("every instruction set gives the same bits for ops with an exact result") {
  std::vector<float> values = float_operands<float>(100);
  auto [a, b] = all_pairs(values);
  for (Op op : exact_binary_ops) {
    if (elementwise_result_lane(op, Lane::f32) != Lane::f32) continue;
    std::vector<std::vector<float>> results;
    for_each_instruction_set([&, &left = a, &right = b] {
      results.push_back(run_binary<float>(op, Lane::f32, left, right));
    });
    for (const auto& result : results) {
      int different = 0;
      for (size_t i = 0; i < result.size(); ++i)
        different += !same_bits_or_nan(result[i], results[0][i]);
      CHECK(different == 0);
    }
  }
}

TEST_CASE("an instruction set can be forced, one that is not available cannot") {
  InstructionSet best = instruction_set();
  force_instruction_set(InstructionSet::baseline);
  CHECK(instruction_set() == InstructionSet::baseline);
  unforce_instruction_set();
  CHECK(instruction_set() == best);
  auto available = available_instruction_sets();
  for (InstructionSet set :
       {InstructionSet::baseline, InstructionSet::avx2, InstructionSet::avx512}) {
    if (std::find(available.begin(), available.end(), set) != available.end()) continue;
    CHECK_THROWS_AS(force_instruction_set(set), std::invalid_argument);
  }
  CHECK(available_instruction_sets().front() == InstructionSet::baseline);
  CHECK(available_instruction_sets().back() == best);
}
