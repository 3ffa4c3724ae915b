// What sorts there are.
#pragma once

#include <cstdint>

namespace holdfast::kernels {

// A sort of rows, ascending and stable.
struct SortKind {
  static constexpr int64_t whole = -1;
  bool is_arg;  // gives the uint32 indices that would sort the row, not its elements
  // Other than `whole`, a partition: only the position `kth` gets the element that belongs there,
  // with no greater one before it and no smaller one after it.
  int64_t kth = whole;
};

}  // namespace holdfast::kernels
