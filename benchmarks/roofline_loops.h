// The loops of the roofline, each for a contiguous piece, in the ways worth trying.
//
// `count` is a multiple of 64 and pointers are aligned to 64 bytes.
#pragma once

#include <cstddef>
#include <span>

namespace holdfast::bench {

struct Loops {
  const char* name;
  bool is_supported;
  void (*copy)(const float* from, float* to, size_t count);
  void (*add)(const float* a, const float* b, float* to, size_t count);
  float (*read)(const float* from, size_t count);
  // A fixed amount of independent multiply-adds in registers; returns the number of floating-point
  // operations. Null: the same as another variant's.
  double (*multiply_add)();
};

std::span<const Loops> all_loops();

}  // namespace holdfast::bench
