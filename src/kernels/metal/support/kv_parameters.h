// Parameters of caches of keys and values, and of attention to them, as the host and the kernels
// have them.

// How rows are stored (kernels/plan/kv_cache.h).
struct KvFormat {
  uint dims, bits, packed_words, group, width;
  uint kind;           // of numbers: 0 float, 1 half, 2 bfloat
  uint rotation;       // 0: none, 1: the transform, 2: by a matrix
  float factor;        // of the transform: 1 / sqrt(dims)
  float codebook[16];  // values of fewer than four bits are repeated
  float boundaries[15];
  uint signs[32];  // bit j: the transform changes the sign of element j
};

struct KvSlots {
  uint heads, block_size, rooms;
  uint kind;        // of the rows
  bool is_columns;  // a stored row is a column of its block: keys
};

struct Paged {
  uint sequences, tokens, heads, key_heads, group;  // group: heads that share keys
  uint block_size, most_blocks, blocks, splits;
  uint tokens_of_each;  // where there are no starts
  uint window;          // 0: none
  uint query_kind;
  float scale;
  bool has_starts, has_sinks;
};
