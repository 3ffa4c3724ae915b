// Arrays and their elements as text.
#include <holdfast/utils.h>

#include <algorithm>
#include <cmath>
#include <iomanip>

namespace holdfast {

namespace {

// A dimension longer than this shows only its first and last elements.
constexpr int longest_shown = 6;
constexpr int shown_at_each_end = 3;
// The width of "array(": rows start below the first one.
constexpr int indentation = 6;

// Behind the point of the smallest double: there are none to show after them.
constexpr int most_digits = 1074;

// Prints a floating number without leaving a mark on the stream.
template <typename T>
void print_number(std::ostream& os, const PrintOptions& options, T value) {
  if (options.precision < 0) {
    os << value;
    return;
  }
  std::ios_base::fmtflags flags = os.flags();
  std::streamsize precision = os.precision();
  os << std::fixed << std::setprecision(std::min(options.precision, most_digits)) << value;
  os.flags(flags);
  os.precision(precision);
}

class ArrayPrinter {
 public:
  ArrayPrinter(std::ostream& os, const array& a) : os_(os), array_(a) {}

  void print() {
    os_ << "array(";
    print_dimension(0, 0);
    os_ << ", dtype=" << array_.dtype() << ")";
  }

 private:
  void print_dimension(size_t dimension, int64_t offset) {
    if (dimension == array_.ndim()) return print_element(offset);
    int64_t size = array_.shape()[dimension];
    int64_t stride = array_.strides()[dimension];
    bool is_row = dimension + 1 == array_.ndim();
    os_ << "[";
    for (int64_t i = 0; i < size; ++i) {
      if (i > 0) separate(dimension, is_row);
      if (size > longest_shown && i == shown_at_each_end) {
        os_ << "...";
        separate(dimension, is_row);
        i = size - shown_at_each_end;
      }
      print_dimension(dimension + 1, offset + i * stride);
    }
    os_ << "]";
  }

  void separate(size_t dimension, bool is_row) {
    os_ << (is_row ? ", " : ",\n");
    if (!is_row) os_ << std::string(indentation + dimension + 1, ' ');
  }

  void print_element(int64_t offset) {
    PrintFormatter& formatter = get_global_formatter();
    dispatch_dtype(array_.dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      T value = array_.data<T>()[offset];
      if constexpr (sizeof(T) == 1 && !std::is_same_v<T, bool>) {
        formatter.print(os_, static_cast<int16_t>(value));
      } else {
        formatter.print(os_, value);
      }
    });
  }

  std::ostream& os_;
  const array& array_;
};

}  // namespace

PrintFormatter& get_global_formatter() {
  static PrintFormatter formatter;
  return formatter;
}

void set_printoptions(PrintOptions options) { get_global_formatter().format_options = options; }

void PrintFormatter::print(std::ostream& os, bool value) {
  if (capitalize_bool) {
    os << (value ? "True" : "False");
  } else {
    os << (value ? "true" : "false");
  }
}
void PrintFormatter::print(std::ostream& os, int16_t value) { os << value; }
void PrintFormatter::print(std::ostream& os, uint16_t value) { os << value; }
void PrintFormatter::print(std::ostream& os, int32_t value) { os << value; }
void PrintFormatter::print(std::ostream& os, uint32_t value) { os << value; }
void PrintFormatter::print(std::ostream& os, int64_t value) { os << value; }
void PrintFormatter::print(std::ostream& os, uint64_t value) { os << value; }
void PrintFormatter::print(std::ostream& os, float16_t value) {
  print_number(os, format_options, static_cast<float>(value));
}
void PrintFormatter::print(std::ostream& os, bfloat16_t value) {
  print_number(os, format_options, static_cast<float>(value));
}
void PrintFormatter::print(std::ostream& os, float value) {
  print_number(os, format_options, value);
}
void PrintFormatter::print(std::ostream& os, double value) {
  print_number(os, format_options, value);
}
void PrintFormatter::print(std::ostream& os, complex64_t value) {
  print_number(os, format_options, value.real());
  os << (std::signbit(value.imag()) ? "-" : "+");
  print_number(os, format_options, std::abs(value.imag()));
  os << "j";
}

std::ostream& operator<<(std::ostream& os, array a) {
  a.eval();
  ArrayPrinter(os, a).print();
  return os;
}

std::ostream& operator<<(std::ostream& os, const complex64_t& value) {
  get_global_formatter().print(os, value);
  return os;
}

std::ostream& operator<<(std::ostream& os, float16_t value) {
  return os << static_cast<float>(value);
}

std::ostream& operator<<(std::ostream& os, bfloat16_t value) {
  return os << static_cast<float>(value);
}

}  // namespace holdfast
