// Builds a message from anything printable: text("[op] got ", shape).
#pragma once

#include <sstream>
#include <string>

namespace holdfast {

template <typename... Parts>
std::string text(const Parts&... parts) {
  std::ostringstream stream;
  stream.exceptions(std::ios::badbit);  // no memory is an error, not a shorter text
  (stream << ... << parts);
  return stream.str();
}

}  // namespace holdfast
