// Recurrences over the tokens of many sequences: the gated delta rule, causal convolutions.
#include "support/errors.h"
#include "support/indexing.h"
#include "support/recurrent_parameters.h"

struct Sequence {
  uint first, count;
  int state;  // -1: none
  bool fresh;
};
// Reports what names nothing, and goes on without it.
inline Sequence sequence_at(constant RecurrentSequences& all, const device int* starts,
                            const device int* slots, const device bool* fresh, uint i,
                            device Errors& errors) {
  Sequence found{i * all.tokens_of_each, all.tokens_of_each, int(i), all.has_fresh && fresh[i]};
  if (all.has_starts) {
    const int first = starts[i], last = starts[i + 1];
    const bool holds = starts[0] == 0 && starts[all.sequences] == int(all.tokens) && first >= 0 &&
                       first <= last && last <= int(all.tokens);
    if (!holds) report(errors, 1, first, last);
    found.first = holds ? uint(first) : 0;
    found.count = holds ? uint(last - first) : 0;
  }
  if (all.has_slots) found.state = slots[i] < 0 ? -1 : slots[i];
  if (found.state >= int(all.states)) {
    report(errors, 2, found.state, i);
    found.state = -1;
  }
  return found;
}

constant constexpr uint delta_features = 8;  // of a lane

// A simdgroup has a row of a state.
template <typename T>
[[kernel, max_total_threads_per_threadgroup(128)]] void gated_delta(
    const device T* queries, const device T* keys, const device T* values,
    const device float* decay, const device float* beta, const device int* starts,
    const device int* slots, const device bool* fresh, const device bool* mask,
    device float* states, device T* out, constant RecurrentSequences& all, constant DeltaSizes& delta,
    device Errors& errors, uint2 position [[thread_position_in_grid]],
    uint2 grid [[threads_per_grid]]) {
  const ulong number = thread_number(position, grid);
  const uint lane = uint(number % 32);
  const ulong row = number / 32;
  const uint dv = uint(row % delta.value_dims);
  const uint head = uint(row / delta.value_dims % delta.value_heads);
  const uint i = uint(row / delta.value_dims / delta.value_heads);
  if (i >= all.sequences) return;
  const Sequence sequence = sequence_at(all, starts, slots, fresh, i, errors);
  const uint key_head = head / (delta.value_heads / delta.key_heads), dims = delta.key_dims;
  device float* state =
      states + ((ulong(max(sequence.state, 0)) * delta.value_heads + head) * delta.value_dims + dv) * dims;
  float numbers[delta_features];
  for (uint n = 0; n < delta_features; ++n) {
    const uint j = lane + 32 * n;
    numbers[n] = j < dims && sequence.state >= 0 && !sequence.fresh ? state[j] : 0.0f;
  }
  for (uint t = 0; t < sequence.count; ++t) {
    const ulong token = sequence.first + t, of_head = token * delta.value_heads + head;
    const ulong to = of_head * delta.value_dims + dv;
    if (sequence.state < 0 || (all.has_mask && !mask[token])) {
      if (lane == 0) out[to] = T(0);
      continue;
    }
    const device T* key = keys + (token * delta.key_heads + key_head) * dims;
    const device T* query = queries + (token * delta.key_heads + key_head) * dims;
    const device float* factor = decay + of_head * (delta.decays_by_feature ? dims : 1);
    float known = 0, result = 0;
#pragma unroll
    for (uint n = 0; n < delta_features; ++n) {
      const uint j = lane + 32 * n;
      if (j >= dims) continue;
      numbers[n] *= factor[delta.decays_by_feature ? j : 0];
      known = fma(numbers[n], float(key[j]), known);
    }
    const float change = (float(values[to]) - simd_sum(known)) * beta[of_head];
#pragma unroll
    for (uint n = 0; n < delta_features; ++n) {
      const uint j = lane + 32 * n;
      if (j >= dims) continue;
      numbers[n] = fma(change, float(key[j]), numbers[n]);
      result = fma(numbers[n], float(query[j]), result);
    }
    result = simd_sum(result);
    if (lane == 0) out[to] = T(result);
  }
  if (sequence.state < 0) return;
  for (uint n = 0; n < delta_features; ++n) {
    if (lane + 32 * n < dims) state[lane + 32 * n] = numbers[n];
  }
}

// A thread has a channel of a sequence.
template <typename T, typename State>
[[kernel, max_total_threads_per_threadgroup(256)]] void causal_conv(
    const device T* x, const device float* weight, const device float* bias,
    const device int* starts, const device int* slots, const device bool* fresh,
    const device bool* mask, device State* states, device T* out, constant RecurrentSequences& all,
    constant ConvSizes& conv, device Errors& errors, uint2 position [[thread_position_in_grid]],
    uint2 grid [[threads_per_grid]]) {
  constexpr uint most_width = 16;
  const ulong number = thread_number(position, grid);
  const uint channel = uint(number % conv.channels);
  const ulong i = number / conv.channels;
  if (i >= all.sequences) return;
  const Sequence sequence = sequence_at(all, starts, slots, fresh, uint(i), errors);
  const uint width = conv.width;
  device State* state = states + ulong(max(sequence.state, 0)) * (width - 1) * conv.channels + channel;
  // The last inputs, the newest one last.
  float inputs[most_width], weights[most_width];
  for (uint n = 0; n < most_width; ++n) {
    const bool is_old = n + 1 < width && sequence.state >= 0 && !sequence.fresh;
    inputs[n] = is_old ? float(state[n * conv.channels]) : 0.0f;
    weights[n] = n < width ? weight[channel * width + n] : 0.0f;
  }
  for (uint t = 0; t < sequence.count; ++t) {
    const ulong token = sequence.first + t;
    if (sequence.state < 0 || (all.has_mask && !mask[token])) {
      out[token * conv.channels + channel] = T(0);
      continue;
    }
    const float newest = float(x[token * conv.channels + channel]);
    float sum = 0;
    for (uint n = 0; n < most_width; ++n) {
      if (n + 1 == width) inputs[n] = newest;
      sum = n == 0 ? inputs[0] * weights[0] : n < width ? sum + inputs[n] * weights[n] : sum;
    }
    if (conv.has_bias) sum += bias[channel];
    out[token * conv.channels + channel] = T(sum);
    for (uint n = 0; n + 1 < most_width; ++n) inputs[n] = inputs[n + 1];
  }
  if (sequence.state < 0) return;
  for (uint n = 0; n < most_width; ++n) {
    if (n + 1 < width) state[n * conv.channels] = State(inputs[n]);
  }
}

#define RECURRENT(name, T)                  \
  ENTRY("gated_delta_" #name, gated_delta<T>) \
  ENTRY("causal_conv_" #name, causal_conv<T, T>)
FOR_FLOATS(RECURRENT)
ENTRY("causal_conv_float16_float32", causal_conv<half, float>)
ENTRY("causal_conv_bfloat16_float32", causal_conv<bfloat, float>)
