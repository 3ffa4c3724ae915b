// What scans there are.
#pragma once

#include <cstdint>

namespace holdfast::kernels {

// Numbers that files of functions and captures hold: append only.
enum class ScanOp : uint8_t { sum = 0, prod = 1, min = 2, max = 3, log_add_exp = 4 };

// A scan along one axis.
struct ScanKind {
  ScanOp op;
  int axis;
  bool reverse, inclusive;
};

}  // namespace holdfast::kernels
