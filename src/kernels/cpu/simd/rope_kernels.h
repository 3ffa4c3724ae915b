// The rotation kernels that exist once per instruction set.
#pragma once

#include <cstdint>

#include <holdfast/dtype.h>

namespace holdfast::kernels::cpu::simd {

// Rows of `length` elements, one a position and head, of which the first 2 * pairs are rotated and
// the others copied. Strides are in elements; the positions of a head are dense in the output.
struct RopeRows {
  const void* input;
  int64_t input_stride;       // from position to position
  int64_t input_head_stride;  // from head to head
  void* output;
  int64_t output_head_stride;
  const float* cosines;  // one per pair, rows `angle_stride` apart
  const float* sines;
  int64_t angle_stride;
  int64_t heads;
  int64_t positions;
  int64_t pairs;
  int64_t length;
  bool stream;  // write past the cache where the alignment allows it; the caller fences
};

// The angles position * rates[i] of positions that are `step` apart. Computed in double: exactly
// for the first position, from it by rotation for the others.
struct RopeAngles {
  double position, step;
  const double* rates;
  int64_t count;  // a multiple of 8: the caller pads
  int64_t positions;
  float* cosines;  // `count` a position
  float* sines;
};

struct RopeKernels {
  // Brings the rates of the pairs into the order in which `rotate` takes the angles.
  void (*arrange)(Dtype::Val dtype, bool traditional, int64_t pairs, double* rates);
  void (*angles)(const RopeAngles& angles);
  // Pairs (i, i + pairs), or neighbours (2 i, 2 i + 1) when `traditional`. float16, bfloat16 and
  // float32; half types compute in float32.
  void (*rotate)(Dtype::Val dtype, bool traditional, const RopeRows& rows);
};

// Of the instruction set in use.
const RopeKernels& rope_kernels();

}  // namespace holdfast::kernels::cpu::simd
