// The limits of floating elements, those of 16 bits among them.
#pragma once

#include <limits>

#include <holdfast/types.h>

#include "mlx/core.h"

namespace mlx::core {

template <typename T>
struct numeric_limits;

template <>
struct numeric_limits<float> : std::numeric_limits<float> {};
template <>
struct numeric_limits<double> : std::numeric_limits<double> {};

template <>
struct numeric_limits<float16_t> {
  static float16_t lowest() { return float16_t(-65504.0f); }
  static float16_t min() { return float16_t(0x1p-14f); }
  static float16_t max() { return float16_t(65504.0f); }
  static float16_t epsilon() { return float16_t(0x1p-10f); }
  static float16_t infinity() { return float16_t(std::numeric_limits<float>::infinity()); }
};

template <>
struct numeric_limits<bfloat16_t> {
  static bfloat16_t lowest() { return bfloat16_t(-0x1.fep127f); }
  static bfloat16_t min() { return bfloat16_t(0x1p-126f); }
  static bfloat16_t max() { return bfloat16_t(0x1.fep127f); }
  static bfloat16_t epsilon() { return bfloat16_t(0x1p-7f); }
  static bfloat16_t infinity() { return bfloat16_t(std::numeric_limits<float>::infinity()); }
};

}  // namespace mlx::core
