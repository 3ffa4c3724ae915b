// Small helpers: dtype and shape rules, type limits, printing.
#pragma once

#include <limits>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include <holdfast/array.h>
#include <holdfast/stream.h>

namespace holdfast {

struct PrintOptions {
  int precision{-1};
};
void set_printoptions(PrintOptions options);

struct PrintFormatter {
  void print(std::ostream& os, bool value);
  void print(std::ostream& os, int16_t value);
  void print(std::ostream& os, uint16_t value);
  void print(std::ostream& os, int32_t value);
  void print(std::ostream& os, uint32_t value);
  void print(std::ostream& os, int64_t value);
  void print(std::ostream& os, uint64_t value);
  void print(std::ostream& os, float16_t value);
  void print(std::ostream& os, bfloat16_t value);
  void print(std::ostream& os, float value);
  void print(std::ostream& os, double value);
  void print(std::ostream& os, complex64_t value);
  bool capitalize_bool{false};
  PrintOptions format_options;
};
PrintFormatter& get_global_formatter();

bool is_main_thread();

Dtype result_type(const array& a, const array& b);
Dtype result_type(const array& a, const array& b, const array& c);
Dtype result_type(const std::vector<array>& arrays);

Shape broadcast_shapes(const Shape& a, const Shape& b);

[[noreturn]] void throw_shape_overflow(std::string_view op, const std::string& value);
// A dimension as ShapeElem; std::overflow_error when it does not fit.
template <typename T>
ShapeElem safe_cast(T dim, std::string_view op = "") {
  if (dim > static_cast<T>(std::numeric_limits<ShapeElem>::max()) ||
      (std::is_signed_v<T> && dim < static_cast<T>(std::numeric_limits<ShapeElem>::min()))) {
    throw_shape_overflow(op, std::to_string(dim));
  }
  return static_cast<ShapeElem>(dim);
}

// Maps a negative axis to its place; std::invalid_argument when out of range.
int normalize_axis_index(int axis, int ndim, const std::string& message_prefix = "");

inline bool is_power_of_2(int n) { return n > 0 && (n & (n - 1)) == 0; }
int next_power_of_2(int n);

struct finfo {
  explicit finfo(Dtype dtype);
  Dtype dtype;
  int bits;
  double min, max, eps, smallest_normal;
};
struct iinfo {
  explicit iinfo(Dtype dtype);
  Dtype dtype;
  int64_t min;
  uint64_t max;
};

std::ostream& operator<<(std::ostream& os, array a);
std::ostream& operator<<(std::ostream& os, const complex64_t& value);
std::ostream& operator<<(std::ostream& os, float16_t value);
std::ostream& operator<<(std::ostream& os, bfloat16_t value);

}  // namespace holdfast
