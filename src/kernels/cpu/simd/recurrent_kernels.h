// The recurrences of language models that exist once per instruction set.
#pragma once

#include <cstdint>

namespace holdfast::kernels::cpu::simd {

// The gated delta rule for some neighbouring tokens of one value head. Operands of token t are `at
// + t * stride`; all is float32.
struct DeltaTokens {
  int64_t count, key_dims, value_dims;
  const float *queries, *keys, *values, *decay, *beta;
  bool decays_by_feature;  // decay has key_dims elements for each token, else one
  const uint8_t* mask;     // one for each token, or null
  const float* state;      // [value_dims, key_dims]
  float* new_state;        // may be `state`
  float* out;              // [count, value_dims]
};

struct RecurrentKernels {
  // Operands are dense: of token t, queries and keys at t * key_dims, values and out at t *
  // value_dims, decay at t or t * key_dims, beta at t.
  void (*delta)(const DeltaTokens& tokens);
  // out[c] = bias[c] + sum over i of weights[i * channels + c] * inputs[i][c]; bias may be null.
  void (*convolve)(const float* const* inputs, int64_t width, const float* weights,
                   const float* bias, int64_t channels, float* out);
};

// Of the instruction set in use.
const RecurrentKernels& recurrent_kernels();

}  // namespace holdfast::kernels::cpu::simd
