// How caches of keys and values store their rows, and what attention over them is computed of.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace holdfast {
class array;
}

namespace holdfast::kernels {

// A row is `dims` numbers of one head and token: a key or a value. With `bits` it is stored as
// words:
//   8        affine: a byte for each number, then for each group a word of two float16, the scale
//            below the bias: number = byte * scale + bias
//   2, 3, 4  TurboQuant: an index of `bits` bits for each number of the rotated row, from the
//   lowest
//            bit of the first word on, then the norm (float32):
//            row = norm * rotated back(codebook[index])
// With 0 bits it is stored as the numbers themselves.
struct KvRows {
  int dims = 0;
  int bits = 0;
  uint64_t seed = 0;  // of the rotation

  bool is_turbo() const { return bits > 0 && bits < 8; }
  int packed_words() const { return (dims * bits + 31) / 32; }
  // Numbers with one scale and bias.
  int group() const { return dims % 64 == 0 ? 64 : dims % 32 == 0 ? 32 : 16; }
  // Elements of a stored row: numbers, or words.
  int width() const {
    if (bits == 0) return dims;
    return packed_words() + (bits == 8 ? dims / group() : 1);
  }
  bool operator==(const KvRows&) const = default;
};

// The largest float16: affine scales and biases are clamped to it.
inline constexpr float largest_half = 65504;
// Rows with a smaller norm are divided by this instead.
inline constexpr float smallest_norm = 1e-8f;

// The numbers of a turbo format. Of a vector that is uniform on the unit sphere, any element has
// the density (1 - t^2)^((dims - 3) / 2), up to a factor.
struct TurboTables {
  std::vector<float> codebook;    // 2^bits values, ascending: the Lloyd-Max optimum of that density
  std::vector<float> boundaries;  // halfway between two: how many a number exceeds is its index
  // The rotation is H (signs * x) / sqrt(dims) where dims is a power of two, and matrix * x (row by
  // row) elsewhere.
  std::vector<float> signs;
  std::vector<float> matrix;
};
// Made at the first call with such rows, and kept. Any thread may ask.
std::shared_ptr<const TurboTables> turbo_tables(const KvRows& rows);

// Rows (tokens, heads, dims) into slots (int32, block * block size + place; none where negative).
struct KvWrite {
  KvRows keys, values;
  const array &key_rows, &value_rows;
  const array& slots;
};

// --- attention over blocks ---

struct PagedAttention {
  KvRows keys, values;
  float scale;
  int window;  // the most keys that a query sees; 0: all
};

// Pools: keys (blocks, heads, width, block size), values (blocks, heads, block size, width), dense.
// All integers are int32.
struct PagedInputs {
  const array& queries;  // (tokens, heads, dims), or (sequences, tokens, heads, dims)
  const array &key_pool, &value_pool;
  const array& block_table;  // (sequences, most blocks)
  const array& lengths;      // (sequences)
  const array* starts;       // (sequences + 1), or null: each has tokens / sequences
  const array* sinks;        // (heads) of float32, or null
};

}  // namespace holdfast::kernels
