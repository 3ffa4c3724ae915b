// Place: bytes that a command works on, named without an address. Memory has one on the device that
// runs the command only, and only while it runs.
#pragma once

#include <cstdint>

#include <holdfast/native_context.h>

namespace holdfast::exec {

struct Place {
  uint32_t binding = Bound::nothing;  // of the command; nothing: an array without elements
  int64_t offset = 0;                 // bytes from the start of the binding's buffer
};

}  // namespace holdfast::exec
