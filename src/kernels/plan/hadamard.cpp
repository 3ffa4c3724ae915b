#include "kernels/plan/hadamard.h"

namespace holdfast::kernels {
namespace {

// A Hadamard matrix is not unique; these are the ones that MLX multiplies with. 20 and 28 are 4 x 4
// blocks of circulant matrices.
constexpr uint32_t signs_12[12] = {0x002, 0xaab, 0x3c8, 0x96e, 0xf20, 0x5ba,
                                   0xc8c, 0x6e6, 0x23c, 0xb96, 0x8f0, 0xe5a};
constexpr uint32_t signs_20[20] = {0x933de, 0x2e3bd, 0x5477b, 0xa0ef7, 0x499ef, 0x637c1, 0xc6ba2,
                                   0x8d764, 0x1aee8, 0x359f0, 0x0fa53, 0x174a7, 0x26d4e, 0x45e9c,
                                   0x83d39, 0xf7a6d, 0xef4fa, 0xdedd5, 0xbdf8b, 0x7bf36};
constexpr uint32_t signs_28[28] = {0xcd69e7e, 0x9ad7c7d, 0x37ab8fb, 0x6d571f7, 0xd8ae3ef, 0xb3587df,
                                   0x66b4f3f, 0xb467f43, 0x6acbe87, 0xd593d8e, 0xab27b9c, 0x564f7b8,
                                   0xac9aff0, 0x5b31fe1, 0x87fb325, 0x0ff66ca, 0x1decd95, 0x39ddb2a,
                                   0x71bf654, 0xe17eca9, 0xc2fd9d2, 0xfcf1299, 0xfbe2532, 0xf7c4ae4,
                                   0xef8d549, 0xdf1ea13, 0xbe3d4a6, 0x7e7a94c};

}  // namespace

HadamardSize hadamard_size(int length) {
  for (int factor : {1, 12, 20, 28}) {
    int power = length / factor;
    if (length % factor == 0 && power > 0 && (power & (power - 1)) == 0) return {factor, power};
  }
  return {};
}

HadamardSigns hadamard_signs(int factor, bool transposed) {
  const uint32_t* rows = factor == 12   ? signs_12
                         : factor == 20 ? signs_20
                         : factor == 28 ? signs_28
                                        : nullptr;
  HadamardSigns signs{};
  for (int i = 0; rows != nullptr && i < factor; ++i) {
    for (int j = 0; j < factor; ++j) {
      uint32_t sign = transposed ? rows[j] >> i & 1u : rows[i] >> j & 1u;
      signs[static_cast<size_t>(i)] |= sign << j;
    }
  }
  return signs;
}

}  // namespace holdfast::kernels
