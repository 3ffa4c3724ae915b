// The scan kernels that exist once per instruction set, one set of functions per (op, dtype).
#pragma once

#include <cstddef>
#include <cstdint>

#include <holdfast/dtype.h>

#include "kernels/plan/scan.h"

namespace holdfast::kernels::cpu {

namespace simd {

// A scan runs on states: what is known of a line after some of its elements, in the type that it is
// computed in. `out` may be `in`; they overlap in no other way. Strides count elements.
struct ScanKernel {
  size_t state_size;
  void (*initialise)(void* states, int64_t count);
  // Scans `count` contiguous elements, from the last to the first if `reverse`, and leaves the
  // state behind them. An exclusive scan writes the state before each element.
  void (*line)(const void* in, void* out, int64_t count, bool reverse, bool inclusive, void* state);
  // The state alone.
  void (*line_total)(const void* in, int64_t count, bool reverse, void* state);
  // Scans `rows` rows, `stride` elements apart (negative: upwards), for `columns` lines at once.
  void (*columns)(const void* in, void* out, int64_t rows, int64_t stride, int64_t columns,
                  bool inclusive, void* states);
  void (*column_totals)(const void* in, int64_t rows, int64_t stride, int64_t columns,
                        void* states);
  // into[i] takes in from[i], whose elements come later in the scan.
  void (*combine)(const void* from, int64_t count, void* into);
};

struct ScanKernels {
  // log_add_exp: floating types and complex64 only.
  const ScanKernel* (*find)(ScanOp op, Dtype::Val dtype);
};

const ScanKernels& scan_kernels();

}  // namespace simd
}  // namespace holdfast::kernels::cpu
