// A fuzz target parses bytes as a file and reads every array in it. What is allowed: a result, or a
// std::runtime_error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <vector>

#include <holdfast/io.h>
#include <holdfast/transforms.h>

#include "io/memory_reader.h"

namespace holdfast {

template <class Parse>
int fuzz(const uint8_t* data, size_t size, Parse parse) {
  auto reader = std::make_shared<io::MemoryReader>(std::vector<char>(data, data + size), "fuzz");
  try {
    for (array a : parse(reader)) {
      // Arrays may lie over each other in the file; together they may be large.
      if (a.nbytes() <= 4 * size + 4096) a.eval();
    }
  } catch (const std::runtime_error&) {
  }
  return 0;
}

}  // namespace holdfast
