// The host's side of support/rows.h: rows of a matrix, in registers or in chunks.
#pragma once

#include "kernels/metal/launch.h"

namespace holdfast::kernels::metal {

// Where the rows of `in`, its last axis, begin.
CollapsedLayout row_starts(const array& in);
// `in` itself when the elements of a row are neighbours and kernels can find the rows, else a dense
// temporary copy.
array make_rows_walkable(Encoder& encoder, const array& in);

// Rows whose elements are neighbours in `in`, to a dense `out`. There are elements.
class RowLaunch {
 public:
  RowLaunch(const array& in, const array& out, const CollapsedLayout& starts, int64_t length);
  RowLaunch(const array& in, const array& out) : RowLaunch(in, out, row_starts(in), in.shape(-1)) {}

  // Rows of up to 16,384 elements stay in registers: one dispatch, of `groups` threadgroups. Longer
  // ones are read twice, in chunks of a threadgroup each.
  bool is_long() const { return rows_.chunks > 0; }
  int64_t groups() const { return groups_; }
  uint32_t threadgroup() const { return threadgroup_; }
  // Of the states of chunks.
  int64_t states() const { return groups_; }

  struct Rows {
    uint64_t count, length, chunk, chunks;
    int32_t dimensions;
    uint32_t threads, in_misalignment, out_misalignment;
  };
  const Rows& rows() const { return rows_; }
  const Extents& extents() const { return extents_; }

 private:
  Rows rows_{};
  Extents extents_;
  int64_t groups_ = 0;
  uint32_t threadgroup_ = 256;
};

}  // namespace holdfast::kernels::metal
