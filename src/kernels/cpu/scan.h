// Scans (running sums, products, extremes) along the middle of a dense [outer, length, inner]
// array.
#pragma once

#include <cstddef>
#include <cstdint>

#include <holdfast/dtype.h>

#include "kernels/cpu/simd/scan_kernels.h"

namespace holdfast::kernels::cpu {

// Runs as phases, one after the other; the tasks of one phase in any order. Where there are too few
// lines to share, lines are cut into chunks (by shape alone): their totals, then what comes before
// each, then the scan itself. This happens for a few megabytes at a time, so that the second
// reading finds them in the cache.
//
// Half types are computed in float32 and rounded once. Integers wrap.
class ScanPlan {
 public:
  ScanPlan(ScanOp op, Dtype::Val dtype, int64_t outer, int64_t length, int64_t inner, bool reverse,
           bool inclusive);

  int64_t phases() const { return chunks_ == 1 ? 1 : 3 * batches_; }
  int64_t tasks(int64_t phase) const;
  // Bytes that a phase reads, about.
  int64_t work(int64_t phase) const;
  // Shared by all tasks of all phases.
  size_t scratch_bytes() const { return scratch_bytes_; }

  // `out` may be `in`.
  void run(int64_t phase, int64_t task, const void* in, void* out, void* scratch) const noexcept;

 private:
  // A line or, where the innermost dimension is not scanned, a block of neighbouring columns.
  struct Piece {
    int64_t offset;  // of its first element in memory, or of the row that the scan starts with
    int64_t count;   // positions along the scan
    int64_t width;   // states
  };
  Piece piece(int64_t line, int64_t chunk) const;
  int64_t pairs_of(int64_t batch) const;
  void scan(const Piece& piece, const char* in, char* out, void* states) const;
  void total(const Piece& piece, const char* in, void* states) const;
  void carry(int64_t batch, char* scratch) const;

  const simd::ScanKernel* kernel_;
  int64_t item_size_;
  int64_t length_, inner_;
  bool reverse_, inclusive_;
  int64_t width_ = 1;          // states of a full piece
  int64_t column_blocks_ = 1;  // pieces side by side
  int64_t lines_ = 0;          // pieces of full length
  int64_t lines_per_task_ = 1;
  int64_t chunk_ = 0, chunks_ = 1;         // positions of a chunk; chunks of a line
  int64_t batch_pairs_ = 1, batches_ = 0;  // pairs (line, chunk) of a batch
  size_t scratch_bytes_ = 0;
};

}  // namespace holdfast::kernels::cpu
