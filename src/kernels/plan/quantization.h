// Low-bit weights: their formats, and the products with them.
//
// Codes of `bits` bits follow each other from the lowest bit of the first byte on. A group of
// neighbours shares a scale: affine codes stand for scale * code + bias; mxfp4 and nvfp4 codes are
// 4-bit floats (e2m1), mxfp8 codes 8-bit ones (e4m3), times the scale. Scales of affine groups have
// the dtype of the weights; of mxfp4 and mxfp8 they are powers of two (e8m0), of nvfp4 e4m3.
#pragma once

#include <cstdint>

namespace holdfast::kernels {

// Numbers that files of functions and captures hold: append only.
enum class QuantizationMode : uint8_t { affine = 0, mxfp4 = 1, mxfp8 = 2, nvfp4 = 3 };

struct QuantizedFormat {
  QuantizationMode mode;
  int bits;
  int group_size;
  bool operator==(const QuantizedFormat&) const = default;

  int64_t packed_bytes(int64_t elements) const { return elements * bits / 8; }
};

// x [..., m, k] times quantised matrices [..., n, k] with groups along their rows, transposed; or
// [..., k, n] when not transposed.
struct QuantizedProduct {
  QuantizedFormat format;
  bool transposed;
  bool gathers;  // matrices of x and w are chosen by index; else their batches broadcast
};

}  // namespace holdfast::kernels
