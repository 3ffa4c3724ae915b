// The attention kernels that exist once per instruction set.
#pragma once

#include <cstddef>
#include <cstdint>

#include <holdfast/dtype.h>

#include "kernels/plan/attention.h"

namespace holdfast::kernels::cpu::simd {

// What a query may see. A score that is masked away by a boolean or by `visible` becomes the lowest
// finite number, so a query that sees nothing takes the mean of all values.
struct AttentionMask {
  const void* data = nullptr;  // of the first key: uint8_t, or float (double for float64)
  int64_t key_stride = 0;
  int64_t visible = 0;  // keys from this one on are masked (causal)
};

// Some queries that share their keys and values. Features are contiguous. Half types compute in
// float32; where the processor multiplies pairs of bfloat16, weights of bfloat16 values are rounded
// to bfloat16 in `partial`.
struct AttentionBlock {
  int64_t rows;
  const void* const* queries;
  const AttentionMask* masks;
  MaskKind mask_kind;
  const void* keys;
  int64_t key_stride;
  const void* values;
  int64_t value_stride;
  int64_t key_count;
  int64_t features, value_features;
  double scale;
  void* scratch;  // aligned to 64
  // Of the block that comes next, as far apart as these; null: not known. To be fetched meanwhile.
  const void* next_keys = nullptr;
};

// The most rows of `partial`, and of `whole`.
inline constexpr int64_t attention_partial_rows = 16;
inline constexpr int64_t attention_rows = 112;

struct AttentionKernels {
  // Few rows against some of the keys: for each row the largest score, the sum of exp(score -
  // largest), and the values weighted with these: `maxima` and `sums` [rows], `outputs` [rows,
  // value_features]; float, double for float64.
  void (*partial)(Dtype::Val dtype, const AttentionBlock& block, void* maxima, void* sums,
                  void* outputs);
  size_t (*partial_scratch)(Dtype::Val dtype, int64_t key_count, int64_t features);
  // Up to attention_rows rows against all keys, in blocks of keys. `sinks`: one extra score per row
  // that takes weight but has no value, or null. Writes rows of the dtype.
  void (*whole)(Dtype::Val dtype, const AttentionBlock& block, const void* sinks,
                void* const* outputs);
  size_t (*whole_scratch)(Dtype::Val dtype, int64_t features, int64_t value_features);
  // One row from `splits` partial ones, whose maxima and sums are `stride` apart and whose outputs
  // are stride * value_features apart.
  void (*combine)(Dtype::Val dtype, int64_t splits, int64_t stride, const void* maxima,
                  const void* sums, const void* outputs, int64_t value_features, const void* sink,
                  void* output);
};

// Of the instruction set in use.
const AttentionKernels& attention_kernels();

}  // namespace holdfast::kernels::cpu::simd
