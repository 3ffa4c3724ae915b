#include "devices/cpu/jit/kernel_log.h"

#include <bit>
#include <cctype>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "devices/cpu/jit/dispatch.h"

namespace holdfast::jit {
namespace {

using Kind = LogMessage::Kind;

// The values of a message, one after the other.
class Values {
 public:
  explicit Values(const LogMessage& message) : message_(message) {}

  bool has_next() const { return next_ < (message_.what & 255) && next_ < LogMessage::most_values; }
  uint64_t bits() const { return message_.values[next_]; }
  Kind kind() const { return static_cast<Kind>(message_.kinds >> (2 * next_) & 3); }
  double as_real() const {
    if (kind() == Kind::real)
      return static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(bits())));
    return kind() == Kind::signed_integer ? static_cast<double>(static_cast<int64_t>(bits()))
                                          : static_cast<double>(bits());
  }
  uint64_t as_integer() const {
    return kind() == Kind::real ? static_cast<uint64_t>(static_cast<int64_t>(as_real())) : bits();
  }
  void advance() { ++next_; }

 private:
  const LogMessage& message_;
  unsigned next_ = 0;
};

// One conversion of a format, from its `%` on.
struct Conversion {
  std::string flags;   // with width and precision
  unsigned count = 1;  // of a vector
  std::string length;  // hh, h, l, …
  char letter = 0;     // 0: there is none
  size_t size = 0;     // characters of the format
};

Conversion parse(std::string_view format) {
  Conversion result;
  size_t at = 1;
  auto next = [&] { return at < format.size() ? format[at] : '\0'; };
  unsigned digits = 0;
  while (std::strchr("-+ #0123456789.", next()) != nullptr && next() != '\0') {
    // No message is padded without end.
    if (std::isdigit(static_cast<unsigned char>(next())) != 0 && ++digits > 4) return {};
    result.flags += format[at++];
  }
  if (next() == 'v') {
    ++at;
    if (next() < '2' || next() > '4') return {};
    result.count = static_cast<unsigned>(format[at++] - '0');
  }
  while (std::strchr("hlLqjzt", next()) != nullptr && next() != '\0') result.length += format[at++];
  if (next() == '\0' || std::strchr("diuxXofFeEgGaAcp%", next()) == nullptr) return {};
  result.letter = format[at++];
  result.size = at;
  return result;
}

std::string one_value(const Conversion& conversion, const Values& values) {
  const std::string start = "%" + conversion.flags;
  char text[400] = "";
  auto print = [&](const std::string& format, auto value) {
  // The format was put together from what parse() has seen.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    std::snprintf(text, sizeof text, format.c_str(), value);
#pragma GCC diagnostic pop
  };
  const bool is_long =
      conversion.length.find_first_of("lqjzt") != std::string::npos && conversion.length != "hl";
  switch (conversion.letter) {
    case 'd':
    case 'i': {
      auto value = static_cast<long long>(values.as_integer());
      if (conversion.length == "hh") value = static_cast<signed char>(value);
      if (conversion.length == "h") value = static_cast<short>(value);
      if (!is_long) value = static_cast<int>(value);
      print(start + "lld", value);
      break;
    }
    case 'u':
    case 'x':
    case 'X':
    case 'o': {
      auto value = static_cast<unsigned long long>(values.as_integer());
      if (conversion.length == "hh") value = static_cast<unsigned char>(value);
      if (conversion.length == "h") value = static_cast<unsigned short>(value);
      if (!is_long) value = static_cast<unsigned>(value);
      print(start + "ll" + conversion.letter, value);
      break;
    }
    case 'c': {
      const auto letter = static_cast<unsigned char>(values.as_integer());
      return std::string(1, std::isprint(letter) != 0 ? static_cast<char>(letter) : '?');
    }
    case 'p':
      print("0x%llx", static_cast<unsigned long long>(values.bits()));
      break;
    default:
      print(start + conversion.letter, values.as_real());
  }
  return text;
}

const char* level_of(const LogMessage& message) {
  switch (message.what >> 8) {
    case LogMessage::debug:
      return "debug: ";
    case LogMessage::info:
      return "info: ";
    case LogMessage::error:
      return "error: ";
    case LogMessage::fault:
      return "fault: ";
    default:
      return "";
  }
}

}  // namespace

std::string text_of(const LogMessage& message) {
  const std::string_view format = message.format;
  Values values(message);
  std::string text;
  for (size_t at = 0; at < format.size();) {
    if (format[at] != '%') {
      text += format[at++];
      continue;
    }
    const Conversion conversion = parse(format.substr(at));
    if (conversion.letter == 0) {
      text += format[at++];
      continue;
    }
    at += conversion.size;
    if (conversion.letter == '%') {
      text += '%';
      continue;
    }
    for (unsigned i = 0; i < conversion.count; ++i) {
      if (i > 0) text += ',';
      if (!values.has_next()) {
        text += "<missing>";
        continue;
      }
      text += one_value(conversion, values);
      values.advance();
    }
  }
  return text;
}

void log_message(GroupContext* group, const LogMessage* message) {
  const CpuPipeline& pipeline = *group->pipeline;
  const uint32_t number = pipeline.count_message();
  if (number > most_messages) return;
  std::string text = text_of(*message);
  while (!text.empty() && text.back() == '\n') text.pop_back();
  std::fprintf(stderr, "holdfast: [%s] %s%s\n", pipeline.name().c_str(), level_of(*message),
               text.c_str());
  if (number == most_messages)
    std::fprintf(stderr, "holdfast: [%s] no more messages of this kernel are shown\n",
                 pipeline.name().c_str());
}

}  // namespace holdfast::jit
