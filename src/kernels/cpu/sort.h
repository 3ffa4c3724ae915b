// Sorting the rows of a dense matrix, ascending: the values, or the indices that would sort them.
#pragma once

#include <cstddef>
#include <cstdint>

#include <holdfast/dtype.h>

#include "kernels/plan/sort.h"

namespace holdfast::kernels::cpu {

// A radix sort from the least significant byte on; equal elements keep their order. What it gives
// does not depend on how it is cut. Rows are sorted whole by one task each, but for a few long
// ones: those are cut into chunks, and every byte is three phases: counting, placing of the counts,
// moving. A partition goes from the most significant byte on, into the one bucket that holds the
// place asked for, by one task a row.
class SortPlan {
 public:
  // Indices: length is at most 2^32.
  SortPlan(const SortKind& kind, Dtype::Val dtype, int64_t rows, int64_t length);

  // Phases run one after the other, the tasks of one phase in any order.
  int64_t phases() const { return chunks_ == 0 ? 1 : rows_ * phases_per_row_; }
  int64_t tasks(int64_t phase) const;
  // Bytes that a phase moves, about.
  int64_t work(int64_t phase) const;
  // Shared by all tasks of all phases.
  size_t scratch_bytes() const { return scratch_bytes_; }

  // `out` may be `in` where the values are sorted. Throws std::bad_alloc when there is no memory
  // for a row.
  void run(int64_t phase, int64_t task, const void* in, void* out, void* scratch) const;

 private:
  template <typename T, bool is_arg>
  void run_typed(int64_t phase, int64_t task, const T* in, void* out, char* scratch) const;

  SortKind kind_;
  Dtype::Val dtype_;
  int64_t rows_, length_;
  int64_t item_size_;
  int64_t rows_per_task_ = 1;
  // Long rows: chunks of a row, 0 where rows are sorted whole.
  int64_t chunk_ = 0, chunks_ = 0;
  int64_t phases_per_row_ = 1;
  size_t scratch_bytes_ = 0;
};

// result[i] = how many of the `count` sorted elements come before values[i] (or are not behind it,
// if `right`). `stride` is that of the sorted sequence.
void search_sorted(Dtype::Val dtype, const void* sorted, int64_t count, int64_t stride,
                   const void* values, int64_t value_count, bool right, uint32_t* result);

}  // namespace holdfast::kernels::cpu
