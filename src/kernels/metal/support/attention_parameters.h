// Parameters of attention, as the host and the kernels have them.

struct AttentionOperand {
  long batch, head, position;  // strides; features are neighbours
  bool aligned;                // in blocks of 16 bytes
};

struct Attention {
  AttentionOperand queries, keys, values;
  long mask_batch, mask_head, mask_query, mask_key;
  uint rows;  // of a group: heads_per_group for each position
  uint key_heads, heads_per_group, positions, key_count;
  uint features, value_features;
  uint split_keys, splits;  // more than one: partial results
  uint partial_stride;      // floats from row to row of them
  float scale;
  int mask_kind;  // 0: none, 1: bool, 2: added
  bool causal, has_sinks;
};
