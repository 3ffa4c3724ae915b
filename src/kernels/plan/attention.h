// What attention is computed of.
#pragma once

#include <cstdint>

namespace holdfast {
class array;
}

namespace holdfast::kernels {

// Of (batch, heads, positions, features) and one floating-point type; of `keys` and `values` there
// may be fewer heads.
struct AttentionInputs {
  const array &queries, &keys, &values;
  // Null where there is none. Broadcasts to (batch, heads, queries, keys): bool, or float32
  // (float64 for float64) that is added to the scores.
  const array* mask;
  const array*
      sinks;  // one score per head, which takes weight but has no value; float32 or float64
};

enum class MaskKind : uint8_t { none = 0, boolean = 1, additive = 2 };

// Strides count elements; features are contiguous; a stride of 0 repeats.
struct AttentionShape {
  int64_t batch, heads, key_heads;  // heads is a multiple of key_heads: neighbours share keys
  int64_t queries, keys;
  int64_t features, value_features;
  struct Operand {
    int64_t batch, head, position;
  };
  Operand query_strides, key_strides, value_strides;
  MaskKind mask_kind = MaskKind::none;
  bool causal = false;  // the last query sees all keys, the one before all but the last, ...
  int64_t mask_batch = 0, mask_head = 0, mask_query = 0, mask_key = 0;
  double scale = 1;
};

// Of inputs whose rows are contiguous.
AttentionShape attention_shape(const AttentionInputs& inputs, float scale, bool causal);

}  // namespace holdfast::kernels
