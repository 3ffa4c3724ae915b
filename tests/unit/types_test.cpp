// The half types and complex64_t of types.h. The half conversions are checked for every half, and
// for the floats at and beside every rounding boundary, against arithmetic in double.
#include <doctest/doctest.h>

#include <holdfast/types.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

using namespace holdfast;

namespace {

// The value of a half from its fields; no NaN.
double value_of(uint16_t bits, int exponent_bits) {
  int mantissa_bits = 15 - exponent_bits, bias = (1 << (exponent_bits - 1)) - 1;
  int exponent = (bits & 0x7fff) >> mantissa_bits, mantissa = bits & ((1 << mantissa_bits) - 1);
  double magnitude;
  if (exponent == (1 << exponent_bits) - 1)
    magnitude = INFINITY;
  else if (exponent == 0)
    magnitude = std::ldexp(mantissa, 1 - bias - mantissa_bits);
  else
    magnitude = std::ldexp(mantissa + (1 << mantissa_bits), exponent - bias - mantissa_bits);
  return bits & 0x8000 ? -magnitude : magnitude;
}

bool is_nan_half(uint16_t bits, int exponent_bits) {
  uint16_t infinity = static_cast<uint16_t>(((1 << exponent_bits) - 1) << (15 - exponent_bits));
  return (bits & 0x7fff) > infinity;
}

template <typename T>
void check_all_halves(int exponent_bits) {
  int wrong = 0;
  for (uint32_t i = 0; i <= 0xffff; ++i) {
    uint16_t bits = static_cast<uint16_t>(i);
    float value = T::from_bits(bits);
    if (is_nan_half(bits, exponent_bits)) {
      wrong += !std::isnan(value);
      wrong += !is_nan_half(T(value).bits_, exponent_bits);
      wrong += (T(value).bits_ & 0x8000) != (bits & 0x8000);
    } else {
      wrong += value != value_of(bits, exponent_bits);
      wrong += std::signbit(value) != ((bits & 0x8000) != 0);
      wrong += T(value).bits_ != bits;
    }
  }
  CHECK(wrong == 0);
}

// Between each two neighbouring halves: the floats at, just below and just above the middle.
template <typename T>
void check_rounding(int exponent_bits) {
  uint16_t infinity = static_cast<uint16_t>(((1 << exponent_bits) - 1) << (15 - exponent_bits));
  int wrong = 0;
  for (uint16_t low = 0; low < infinity; ++low) {
    uint16_t high = static_cast<uint16_t>(low + 1);
    double low_value = value_of(low, exponent_bits), high_value = value_of(high, exponent_bits);
    // The step above the largest finite value has the width of the one below it.
    if (high == infinity) high_value = low_value + (low_value - value_of(low - 1, exponent_bits));
    double middle = (low_value + high_value) / 2;
    float at = static_cast<float>(middle);
    if (static_cast<double>(at) != middle) continue;  // below the smallest float
    uint16_t even = low % 2 == 0 ? low : high;
    wrong += T(at).bits_ != even;
    wrong += T(std::nextafterf(at, 0.0f)).bits_ != low;
    wrong += T(std::nextafterf(at, INFINITY)).bits_ != high;
    wrong += T(-at).bits_ != (even | 0x8000);
  }
  CHECK(wrong == 0);
}

}  // namespace

TEST_CASE("every float16 converts to its value and back") { check_all_halves<float16_t>(5); }
TEST_CASE("every bfloat16 converts to its value and back") { check_all_halves<bfloat16_t>(8); }
TEST_CASE("float16 rounds to nearest even") { check_rounding<float16_t>(5); }
TEST_CASE("bfloat16 rounds to nearest even") { check_rounding<bfloat16_t>(8); }

TEST_CASE("halves: extremes") {
  CHECK(float16_t(65504.0f).bits_ == 0x7bff);
  CHECK(float16_t(65520.0f).bits_ == 0x7c00);
  CHECK(float16_t(1e30f).bits_ == 0x7c00);
  CHECK(float16_t(-INFINITY).bits_ == 0xfc00);
  CHECK(float16_t(std::numeric_limits<float>::denorm_min()).bits_ == 0);
  CHECK(bfloat16_t(std::numeric_limits<float>::max()).bits_ == 0x7f80);
  CHECK(std::isnan(float(bfloat16_t(std::bit_cast<float>(0x7f800001u)))));
  CHECK(std::isnan(float(float16_t(std::bit_cast<float>(0x7f800001u)))));
}

TEST_CASE("halves: arithmetic rounds to the half, mixed arithmetic widens") {
  float16_t a = 2048.0f, b = 1.0f;
  CHECK(float(a + b) == 2048.0f);
  CHECK(a + 1.0f == 2049.0f);
  CHECK(float(-a) == -2048.0f);
  a += float16_t(2.0f);
  CHECK(float(a) == 2050.0f);
  CHECK(float16_t(1.0f) < float16_t(2.0f));
  CHECK(float16_t(0.0f) == float16_t(-0.0f));
  float16_t nan = NAN;
  CHECK_FALSE(nan == nan);
  CHECK(float(bfloat16_t(3.0f) * bfloat16_t(0.5f)) == 1.5f);
}

TEST_CASE("complex64_t: order and remainder") {
  CHECK(complex64_t(1, 5) < complex64_t(2, 0));
  CHECK(complex64_t(1, 1) < complex64_t(1, 2));
  CHECK(complex64_t(1, 2) >= complex64_t(1, 2));
  CHECK_FALSE(complex64_t(1, 2) > complex64_t(1, 2));
  complex64_t remainder = complex64_t(-7, 7) % complex64_t(3, -3);
  CHECK(remainder.real() == 2);
  CHECK(remainder.imag() == -2);
}
