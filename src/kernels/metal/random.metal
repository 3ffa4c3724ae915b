// Random bits: Threefry-2x32 with 20 rounds. Which word comes from which counter is a contract:
// kernels/cpu/threefry.h.
#include "support/indexing.h"

inline uint2 threefry(uint2 key, uint2 counter) {
  constexpr uint rotations[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
  const uint keys[3] = {key.x, key.y, key.x ^ key.y ^ 0x1bd11bdau};
  uint2 x = counter + key;
  for (uint i = 0; i < 5; ++i) {
    for (uint j = 0; j < 4; ++j) {
      x.x += x.y;
      x.y = rotate(x.y, rotations[i % 2][j]) ^ x.x;
    }
    x += uint2(keys[(i + 1) % 3], keys[(i + 2) % 3] + i + 1);
  }
  return x;
}

struct RandomBits {
  ulong bytes;
  ulong words;  // that the bytes take
  ulong pairs;  // half of the words, rounded up: one per counter
  long key_stride;
};

// The last word may be used in part.
inline void store_word(device uchar* out, ulong index, uint word, constant RandomBits& bits) {
  if (4 * index + 4 <= bits.bytes) {
    reinterpret_cast<device uint*>(out)[index] = word;
  } else {
    for (ulong i = 4 * index; i < bits.bytes; ++i) out[i] = uchar(word >> 8 * (i - 4 * index));
  }
}

// Each thread makes the words of four counters, a threadgroup apart: neighbours write next to each
// other in both halves.
KERNEL(256)
random_bits(const device uint* key, device uchar* out, constant RandomBits& bits, IN_GRID,
            uint t [[thread_index_in_threadgroup]]) {
  const uint2 words = uint2(key[0], key[bits.key_stride]);
  const ulong first = (thread_number(position, grid) - t) * 4 + t;
  for (uint i = 0; i < 4; ++i) {
    const ulong index = first + i * 256, partner = bits.pairs + index;
    if (index >= bits.pairs) return;
    const bool has_partner = partner < bits.words;
    const uint2 made = threefry(words, uint2(uint(index), has_partner ? uint(partner) : 0));
    store_word(out, index, made.x, bits);
    if (has_partner) store_word(out, partner, made.y, bits);
  }
}
