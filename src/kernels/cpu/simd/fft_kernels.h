// The stages of a Fourier transform, which exist once per instruction set.
#pragma once

#include <cstdint>

namespace holdfast::kernels::cpu::simd {

// One stage of a transform that sorts itself (Stockham): for p < groups, k < stride, v < radix
//   to[k + stride (radix p + v)] = w[p, v] * sum over u of from[k + stride (p + groups u)] r^(u v)
// with r = exp(-2 pi i / radix). Real and imaginary parts are apart.
struct FftStage {
  int64_t radix, groups, stride;
  const float* twiddle_real;  // [groups, radix]
  const float* twiddle_imag;
  const float* root_real;  // r^j for j < radix
  const float* root_imag;
};

struct FftKernels {
  void (*stage)(const FftStage& stage, const float* from_real, const float* from_imag,
                float* to_real, float* to_imag);
  // Complex numbers taken apart, the imaginary parts times `sign`; and put together.
  void (*split)(const float* from, int64_t count, float sign, float* real, float* imag);
  void (*join)(const float* real, const float* imag, int64_t count, float scale, float imag_scale,
               float* to);
  // Between a transform of h complex numbers z and the half spectrum x of the 2 h real numbers that
  // they are made of, in place: for k <= h / 2 and l = h - k, with d = from[k] - conj(from[l]),
  //   to[k] = s + t, to[l] = conj(s - t), s = from[k] + conj(from[l]), t = -i sign w[k] d
  // and w[k] = exp(-pi i k / h). From z (where z[h] is z[0]) to 2 x with sign 1, from x to z with
  // sign -1. `rows` rows of h + 1 elements side by side.
  void (*fold)(float* real, float* imag, int64_t h, int64_t rows, const float* root_real,
               const float* root_imag, float sign);
};

// Of the instruction set in use.
const FftKernels& fft_kernels();

}  // namespace holdfast::kernels::cpu::simd
