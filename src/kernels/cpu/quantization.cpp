#include "kernels/cpu/quantization.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/cpu/simd/quantized_kernels.h"
#include "kernels/cpu/simd/target_table.h"

HOLDFAST_SIMD_TABLE(QuantizeKernels, quantize_kernels)

namespace holdfast::kernels::cpu {
namespace {

// Codes of 4-bit floats by the magnitude they round to; halves go down.
uint8_t to_e2m1(float value) {
  constexpr float limits[] = {0.25f, 0.75f, 1.25f, 1.75f, 2.5f, 3.5f, 5.0f};
  float magnitude = std::fabs(value);
  uint8_t code = 0;
  for (float limit : limits) code = static_cast<uint8_t>(code + (magnitude > limit ? 1 : 0));
  return code != 0 && value < 0 ? static_cast<uint8_t>(code | 8) : code;
}

}  // namespace

uint8_t to_e4m3(float value) {
  // As in MLX: NaN and what is too large become 448.
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  auto sign = static_cast<uint8_t>(bits >> 24 & 0x80);
  uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude >= 0x43e00000) return static_cast<uint8_t>(sign | 0x7e);
  if (magnitude < 0x3c800000) {
    // Below 2^-6: multiples of 2^-9; rounded to nearest even by the addition of 2^14.
    float shifted = std::fabs(value) + 16384.0f;
    std::memcpy(&bits, &shifted, sizeof(bits));
    return static_cast<uint8_t>(sign | (bits - 0x46800000));
  }
  uint32_t rounded = magnitude + 0x7ffff + (magnitude >> 20 & 1);
  return static_cast<uint8_t>(sign | ((rounded >> 20) - (120 << 3)));
}

float from_e4m3(uint8_t code) {
  int exponent = code >> 3 & 15, fraction = code & 7;
  float magnitude;
  if ((code & 0x7f) == 0x7f) {
    magnitude = std::nanf("");
  } else if (exponent == 0) {
    magnitude = std::ldexp(static_cast<float>(fraction), -9);
  } else {
    magnitude = std::ldexp(static_cast<float>(8 + fraction), exponent - 10);
  }
  return (code & 0x80) != 0 ? -magnitude : magnitude;
}

void quantize_row(const QuantizedFormat& format, const float* from, int64_t count, uint8_t* codes,
                  float* scales, float* biases, uint8_t* scale_bytes, float global_scale) {
  const simd::QuantizeKernels& kernels = simd::quantize_kernels();
  for (int64_t group = 0; group * format.group_size < count; ++group) {
    int64_t first = group * format.group_size;
    const float* values = from + first;
    uint8_t* to = codes + format.packed_bytes(first);
    if (format.mode == QuantizationMode::affine) {
      kernels.affine(values, format.group_size, format.bits, to, scales[group], biases[group]);
      continue;
    }
    float largest = 0;
    for (int i = 0; i < format.group_size; ++i) largest = std::max(largest, std::fabs(values[i]));
    float scale;
    if (format.mode == QuantizationMode::nvfp4) {
      constexpr float most = 448.0f * 6.0f;
      float factor = global_scale > 0 ? most / global_scale : 1.0f;
      scale_bytes[group] = to_e4m3(largest / 6.0f * factor);
      scale = from_e4m3(scale_bytes[group]) / factor;
    } else {
      float most = format.mode == QuantizationMode::mxfp4 ? 6.0f : 448.0f;
      float exponent = largest == 0 ? 0.0f : std::ceil(std::log2(largest / most));
      scale_bytes[group] = static_cast<uint8_t>(std::clamp(exponent + 127.0f, 0.0f, 254.0f));
      scale = std::ldexp(1.0f, static_cast<int>(scale_bytes[group]) - 127);
    }
    uint8_t group_codes[32];  // the largest group of these modes
    for (int i = 0; i < format.group_size; ++i) {
      float value = scale == 0 ? 0.0f : values[i] / scale;
      group_codes[i] = format.bits == 8 ? to_e4m3(value) : to_e2m1(value);
    }
    kernels.pack(group_codes, format.group_size, format.bits, to);
  }
}

}  // namespace holdfast::kernels::cpu
