// The quantised types of gguf: blocks of a fixed number of values with their scales.
#pragma once

#include <cstddef>
#include <cstdint>

#include "io/support.h"

namespace holdfast::io {

struct GgufBlocks {
  uint32_t type;  // the number in the file
  const char* name;
  int values;    // in a block
  size_t bytes;  // of a block
  // Either the three arrays of affine quantisation in groups of 32 …
  Convert weights = nullptr;  // uint32
  Convert scales = nullptr;   // float16
  Convert biases = nullptr;   // float16
  int bits = 0;
  // … or the values.
  Convert to_half = nullptr;
};

// Null when the type is not one of them.
const GgufBlocks* find_gguf_blocks(uint32_t type);

}  // namespace holdfast::io
