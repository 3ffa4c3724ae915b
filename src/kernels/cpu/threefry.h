// Random bits: Threefry-2x32 with 20 rounds, in the counter layout of JAX and MLX. Every word
// follows from its index, so tasks can be cut anywhere. The values are a contract: the same key
// gives the same bits as in MLX.
//
// A key is two uint32 words: key(seed) = {seed >> 32, seed & 0xffffffff}. The `n` words of one key
// are, with h = ceil(n / 2):
//   word i      = first  word of threefry(key, {i, h + i})    for i < h
//   word h + i  = second word of threefry(key, {i, h + i})    for h + i < n
// except that an odd n has no partner for i = h - 1: its counter is {h - 1, 0}. Elements of 1 or 2
// bytes take the words' bytes in little-endian order; the last word may be used in part. Several
// keys: each fills its own part of the output.
//
// How the other functions are made of bits (checked bit for bit against MLX 0.32 on 10^6 values):
//   split(key, n)   the words of bits({n, 2}, width 4), row by row; n = 2 where none is given
//   uniform         always from 4-byte bits, whatever the dtype T:
//                     u = min(T(float32(bits) / 2^32), largest T below 1)     (2^32 is
//                     float32(UINT32_MAX)) result = u * (high - low) + low       each op rounded to
//                     T, no fma; low, high are T first
//   normal          u = uniform in float32, low = nextafter(-1, 0), high = 1
//                     result = T(T(sqrt(2)) * T(scale)) * T(erfinv(u)) + T(loc)     erfinv in
//                     float32; each op rounded to T. With MLX's own erfinv this is bit-exact; else
//                     as close as the erfinv is.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/plan/layout.h"

namespace holdfast::kernels::cpu {

struct RandomWords {
  uint32_t first, second;
};

// The block function: one key, one counter.
RandomWords threefry2x32(RandomWords key, RandomWords counter);

// bits() for a dense output of key_count * bytes_per_key bytes.
class RandomBitsPlan {
 public:
  // `keys` is the layout of the uint32 key array, whose last dimension has size 2: keys.size / 2
  // keys.
  RandomBitsPlan(const CollapsedLayout& keys, int64_t bytes_per_key);

  int64_t tasks() const { return tasks_; }
  // `keys` is the address of the key array's first element.
  void run(int64_t task, const uint32_t* keys, void* output) const noexcept;

 private:
  CollapsedLayout keys_;
  int64_t bytes_per_key_;
  int64_t words_per_key_;
  int64_t words_ = 0;  // of all keys
  int64_t tasks_ = 0;
};

// Words [begin, end) of the `count` words of one key.
void random_words(RandomWords key, int64_t count, int64_t begin, int64_t end, uint32_t* to);

}  // namespace holdfast::kernels::cpu
