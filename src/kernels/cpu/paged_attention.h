// Attention over caches in blocks, on the host.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/kv_rows.h"

namespace holdfast::kernels::cpu {

struct PagedShape {
  int64_t sequences, tokens, heads, key_heads;
  int64_t blocks, block_size, most_blocks;
  bool has_starts;
  Dtype query_dtype, key_dtype, value_dtype;  // of pools of numbers; of others not used
};

struct PagedOperands {
  const void *queries, *key_pool, *value_pool;
  const int32_t *block_table, *lengths, *starts;
  const float* sinks;
  float *prepared, *partial;
  void* out;
};

// Stages, one command each:
//   0  the queries, scaled and rotated, as float32, those that share keys together; its first task
//      checks the integers
//   1  rows of queries against splits of positions: a task for each split, or one for all of them
//      where there are many rows. The bits are the same
//   2  (of tasks for each split) the splits merged
class PagedPlan {
 public:
  PagedPlan(const PagedAttention& attention, const PagedShape& shape);

  int stages() const { return cuts_splits_ ? 3 : 2; }
  int64_t tasks(int stage) const;
  size_t prepared_bytes() const;
  size_t partial_bytes() const;
  size_t task_scratch_bytes(int stage) const;
  // Tasks [begin, end). Throws std::out_of_range for integers that name nothing.
  void run(int stage, int64_t begin, int64_t end, const PagedOperands& operands,
           void* task_scratch) const;

 private:
  // Some neighbouring rows of one sequence: row `first` is that of a head of a token of it.
  struct Tile {
    int64_t sequence = -1;  // -1: none
    int64_t tokens = 0, first_token = 0, length = 0;
    int64_t first = 0, rows = 0;
  };
  struct Range {
    int64_t first, last;
  };

  void check(const PagedOperands& operands) const;
  void prepare(int64_t task, const PagedOperands& operands, float* scratch) const;
  void attend_whole(const Tile& tile, int64_t key_head, const PagedOperands& operands,
                    void* scratch) const;
  void combine(int64_t task, const PagedOperands& operands, float* scratch) const;
  // The rows of a tile against one split; false where none sees any of it.
  bool attend(const Tile& tile, int64_t key_head, int64_t split, const PagedOperands& operands,
              float* out, int64_t out_stride, void* scratch) const;
  void write_row(const float* state, int64_t token, int64_t head, const PagedOperands& operands,
                 float* row) const;

  Range tokens_of(int64_t sequence, const PagedOperands& operands) const;
  Tile tile_at(int64_t number, const PagedOperands& operands) const;
  Range visible(const Tile& tile, int64_t row) const;
  int64_t row_of(int64_t key_head, int64_t token) const {
    return (key_head * shape_.tokens + token) * group_;
  }
  int64_t partial_row() const { return simd::partial_header + values_.rows().dims; }

  PagedShape shape_;
  KvCodec keys_, values_;
  float scale_;
  int64_t window_;
  int64_t group_;  // heads that share keys
  int64_t rows_, most_tiles_, most_splits_;
  bool cuts_splits_;
};

}  // namespace holdfast::kernels::cpu
