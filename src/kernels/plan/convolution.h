// What a convolution is computed of.
#pragma once

#include <cstdint>

namespace holdfast::kernels {

// Up to three spatial dimensions; missing ones come first, with sizes and kernels of 1. Input
// [batch, size..., channels], weights [outputs, kernel..., channels / groups] and output
// [batch, result..., outputs].
struct ConvolutionShape {
  static constexpr int dimensions = 3;
  int64_t batch, channels, outputs, groups;
  int64_t size[dimensions], kernel[dimensions], result[dimensions];
  int64_t stride[dimensions], padding[dimensions], dilation[dimensions], input_dilation[dimensions];
  bool flip;
};

}  // namespace holdfast::kernels
