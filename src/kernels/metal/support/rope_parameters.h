// Parameters of rope, as the host and the kernels have them.

struct Rope {
  double scale;
  long offset;  // where there is no array of them
  ulong threads;
  long batch_stride, position_stride, feature_stride;
  long offset_stride, frequency_stride;
  ulong heads, positions, features, pairs;
  uint pair_units;  // blocks of pairs in a row; what comes behind them is copied
  uint heads_per_thread;
  int head_dimensions;
  bool traditional, aligned;  // aligned: all blocks are, in the input and in the output
  bool has_offsets, has_frequencies;
};
