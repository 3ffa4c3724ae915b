// Rules for shapes, dtypes and axes that users share with the ops.
#include <holdfast/utils.h>

#include <stdexcept>
#include <thread>

#include "base/text.h"

namespace holdfast {

namespace {

// Set while the library is loaded, which the main thread does.
const std::thread::id main_thread = std::this_thread::get_id();

// 2^exponent for any exponent of a double.
constexpr double power_of_two(int exponent) {
  double result = 1.0;
  for (; exponent > 0; --exponent) result *= 2.0;
  for (; exponent < 0; ++exponent) result *= 0.5;
  return result;
}

struct FloatFormat {
  int bits;
  int fraction_bits;
  int max_exponent;  // of the largest finite number, as in 1.11… * 2^max_exponent
};

}  // namespace

bool is_main_thread() { return std::this_thread::get_id() == main_thread; }

Dtype result_type(const array& a, const array& b) { return promote_types(a.dtype(), b.dtype()); }

Dtype result_type(const array& a, const array& b, const array& c) {
  return promote_types(result_type(a, b), c.dtype());
}

Dtype result_type(const std::vector<array>& arrays) {
  Dtype result = bool_;
  for (const array& a : arrays) result = promote_types(result, a.dtype());
  return result;
}

Shape broadcast_shapes(const Shape& a, const Shape& b) {
  const Shape& longer = a.size() >= b.size() ? a : b;
  const Shape& shorter = a.size() >= b.size() ? b : a;
  Shape result = longer;
  size_t skip = longer.size() - shorter.size();
  for (size_t i = 0; i < shorter.size(); ++i) {
    ShapeElem& dim = result[skip + i];
    if (shorter[i] == dim || shorter[i] == 1) continue;
    if (dim != 1) {
      throw std::invalid_argument(
          text("[broadcast_shapes] expected equal dimensions or 1, got shapes ", a, " and ", b));
    }
    dim = shorter[i];
  }
  return result;
}

void throw_shape_overflow(std::string_view op, const std::string& value) {
  throw std::overflow_error(
      text("[", op.empty() ? "shape" : op, "] a dimension must fit in 32 bits, got ", value));
}

int normalize_axis_index(int axis, int ndim, const std::string& message_prefix) {
  if (axis < -ndim || axis >= ndim) {
    throw std::invalid_argument(
        text(message_prefix.empty() ? "[normalize_axis_index] " : message_prefix, "axis ", axis,
             " is out of range for an array with ", ndim, " dimensions"));
  }
  return axis < 0 ? axis + ndim : axis;
}

int next_power_of_2(int n) {
  if (n > 1 << 30) {
    throw std::overflow_error(text("[next_power_of_2] expected at most 2^30, got ", n));
  }
  int result = 1;
  while (result < n) result *= 2;
  return result;
}

finfo::finfo(Dtype type) : dtype(type) {
  FloatFormat format;
  switch (type) {
    case Dtype::Val::float16:
      format = {16, 10, 15};
      break;
    case Dtype::Val::bfloat16:
      format = {16, 7, 127};
      break;
    case Dtype::Val::complex64:
      dtype = float32;
      [[fallthrough]];
    case Dtype::Val::float32:
      format = {32, 23, 127};
      break;
    case Dtype::Val::float64:
      format = {64, 52, 1023};
      break;
    default:
      throw std::invalid_argument(text("[finfo] expected a floating or complex dtype, got ", type));
  }
  bits = format.bits;
  eps = power_of_two(-format.fraction_bits);
  max = (2.0 - eps) * power_of_two(format.max_exponent);
  min = -max;
  smallest_normal = power_of_two(1 - format.max_exponent);
}

iinfo::iinfo(Dtype type) : dtype(type) {
  if (!issubdtype(type, integer)) {
    throw std::invalid_argument(text("[iinfo] expected an integer dtype, got ", type));
  }
  int bits = 8 * type.size();
  bool is_signed = issubdtype(type, signedinteger);
  max = std::numeric_limits<uint64_t>::max() >> (64 - bits + (is_signed ? 1 : 0));
  min = is_signed ? -static_cast<int64_t>(max) - 1 : 0;
}

}  // namespace holdfast
