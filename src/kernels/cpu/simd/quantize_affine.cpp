// Weights into affine codes, compiled once per instruction set.
#include "kernels/cpu/simd/elements.h"
#include "kernels/cpu/simd/quantized_kernels.h"

namespace holdfast::kernels::cpu::HOLDFAST_SIMD_TARGET {
namespace {

constexpr int64_t largest_group = 128;

// Eight codes, a byte each, in `bits` bytes; `count` is a multiple of 8.
template <int bits>
void pack_as(const uint8_t* from, int64_t count, uint8_t* to) {
  for (int64_t i = 0; i < count; i += 8, to += bits) {
    uint64_t bytes, packed = 0;
    std::memcpy(&bytes, from + i, 8);
#if defined(__BMI2__)
    packed = _pext_u64(bytes, 0x0101010101010101u * ((1u << bits) - 1));
#else
    for (int j = 0; j < 8; ++j) packed |= (bytes >> 8 * j & ((1u << bits) - 1)) << bits * j;
#endif
    std::memcpy(to, &packed, bits);
  }
}

void pack(const uint8_t* from, int64_t count, int bits, uint8_t* to) {
  switch (bits) {
    case 1:
      return pack_as<1>(from, count, to);
    case 2:
      return pack_as<2>(from, count, to);
    case 3:
      return pack_as<3>(from, count, to);
    case 4:
      return pack_as<4>(from, count, to);
    case 5:
      return pack_as<5>(from, count, to);
    case 6:
      return pack_as<6>(from, count, to);
    default:
      std::memcpy(to, from, static_cast<size_t>(count));
  }
}

void quantize_affine(const float* from, int64_t count, int bits, uint8_t* codes, float& scale,
                     float& bias) {
  constexpr float smallest = 1e-7f;
  constexpr int width = lane_count<float>;
  auto bins = static_cast<float>((1 << bits) - 1);
  Lanes<float> least = load_lanes<float>(from), most = least;
  for (int64_t i = width; i < count; i += width) {
    Lanes<float> value = load_lanes<float>(from + i);
    least = value < least ? value : least;
    most = value > most ? value : most;
  }
  float low = least[0], high = most[0];
  for (int l = 1; l < width; ++l) {
    low = least[l] < low ? least[l] : low;
    high = most[l] > high ? most[l] : high;
  }
  // The edge of larger magnitude is hit exactly, with one bit the lower one.
  bool from_low = bits == 1 || __builtin_fabsf(low) > __builtin_fabsf(high);
  scale = (high - low) / bins;
  if (scale < smallest) scale = smallest;
  if (!from_low) scale = -scale;
  float edge = from_low ? low : high;
  float steps = __builtin_rintf(edge / scale);
  bias = bits == 1 ? low : 0;
  if (steps != 0 && bits > 1) {
    scale = edge / steps;
    bias = edge;
  }
  // Cut off first: then adding 2^23 rounds to nearest even, and leaves the code in the low bits.
  Lanes<float> zero{}, last = zero + bins;
  uint32_t words[largest_group];
  for (int64_t i = 0; i < count; i += width) {
    Lanes<float> value = (load_lanes<float>(from + i) - bias) / scale;
    value = value > zero ? value : zero;
    value = value < last ? value : last;
    store_vector(words + i, (Words)(value + 8388608.0f));
  }
  uint8_t bytes[largest_group];
  for (int64_t i = 0; i < count; ++i) bytes[i] = static_cast<uint8_t>(words[i]);
  pack(bytes, count, bits, codes);
}

}  // namespace

extern const simd::QuantizeKernels quantize_kernels;
const simd::QuantizeKernels quantize_kernels{quantize_affine, pack};

}  // namespace holdfast::kernels::cpu::HOLDFAST_SIMD_TARGET
