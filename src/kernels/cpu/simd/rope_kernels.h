// The rotation kernels that exist once per instruction set.
#pragma once

#include <cstdint>

#include <holdfast/dtype.h>

namespace holdfast::cpu::simd {

// One row of `length` elements, of which the first 2 * pairs are rotated and the others copied.
struct RopeRow {
  const void* input;
  void* output;
  const float* cosines;  // one per pair
  const float* sines;
  int64_t pairs;
  int64_t length;
};

struct RopeKernels {
  // cosines[i] = cos(position * rates[i]), and the sines; computed in double. `count` is a multiple
  // of 8: the caller pads.
  void (*angles)(double position, const double* rates, int64_t count, float* cosines, float* sines);
  // Pairs (i, i + pairs), or neighbours (2 i, 2 i + 1) when `traditional`. float16, bfloat16 and
  // float32; half types compute in float32.
  void (*rotate)(Dtype::Val dtype, bool traditional, const RopeRow& row);
};

// Of the instruction set in use.
const RopeKernels& rope_kernels();

}  // namespace holdfast::cpu::simd
