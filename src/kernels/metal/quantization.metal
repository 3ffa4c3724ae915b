// quantize and dequantize: a thread takes eight neighbours. And float32 to 8-bit floats (e4m3) and
// back.
#include "support/indexing.h"
#include "support/quantized.h"

struct Quantization {
  Format format;
  ulong size;  // elements
};

template <typename T>
inline void store_eight(device T* out, ulong eight, thread const float* values) {
  constexpr uint blocks = 8 / Block<T>::size;
#pragma unroll
  for (uint b = 0; b < blocks; ++b) {
    Block<T> block;
    for (int i = 0; i < Block<T>::size; ++i) block.values[i] = T(values[b * Block<T>::size + i]);
    store_block(out + eight * 8 + b * Block<T>::size, block);
  }
}

template <typename T>
[[kernel]] void dequantize(const device uchar* codes, const device uchar* scales,
                           const device uchar* biases, device T* out, constant Quantization& q,
                           IN_GRID) {
  const ulong eight = thread_number(position, grid);
  if (eight * 8 >= q.size) return;
  const ulong word = eight_codes(codes, q.format.bits, eight),
              group = eight * 8 >> q.format.group_shift;
  const float scale = scale_at(scales, q.format.scale_type, group);
  const float bias = q.format.mode == affine ? scale_at(biases, q.format.scale_type, group) : 0;
  float values[8];
#pragma unroll
  for (uint i = 0; i < 8; ++i) values[i] = weight_of(word, i, q.format, scale, bias);
  store_eight(out, eight, values);
}

// --- quantize ---

// Codes of 4-bit floats by the magnitude they round to; halves go down.
inline uint to_e2m1(float value) {
  const float magnitude = abs(value);
  const uint code = uint(magnitude > 0.25f) + uint(magnitude > 0.75f) + uint(magnitude > 1.25f) +
                    uint(magnitude > 1.75f) + uint(magnitude > 2.5f) + uint(magnitude > 3.5f) +
                    uint(magnitude > 5.0f);
  return code != 0 && value < 0 ? code | 8 : code;
}
// NaN and what is too large become 448.
inline uint to_e4m3(float value) {
  const uint bits = as_type<uint>(value), sign = bits >> 24 & 0x80, magnitude = bits & 0x7fffffff;
  if (magnitude >= 0x43e00000) return sign | 0x7e;
  // Below 2^-6: multiples of 2^-9; rounded to nearest even by the addition of 2^14.
  if (magnitude < 0x3c800000) return sign | (as_type<uint>(abs(value) + 16384.0f) - 0x46800000);
  const uint rounded = magnitude + 0x7ffff + (magnitude >> 20 & 1);
  return sign | ((rounded >> 20) - (120 << 3));
}

// Of the `lanes` neighbours that share a group.
inline float smallest_of(float value, uint lanes) {
  for (ushort distance = 1; distance < lanes; distance *= 2) {
    const float other = simd_shuffle_xor(value, distance);
    value = other < value ? other : value;
  }
  return value;
}
inline float largest_of(float value, uint lanes) { return -smallest_of(-value, lanes); }

// What turns numbers into codes.
struct GroupCode {
  float scale, bias;
  uint byte;  // the scale of a mode that has a byte of it

  static GroupCode of_affine(float low, float high, uint bits) {
    const float bins = float((1u << bits) - 1);
    // The edge of larger magnitude is hit exactly, with one bit the lower one.
    const bool from_low = bits == 1 || abs(low) > abs(high);
    float scale = (high - low) / bins;
    if (scale < 1e-7f) scale = 1e-7f;
    if (!from_low) scale = -scale;
    const float edge = from_low ? low : high, steps = rint(edge / scale);
    if (steps != 0 && bits > 1) return {edge / steps, edge, 0};
    return {scale, bits == 1 ? low : 0, 0};
  }
  static GroupCode of_float(float largest, uint mode, float global_scale) {
    if (mode == nvfp4) {
      const float factor = global_scale > 0 ? 448.0f * 6.0f / global_scale : 1.0f;
      const uint byte = to_e4m3(largest / 6.0f * factor);
      return {from_e4m3(byte) / factor, 0, byte};
    }
    const float most = mode == mxfp4 ? 6.0f : 448.0f;
    const float exponent = largest == 0 ? 0.0f : ceil(log2(largest / most));
    const uint byte = uint(min(max(exponent + 127.0f, 0.0f), 254.0f));
    return {from_e8m0(byte), 0, byte};
  }
  uint code(float value, uint mode, uint bits) const {
    if (mode == affine) {
      value = (value - bias) / scale;
      const float last = float((1u << bits) - 1);
      value = value > 0 ? value : 0;
      value = value < last ? value : last;
      // The addition rounds to nearest even, and leaves the code in the low bits.
      return as_type<uint>(value + 8388608.0f) & 0xff;
    }
    value = scale == 0 ? 0.0f : value / scale;
    return mode == mxfp8 ? to_e4m3(value) : to_e2m1(value);
  }
};

// `global_scale`: of nvfp4, where has_global is set.
template <typename T>
[[kernel]] void quantize(const device T* in, const device float* global_scale, device uchar* codes,
                         device uchar* scales, device T* biases, constant Quantization& q,
                         constant uint& has_global, IN_GRID) {
  const ulong number = thread_number(position, grid), eight = min(number, q.size / 8 - 1);
  float values[8];
#pragma unroll
  for (uint b = 0; b < 8 / Block<T>::size; ++b) {
    const Block<T> block = load_block(in + eight * 8 + b * Block<T>::size);
    for (int i = 0; i < Block<T>::size; ++i) values[b * Block<T>::size + i] = block.values[i];
  }
  const uint lanes = (1u << q.format.group_shift) / 8, mode = q.format.mode, bits = q.format.bits;
  const ulong group = eight * 8 >> q.format.group_shift;
  GroupCode of;
  if (mode == affine) {
    float low = values[0], high = values[0];
#pragma unroll
    for (uint i = 1; i < 8; ++i) {
      low = values[i] < low ? values[i] : low;
      high = values[i] > high ? values[i] : high;
    }
    of = GroupCode::of_affine(smallest_of(low, lanes), largest_of(high, lanes), bits);
  } else {
    float largest = 0;
#pragma unroll
    for (uint i = 0; i < 8; ++i) largest = largest < abs(values[i]) ? abs(values[i]) : largest;
    of = GroupCode::of_float(largest_of(largest, lanes), mode, has_global != 0 ? *global_scale : 0);
  }
  if (number != eight) return;
  ulong word = 0;
#pragma unroll
  for (uint i = 0; i < 8; ++i) word |= ulong(of.code(values[i], mode, bits)) << i * bits;
  if (bits == 4) {
    reinterpret_cast<device uint*>(codes)[eight] = uint(word);
  } else if (bits == 8) {
    reinterpret_cast<device uint2*>(codes)[eight] = as_type<uint2>(word);
  } else {
    for (uint i = 0; i < bits; ++i) codes[eight * bits + i] = uchar(word >> 8 * i);
  }
  if (eight % lanes != 0) return;
  if (mode == affine) {
    reinterpret_cast<device T*>(scales)[group] = T(of.scale);
    biases[group] = T(of.bias);
  } else {
    scales[group] = uchar(of.byte);
  }
}

#define QUANTIZATION(name, T) \
  ENTRY("quantize_" #name, quantize<T>) ENTRY("dequantize_" #name, dequantize<T>)
FOR_FLOATS(QUANTIZATION)

// --- e4m3 by itself: a thread converts 16 elements ---

template <typename From, typename To, To converted(From)>
[[kernel]] void fp8(const device From* in, device To* out, constant ulong& size,
                    constant bool& aligned, IN_GRID) {
  constexpr int per_thread = 16;
  const ulong first = thread_number(position, grid) * per_thread;
  if (first >= size) return;
  From values[per_thread];
  if (aligned && first + per_thread <= size) {
    for (int i = 0; i < per_thread; i += Block<From>::size) {
      const Block<From> block = load_block(in + first + i);
      for (int j = 0; j < Block<From>::size; ++j) values[i + j] = block.values[j];
    }
  } else {
    for (int i = 0; i < per_thread; ++i) values[i] = in[min(first + i, size - 1)];
  }
  for (int i = 0; i < per_thread; i += Block<To>::size) {
    Block<To> block;
    for (int j = 0; j < Block<To>::size; ++j) block.values[j] = converted(values[i + j]);
    store_block(out, first + i, size, true, block);
  }
}

inline uchar to_fp8(float value) { return uchar(to_e4m3(value)); }
inline float from_fp8(uchar code) { return from_e4m3(code); }
ENTRY("to_fp8", fp8<float, uchar, to_fp8>)
ENTRY("from_fp8", fp8<uchar, float, from_fp8>)
