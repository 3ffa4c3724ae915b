// Convolution of each channel by itself, compiled once per instruction set.
#include "kernels/cpu/simd/convolution_kernels.h"
#include "kernels/cpu/simd/elements.h"
#include "kernels/cpu/simd/matmul_vector.h"

namespace holdfast::kernels::cpu::HOLDFAST_SIMD_TARGET {
namespace {

// `vectors` vectors of channels, from `first` on; `count` < 0: all of their lanes are there.
template <typename T, typename F, int vectors>
inline void sum_taps(const simd::DepthwisePixel& pixel, int64_t first, int64_t count) {
  constexpr int width = lane_count<F>;
  const F* weights = static_cast<const F*>(pixel.weights) + first;
  T* to = static_cast<T*>(pixel.output) + first;
  Lanes<F> sum[vectors];
#pragma GCC unroll 4
  for (int v = 0; v < vectors; ++v) sum[v] = Lanes<F>{};
  for (int64_t tap = 0; tap < pixel.tap_count; ++tap, weights += pixel.channels) {
    if (pixel.taps[tap] == nullptr) continue;
    const T* from = static_cast<const T*>(pixel.taps[tap]) + first;
    if (count >= 0) {
      sum[0] = fused_multiply_add(load_some_lanes<F>(from, count),
                                  load_some_lanes<F>(weights, count), sum[0]);
      continue;
    }
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) {
      sum[v] = fused_multiply_add(load_lanes<F>(from + v * width),
                                  load_lanes<F>(weights + v * width), sum[v]);
    }
  }
  if (count >= 0) return store_some_lanes(to, sum[0], count);
#pragma GCC unroll 4
  for (int v = 0; v < vectors; ++v) store_lanes(to + v * width, sum[v]);
}

template <typename T, typename F>
void sum_channels(const simd::DepthwisePixel& pixel) {
  constexpr int width = lane_count<F>;
  int64_t c = 0;
  for (; c + 4 * width <= pixel.channels; c += 4 * width) sum_taps<T, F, 4>(pixel, c, -1);
  for (; c + width <= pixel.channels; c += width) sum_taps<T, F, 1>(pixel, c, -1);
  if (c < pixel.channels) sum_taps<T, F, 1>(pixel, c, pixel.channels - c);
}

template <typename Function>
void with_types(Dtype::Val dtype, const Function& f) {
  switch (dtype) {
    case Dtype::Val::float16:
      return f(Float16{}, float{});
    case Dtype::Val::bfloat16:
      return f(BFloat16{}, float{});
    case Dtype::Val::float64:
      return f(double{}, double{});
    default:
      return f(float{}, float{});
  }
}

void depthwise(Dtype::Val dtype, const simd::DepthwisePixel& pixel) {
  with_types(dtype, [&](auto element, auto compute) {
    sum_channels<decltype(element), decltype(compute)>(pixel);
  });
}

void order_weights(Dtype::Val dtype, const void* weights, int64_t channels, int64_t taps,
                   void* ordered) {
  with_types(dtype, [&](auto element, auto compute) {
    using T = decltype(element);
    using F = decltype(compute);
    const T* from = static_cast<const T*>(weights);
    F* to = static_cast<F*>(ordered);
    for (int64_t c = 0; c < channels; ++c) {
      for (int64_t tap = 0; tap < taps; ++tap) {
        to[tap * channels + c] = widen_one<T, F>(from[c * taps + tap]);
      }
    }
  });
}

}  // namespace

extern const simd::ConvolutionKernels convolution_kernels;
const simd::ConvolutionKernels convolution_kernels{order_weights, depthwise};

}  // namespace holdfast::kernels::cpu::HOLDFAST_SIMD_TARGET
