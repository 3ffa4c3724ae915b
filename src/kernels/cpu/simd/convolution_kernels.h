// What convolution.cpp calls; one table per instruction set.
#pragma once

#include <cstdint>

#include <holdfast/dtype.h>

namespace holdfast::kernels::cpu::simd {

// One pixel of a depthwise convolution.
struct DepthwisePixel {
  // For each tap, the input's pixel under it, or null outside.
  const void* const* taps;
  int64_t tap_count;
  const void* weights;  // ordered
  int64_t channels;
  void* output;
};

struct ConvolutionKernels {
  // Weights [channels, taps] as [taps, channels] in the type that is computed in.
  void (*order_weights)(Dtype::Val dtype, const void* weights, int64_t channels, int64_t taps,
                        void* ordered);
  void (*depthwise)(Dtype::Val dtype, const DepthwisePixel& pixel);
};

const ConvolutionKernels& convolution_kernels();

}  // namespace holdfast::kernels::cpu::simd
