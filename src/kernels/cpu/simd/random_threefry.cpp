// Threefry-2x32, 20 rounds (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011),
// many counters at once; compiled once per instruction set.
#include "kernels/cpu/simd/elements.h"
#include "kernels/cpu/simd/random_kernels.h"

namespace holdfast::kernels::cpu::HOLDFAST_SIMD_TARGET {
namespace {

inline uint32_t rotate(uint32_t value, int bits) {
  return (value << bits) | (value >> (32 - bits));
}

inline void threefry_block(const uint32_t* key, uint32_t& x, uint32_t& y) {
  constexpr int rotations[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
  x += key[0];
  y += key[1];
#pragma GCC unroll 5
  for (uint32_t group = 0; group < 5; ++group) {
#pragma GCC unroll 4
    for (int round = 0; round < 4; ++round) {
      x += y;
      y = rotate(y, rotations[group % 2][round]) ^ x;
    }
    x += key[(group + 1) % 3];
    y += key[(group + 2) % 3] + group + 1;
  }
}

void threefry(uint32_t key0, uint32_t key1, uint32_t counter0, uint32_t counter1, int64_t count,
              uint32_t* first, uint32_t* second) {
  const uint32_t key[3] = {key0, key1, key0 ^ key1 ^ 0x1bd11bdau};
  constexpr int64_t step = 64;
  for (int64_t i = 0; i < count; i += step) {
    uint32_t x[step], y[step];
    for (int64_t l = 0; l < step; ++l) {
      x[l] = counter0 + static_cast<uint32_t>(i + l);
      y[l] = counter1 + static_cast<uint32_t>(i + l);
    }
    HOLDFAST_VECTORISE
    for (int64_t l = 0; l < step; ++l) {
      uint32_t a = x[l], b = y[l];
      threefry_block(key, a, b);
      x[l] = a;
      y[l] = b;
    }
    int64_t n = count - i < step ? count - i : step;
    if (first != nullptr) {
      for (int64_t l = 0; l < n; ++l) first[i + l] = x[l];
    }
    if (second != nullptr) {
      for (int64_t l = 0; l < n; ++l) second[i + l] = y[l];
    }
  }
}

}  // namespace

extern const simd::RandomKernels random_kernels;
const simd::RandomKernels random_kernels{threefry};

}  // namespace holdfast::kernels::cpu::HOLDFAST_SIMD_TARGET
