// Scaled dot-product attention in blocks: softmax(scale * Q K^T + mask) V, without the matrix of
// scores.
#pragma once

#include <cstddef>
#include <cstdint>

#include <holdfast/dtype.h>

#include "kernels/cpu/simd/attention_kernels.h"

namespace holdfast::kernels::cpu {

struct AttentionOperands {
  const void *queries, *keys, *values;
  const void* mask;   // uint8_t, or float32 (float64 for float64); null without
  const void* sinks;  // one for each head, float32 (float64 for float64); null without
  void* output;       // dense [batch, heads, queries, value_features]
  void* partial;      // partial_bytes()
};

// With few queries per key head (decoding), keys are split in fixed pieces that are combined in a
// second stage; with many, queries are.
class AttentionPlan {
 public:
  // dtype: float16, bfloat16, float32 or float64.
  AttentionPlan(Dtype::Val dtype, const AttentionShape& shape);

  int stages() const { return split_ ? 2 : 1; }
  int64_t tasks(int stage) const;
  size_t partial_bytes() const;
  size_t task_scratch_bytes() const;
  // Tasks [begin, end) one after the other.
  void run(int stage, int64_t begin, int64_t end, const AttentionOperands& operands,
           void* task_scratch) const noexcept;

 private:
  void run_whole(int64_t task, const AttentionOperands& operands, void* task_scratch) const;
  void run_split(int64_t task, bool is_last, const AttentionOperands& operands,
                 void* task_scratch) const;
  const void* keys_of(int64_t split, const AttentionOperands& operands) const;
  void run_combine(int64_t task, const AttentionOperands& operands) const;
  // Fills query and mask pointers of `count` rows of a group of heads, from row `first`.
  void point_at_rows(const AttentionOperands& operands, int64_t group, int64_t first, int64_t count,
                     int64_t first_key, const void** queries, simd::AttentionMask* masks) const;
  // The head and the position of a row of a group.
  int64_t head_of(int64_t group, int64_t row) const {
    return group % shape_.key_heads * heads_per_group_ + row % heads_per_group_;
  }
  int64_t position_of(int64_t row) const { return row / heads_per_group_; }

  Dtype::Val dtype_;
  int64_t item_, compute_item_;
  AttentionShape shape_;
  int64_t heads_per_group_, rows_;  // rows_: queries of all heads that share keys
  bool split_;
  int64_t split_keys_ = 0, splits_ = 0;
  int64_t row_tasks_ = 0;
};

}  // namespace holdfast::kernels::cpu
