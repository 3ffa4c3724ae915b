#include "devices/error_report.h"

#include <algorithm>

namespace holdfast::exec {

std::string message_of(const ErrorReport& report, std::string_view texts) {
  for (uint32_t code = 1; code < report.code && !texts.empty(); ++code) {
    texts.remove_prefix(std::min(texts.find('\0'), texts.size() - 1) + 1);
  }
  std::string message(texts.substr(0, texts.find('\0')));
  size_t at = 0;
  for (int64_t number : report.numbers) {
    at = message.find("{}", at);
    if (at == message.npos) break;
    const std::string digits = std::to_string(number);
    message.replace(at, 2, digits);
    at += digits.size();
  }
  return message;
}

}  // namespace holdfast::exec
