// Low-bit weights: codes, the numbers that they stand for, and the scales of groups
// (kernels/plan/quantization.h). Eight neighbouring codes are `bits` bytes.

// As QuantizationMode.
enum Mode : uint { affine, mxfp4, mxfp8, nvfp4 };
enum ScaleType : uint { scale_float32, scale_float16, scale_bfloat16, scale_e8m0, scale_e4m3 };

struct Format {
  uint mode, bits;
  uint group_shift;  // groups of 1 << group_shift codes
  uint scale_type;   // of affine biases, too
};

inline float from_e4m3(uint code) {
  // Exponent and fraction at their places in a float, re-biased by an exact multiplication.
  const float magnitude = as_type<float>((code & 0x7f) << 20) * 0x1p120f;
  const uint nan = (code & 0x7f) == 0x7f ? 0x7fc00000 : 0;
  return as_type<float>(as_type<uint>(magnitude) | nan | (code & 0x80) << 24);
}
inline float from_e2m1(uint code) {
  return as_type<float>(as_type<uint>(as_type<float>((code & 7) << 22) * 0x1p126f) | (code & 8)
                                                                                         << 28);
}
// 2^(code - 127), for 0 a subnormal.
inline float from_e8m0(uint code) { return as_type<float>(code == 0 ? 0x00400000 : code << 23); }

inline float scale_at(const device uchar* scales, uint type, ulong group) {
  switch (type) {
    case scale_float32:
      return reinterpret_cast<const device float*>(scales)[group];
    case scale_float16:
      return reinterpret_cast<const device half*>(scales)[group];
    case scale_bfloat16:
      return reinterpret_cast<const device bfloat*>(scales)[group];
    case scale_e8m0:
      return from_e8m0(scales[group]);
    default:
      return from_e4m3(scales[group]);
  }
}

// Codes [8 * eight, 8 * eight + 8), the first one in the lowest bits.
inline ulong eight_codes(const device uchar* codes, uint bits, ulong eight) {
  if (bits == 4) return reinterpret_cast<const device uint*>(codes)[eight];
  if (bits == 8) return as_type<ulong>(reinterpret_cast<const device uint2*>(codes)[eight]);
  ulong word = 0;
#pragma nounroll
  for (uint i = 0; i < bits; ++i) word |= ulong(codes[eight * bits + i]) << 8 * i;
  return word;
}
// The number that a code stands for, without its scale.
inline float number_of(uint code, uint mode) {
  if (mode == affine) return float(code);
  return mode == mxfp8 ? from_e4m3(code) : from_e2m1(code);
}
// Weight `i` of the eight. Rounded after the multiplication, as on the host.
inline float weight_of(ulong word, uint i, Format format, float scale, float bias) {
  const uint code = uint(word >> i * format.bits) & ((1u << format.bits) - 1);
  return number_of(code, format.mode) * scale + bias;
}
