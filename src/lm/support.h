// Small things that several parts of the library use.
#pragma once

#include <cstddef>
#include <ios>
#include <sstream>
#include <string>

namespace holdfast::lm {

// Builds a message from anything printable.
template <typename... Parts>
std::string message(const Parts&... parts) {
  std::ostringstream stream;
  stream.exceptions(std::ios::badbit);  // no memory is an error, not a shorter text
  (stream << ... << parts);
  return stream.str();
}

// The bytes of a file; ModelError where it cannot be read or is larger than `limit`.
std::string read_text_file(const std::string& path, size_t limit = size_t{256} << 20);

}  // namespace holdfast::lm
