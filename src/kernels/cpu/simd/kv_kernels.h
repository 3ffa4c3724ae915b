// The kernels of caches of keys and values that exist once per instruction set.
#pragma once

#include <cstddef>
#include <cstdint>

#include <holdfast/dtype.h>

namespace holdfast::kernels::cpu::simd {

// The rows of one head in a pool, in blocks.
struct KvSide {
  int64_t dims;
  int bits;
  Dtype::Val dtype;       // of 0 bits
  int64_t packed_words;   // of a row with bits
  int64_t group;          // of 8 bits
  int64_t width;          // elements of a stored row
  const float* codebook;  // of 2 to 4 bits: 16 values, those of fewer bits repeated
  const char* base;       // block 0
  int64_t block_bytes;    // from a block to the next one
  int64_t row_bytes;      // of values: from a row to the next one
};

// What is computed at once. Positions are cut at multiples of `split_positions`, and the results
// merged in their order, so that nothing but the sequence's own numbers shows in the result.
inline constexpr int64_t most_split_rows = 32;
inline constexpr int64_t split_positions = 256;

// Some rows of queries against the keys of one split of a sequence. A stored key is a column of its
// block, a stored value a row.
struct KvSplit {
  KvSide keys, values;
  const int32_t* blocks;  // of the sequence, in order
  int64_t block_size;     // a power of two, 16 or more
  int64_t split_first;    // the position where the split begins
  int64_t first, last;    // positions in the split that some row sees; others are not read
  int64_t rows;
  const float* queries;    // [rows, key dims], scaled
  const int64_t* visible;  // [rows, 2]: the positions that the row sees, from and up to
  // Row r has the largest score at out[r * out_stride], the sum of exp(score - largest) next, then
  // the values weighted with these. A row that sees nothing has a sum of 0.
  float* out;
  int64_t out_stride;
  void* scratch;  // split_scratch() bytes, aligned to 64
};

// What comes before the values in a partial result.
inline constexpr int64_t partial_header = 2;

struct KvKernels {
  void (*split)(const KvSplit& split);
  size_t (*split_scratch)(int64_t key_dims, int64_t value_dims);
  // Takes a later split's result into that of the earlier ones, which may be all zeros.
  void (*merge)(float* state, const float* partial, int64_t dims);
  // The row that the merged result gives, zeros where nothing was seen. `sink`: one more score,
  // which takes weight but has no value, or null.
  void (*finish)(const float* state, int64_t dims, const float* sink, float* out);

  // A stored row with bits, value by value, as numbers (still rotated).
  void (*unpack)(const KvSide& side, const void* row, float* out);
  float (*sum_of_squares)(const float* row, int64_t dims);
  // Indices of a row of rotated numbers of norm one: how many of the boundaries each exceeds;
  // packed. Gives the sum of the squares of their values.
  float (*pack)(const float* row, int64_t dims, int bits, const float* codebook,
                const float* boundaries, uint32_t* words);
  // Bytes, then scales and biases.
  void (*pack_affine)(const float* row, int64_t dims, int64_t group, uint32_t* words);
};

// Of the instruction set in use.
const KvKernels& kv_kernels();

}  // namespace holdfast::kernels::cpu::simd
