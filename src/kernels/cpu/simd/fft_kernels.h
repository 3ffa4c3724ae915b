// The stages of a Fourier transform, which exist once per instruction set.
#pragma once

#include <cstdint>

namespace holdfast::cpu::simd {

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
};

// Of the instruction set in use.
const FftKernels& fft_kernels();

}  // namespace holdfast::cpu::simd
