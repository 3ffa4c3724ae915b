// NaN and infinity: programs in which one comes up, and twins whose numbers stay finite, or in
// which one is given.
#include <limits>

#include "validation/cases.h"

namespace holdfast::testing {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

void logarithm(float x) {
  OwnStream s;
  eval(log(array({1.0f, x, 2.0f}), s));
}

void divide_in_half_precision(float divisor) {
  OwnStream s;
  array zeros = astype(array({0.0f, 0.0f}), float16, s);
  array divisors = astype(array({1.0f, divisor}), float16, s);
  eval(zeros, divisors);
  eval(divide(zeros, divisors, s));
}

// What a later op makes of a NaN is not its fault.
void chain(float x) {
  OwnStream s;
  array y = sqrt(array({4.0f, x}), s);
  eval(y);
  array z = exp(y, s);
  eval(z);
  eval(sum(z, false, s));
}

void divide_by(float divisor) {
  OwnStream s;
  eval(divide(array({-1.0f, 1.0f}), array({divisor, 2.0f}), s));
}

void exponential(float x) {
  OwnStream s;
  eval(exp(array({0.0f, x}), s));
}

void narrow(float x) {
  OwnStream s;
  eval(astype(array({x, 1.0f}), float16, s));
}

// An infinity that was given, as masks have it, is nobody's doing.
void mask() {
  OwnStream s;
  array x = array({-1.0f, 1.0f});
  array masked = where(greater(x, array(0.0f), s), x, array(-infinity), s);
  eval(masked);
  eval(softmax(masked, -1, false, s));
  eval(full({4}, array(infinity), s));
}

// An op writes every other number. A NaN between them was there before, and stays.
void write_between(float x) {
  OwnStream s;
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  array numbers({nan, 0.0f, nan, 0.0f});
  eval(numbers);
  eval(lone_op("EveryOther", s, [numbers, x](Encoder& encoder, array& out) {
    array target = numbers;
    encoder.output(target);
    encoder.output(out);
    float* to = target.data<float>();
    encoder.native("write", 1, 0, [to, x](int64_t, int64_t) { to[1] = to[3] = x; });
  }));
}

// The memory of the result has held the same infinity before.
void in_recycled_memory(float divisor) {
  OwnStream s;
  // Held, so that the result gets memory of its own.
  array dividends({1.0f, 1.0f}), divisors({1.0f, divisor});
  {
    std::vector<array> masks;
    for (int i = 0; i < 16; ++i)
      masks.push_back(add(array({0.0f, 0.0f}), array({0.0f, infinity}), s));
    eval(masks);
  }
  eval(divide(dividends, divisors, s));
}

#define ORIGIN(id, name, planted, clean, ...)                               \
  {                                                                         \
    "nan." id, name, "nan", [] { planted; }, [] { clean; }, { __VA_ARGS__ } \
  }

const ValidationCase cases[] = {
    ORIGIN("made", "the logarithm of a negative number", logarithm(-1), logarithm(3),
           {"value", "nan"}, {"byte", "4"}, {"count", "1"}, {"numbers", "3"}),
    ORIGIN("made", "zero divided by zero, in half precision", divide_in_half_precision(0),
           divide_in_half_precision(2), {"byte", "2"}, {"numbers", "2"}),
    ORIGIN("made", "the first op of a chain, not those that hand its NaN on", chain(-1), chain(1),
           {"op", "Sqrt"}, {"byte", "4"}),
    ORIGIN("made", "NaN is written between NaN that were there before",
           write_between(std::numeric_limits<float>::quiet_NaN()), write_between(1),
           {"op", "EveryOther"}, {"byte", "4"}, {"count", "2"}),
    ORIGIN("infinity", "a number is divided by zero", divide_by(0), divide_by(1), {"value", "-inf"},
           {"byte", "0"}, {"severity", "warning"}),
    ORIGIN("infinity", "exp of a large number; a mask", exponential(200), mask(), {"value", "inf"},
           {"byte", "4"}),
    ORIGIN("infinity", "an infinity where an older buffer of the same memory had one",
           in_recycled_memory(0), in_recycled_memory(2), {"op", "Divide"}, {"byte", "4"}),
    ORIGIN("infinity", "a number that is too large for its new type", narrow(1e6f), narrow(1e3f),
           {"value", "inf"}, {"buffer_bytes", "4"}),
};

}  // namespace

std::span<const ValidationCase> origin_cases() { return cases; }

}  // namespace holdfast::testing
