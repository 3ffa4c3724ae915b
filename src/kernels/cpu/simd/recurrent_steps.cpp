// Recurrences of language models, compiled once per instruction set.
#include "kernels/cpu/instruction_set.h"
#include "kernels/cpu/simd/elements.h"
#include "kernels/cpu/simd/recurrent_kernels.h"
#include "kernels/cpu/simd/vector_math.h"

namespace holdfast::kernels::cpu::HOLDFAST_SIMD_TARGET {
namespace {

using simd::DeltaTokens;
using Row = Lanes<float>;
constexpr int row_lanes = lane_count<float>;

// Rows of a state that go through a token together: what one waits for, others fill.
constexpr int delta_rows = 4;

// One token of `rows` neighbouring rows, in two passes over the features: decay and S k, then the
// update and S q. Each row's sums have lanes of their own, so that the rows together do not show.
template <int rows>
void delta_token(const DeltaTokens& tokens, int64_t t, int64_t first, const float* from,
                 float* to) {
  const int64_t dims = tokens.key_dims, whole = dims / row_lanes * row_lanes;
  const float* key = tokens.keys + t * dims;
  const float* query = tokens.queries + t * dims;
  const float* decay = tokens.decay + t * (tokens.decays_by_feature ? dims : 1);
  Row sums[rows] = {};
  auto decayed = [&](int64_t d, auto load) {
    const Row factor = tokens.decays_by_feature ? load(decay + d) : broadcast(decay[0]);
    const Row features = load(key + d);
#pragma GCC unroll 4
    for (int r = 0; r < rows; ++r) {
      const Row state = load(from + r * dims + d) * factor;
      sums[r] = multiply_add(state, features, sums[r]);
      load.store(to + r * dims + d, state);
    }
  };
  struct Whole {
    Row operator()(const float* at) const { return load_lanes<float>(at); }
    void store(float* at, Row value) const { store_lanes(at, value); }
  };
  struct Some {
    int64_t count;
    Row operator()(const float* at) const { return load_some_lanes<float>(at, count); }
    void store(float* at, Row value) const { store_some_lanes(at, value, count); }
  };
  for (int64_t d = 0; d < whole; d += row_lanes) decayed(d, Whole{});
  if (whole < dims) decayed(whole, Some{dims - whole});
  float deltas[rows];
  for (int r = 0; r < rows; ++r) {
    const float known = add_lanes<float>(sums[r]);
    deltas[r] = (tokens.values[t * tokens.value_dims + first + r] - known) * tokens.beta[t];
    sums[r] = Row{};
  }
  auto updated = [&](int64_t d, auto load) {
    const Row features = load(key + d), asked = load(query + d);
#pragma GCC unroll 4
    for (int r = 0; r < rows; ++r) {
      const Row state = multiply_add(broadcast(deltas[r]), features, load(to + r * dims + d));
      sums[r] = multiply_add(state, asked, sums[r]);
      load.store(to + r * dims + d, state);
    }
  };
  for (int64_t d = 0; d < whole; d += row_lanes) updated(d, Whole{});
  if (whole < dims) updated(whole, Some{dims - whole});
  for (int r = 0; r < rows; ++r) {
    tokens.out[t * tokens.value_dims + first + r] = add_lanes<float>(sums[r]);
  }
}

template <int rows>
void delta_rows_of(const DeltaTokens& tokens, int64_t first) {
  const float* from = tokens.state + first * tokens.key_dims;
  float* to = tokens.new_state + first * tokens.key_dims;
  for (int64_t t = 0; t < tokens.count; ++t) {
    if (tokens.mask != nullptr && tokens.mask[t] == 0) {
      for (int r = 0; r < rows; ++r) tokens.out[t * tokens.value_dims + first + r] = 0;
      continue;
    }
    delta_token<rows>(tokens, t, first, from, to);
    from = to;
  }
  if (from == to) return;
  for (int64_t d = 0; d < rows * tokens.key_dims; ++d) to[d] = from[d];
}

void delta(const DeltaTokens& tokens) {
  int64_t r = 0;
  for (; r + delta_rows <= tokens.value_dims; r += delta_rows) {
    delta_rows_of<delta_rows>(tokens, r);
  }
  for (; r < tokens.value_dims; ++r) delta_rows_of<1>(tokens, r);
}

void convolve(const float* const* inputs, int64_t width, const float* weights, const float* bias,
              int64_t channels, float* out) {
  HOLDFAST_VECTORISE
  for (int64_t c = 0; c < channels; ++c) out[c] = inputs[0][c] * weights[c];
  for (int64_t i = 1; i < width; ++i) {
    const float *x = inputs[i], *w = weights + i * channels;
    HOLDFAST_VECTORISE
    for (int64_t c = 0; c < channels; ++c) out[c] += x[c] * w[c];
  }
  if (bias == nullptr) return;
  HOLDFAST_VECTORISE
  for (int64_t c = 0; c < channels; ++c) out[c] += bias[c];
}

}  // namespace

extern const simd::RecurrentKernels recurrent_kernels;
const simd::RecurrentKernels recurrent_kernels{delta, convolve};

}  // namespace holdfast::kernels::cpu::HOLDFAST_SIMD_TARGET
