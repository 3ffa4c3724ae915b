// Parameters of recurrences, as the host and the kernels have them.

struct RecurrentSequences {
  uint sequences, tokens, states;
  uint tokens_of_each;  // where there are no starts
  bool has_starts, has_slots, has_fresh, has_mask;
};

struct DeltaSizes {
  uint key_heads, value_heads, key_dims, value_dims;
  bool decays_by_feature;
};

struct ConvSizes {
  uint channels, width;
  bool has_bias;
};
