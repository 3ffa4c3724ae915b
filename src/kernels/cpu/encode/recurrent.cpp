#include "kernels/plan/recurrent.h"

#include <algorithm>
#include <optional>
#include <stdexcept>

#include "base/text.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/simd/quantized_kernels.h"
#include "kernels/cpu/simd/recurrent_kernels.h"
#include "kernels/cpu/simd/target_table.h"
#include "kernels/cpu/task_scratch.h"
#include "kernels/plan/layout.h"
#include "kernels/staging.h"

HOLDFAST_SIMD_TABLE(RecurrentKernels, recurrent_kernels)

namespace holdfast::kernels::cpu {
namespace {

// The arrays that say which tokens and states belong together, in one command.
class BoundSequences {
 public:
  BoundSequences(Encoder& encoder, const SequenceInputs& inputs, int64_t tokens, int64_t states)
      : sequences_(inputs.sequences), tokens_(tokens), states_(states) {
    const array* given[] = {inputs.starts, inputs.slots, inputs.fresh, inputs.mask};
    for (size_t i = 0; i < 4; ++i) {
      if (given[i] == nullptr) continue;
      dense_[i] = make_dense(encoder, *given[i]);
      bound_[i] = encoder.input(*dense_[i]);
    }
  }

  struct Sequence {
    int64_t first, count;
    int64_t state;  // -1: none
    bool is_fresh;
    const uint8_t* mask;  // of its first token, or null
  };
  // Throws std::out_of_range, in the name of `op`, for integers that name nothing.
  Sequence at(const char* op, const NativeContext& context, int64_t i) const {
    const auto* starts = context.data<const int32_t>(bound_[0]);
    const auto* slots = context.data<const int32_t>(bound_[1]);
    const auto* fresh = context.data<const uint8_t>(bound_[2]);
    const auto* mask = context.data<const uint8_t>(bound_[3]);
    const int64_t each = sequences_ > 0 ? tokens_ / sequences_ : 0;
    Sequence sequence{i * each, each, i, fresh != nullptr && fresh[i] != 0, nullptr};
    if (starts != nullptr) {
      sequence.first = starts[i];
      sequence.count = int64_t{starts[i + 1]} - starts[i];
      if (starts[0] != 0 || starts[sequences_] != tokens_ || sequence.first < 0 ||
          sequence.count < 0 || starts[i + 1] > tokens_) {
        throw std::out_of_range(text("[", op, "] starts must rise from 0 to the number of tokens (",
                                     tokens_, "), got ", starts[i], " and ", starts[i + 1],
                                     " at sequence ", i, ", ", starts[sequences_], " at the end"));
      }
    }
    if (slots != nullptr) sequence.state = slots[i] < 0 ? -1 : slots[i];
    if (sequence.state >= states_) {
      throw std::out_of_range(text("[", op, "] slot ", sequence.state, " of sequence ", i,
                                   " must be less than the number of states (", states_, ")"));
    }
    if (mask != nullptr) sequence.mask = mask + sequence.first;
    return sequence;
  }

 private:
  int64_t sequences_, tokens_, states_;
  std::optional<array> dense_[4];
  Bound bound_[4];
};

int64_t item_of(Dtype::Val dtype) { return static_cast<int64_t>(item_size(dtype)); }

// --- gated delta ---

// Tokens that are converted at a time: what is read of them stays in the first-level cache.
constexpr int64_t delta_tokens = 32;

struct DeltaPlan {
  Dtype::Val dtype;
  int64_t key_heads, value_heads, key_dims, value_dims;
  bool decays_by_feature;

  int64_t decay_dims() const { return decays_by_feature ? key_dims : 1; }
  int64_t scratch_floats() const {
    return delta_tokens * (2 * key_dims + 2 * value_dims + decay_dims() + 1);
  }
  // One head of one sequence: `queries` to `out` are those of its first token and first head.
  void run(int64_t head, const BoundSequences::Sequence& sequence, const char* queries,
           const char* keys, const char* values, const float* decay, const float* beta,
           float* state, char* out, float* scratch) const {
    const simd::QuantizedKernels& convert = simd::quantized_kernels();
    const int64_t item = item_of(dtype), key_head = head / (value_heads / key_heads);
    float* query = scratch;
    float* key = query + delta_tokens * key_dims;
    float* value = key + delta_tokens * key_dims;
    float* result = value + delta_tokens * value_dims;
    float* factor = result + delta_tokens * value_dims;
    float* gate = factor + delta_tokens * decay_dims();
    if (sequence.is_fresh) std::fill_n(state, key_dims * value_dims, 0.0f);
    for (int64_t first = 0; first < sequence.count; first += delta_tokens) {
      const int64_t count = std::min(delta_tokens, sequence.count - first);
      for (int64_t i = 0; i < count; ++i) {
        const int64_t token = sequence.first + first + i;
        const int64_t key_row = token * key_heads + key_head, row = token * value_heads + head;
        convert.widen(dtype, queries + key_row * key_dims * item, key_dims, query + i * key_dims);
        convert.widen(dtype, keys + key_row * key_dims * item, key_dims, key + i * key_dims);
        convert.widen(dtype, values + row * value_dims * item, value_dims, value + i * value_dims);
        std::copy_n(decay + row * decay_dims(), decay_dims(), factor + i * decay_dims());
        gate[i] = beta[row];
      }
      simd::recurrent_kernels().delta(
          {count, key_dims, value_dims, query, key, value, factor, gate, decays_by_feature,
           sequence.mask == nullptr ? nullptr : sequence.mask + first, state, state, result});
      for (int64_t i = 0; i < count; ++i) {
        const int64_t row = (sequence.first + first + i) * value_heads + head;
        convert.narrow(dtype, result + i * value_dims, value_dims, out + row * value_dims * item);
      }
    }
  }
};

// --- causal convolution ---

constexpr int64_t conv_channels = 256;  // of a task

struct ConvPlan {
  Dtype::Val dtype, state_dtype;
  int64_t channels, width;

  int64_t pieces() const { return divide_up(channels, conv_channels); }
  // The weights of a piece, a ring of inputs, and a result.
  int64_t scratch_floats() const { return (2 * width + 2) * conv_channels; }

  void run(int64_t piece, const BoundSequences::Sequence& sequence, const char* x,
           const float* weight, const float* bias, char* state, char* out, float* scratch) const {
    const simd::QuantizedKernels& convert = simd::quantized_kernels();
    const int64_t first = piece * conv_channels, item = item_of(dtype);
    const int64_t count = std::min(conv_channels, channels - first);
    const int64_t state_item = item_of(state_dtype);
    float* weights = scratch;
    float* ring = weights + width * conv_channels;
    float* result = ring + width * conv_channels;
    for (int64_t i = 0; i < width; ++i) {
      for (int64_t c = 0; c < count; ++c) {
        weights[i * count + c] = weight[(first + c) * width + i];
      }
    }
    // The ring's row of input n, counted from the oldest of the state.
    auto row = [&](int64_t n) { return ring + n % width * conv_channels; };
    auto remembered = [&](int64_t n) { return state + (n * channels + first) * state_item; };
    for (int64_t n = 0; n + 1 < width; ++n) {
      if (sequence.is_fresh) {
        std::fill_n(row(n), count, 0.0f);
      } else {
        convert.widen(state_dtype, remembered(n), count, row(n));
      }
    }
    int64_t next = width - 1;
    for (int64_t t = 0; t < sequence.count; ++t) {
      const int64_t at = ((sequence.first + t) * channels + first) * item;
      if (sequence.mask != nullptr && sequence.mask[t] == 0) {
        std::fill_n(out + at, count * item, char{0});
        continue;
      }
      convert.widen(dtype, x + at, count, row(next));
      const float* inputs[16];
      for (int64_t i = 0; i < width; ++i) inputs[i] = row(next - (width - 1) + i);
      simd::recurrent_kernels().convolve(inputs, width, weights, bias ? bias + first : nullptr,
                                         count, result);
      convert.narrow(dtype, result, count, out + at);
      ++next;
    }
    for (int64_t n = 0; n + 1 < width; ++n) {
      convert.narrow(state_dtype, row(next - (width - 1) + n), count, remembered(n));
    }
  }
};

}  // namespace

void CpuBackend::gated_delta(Encoder& encoder, const DeltaInputs& inputs, array& states,
                             array& out) {
  encoder.allocate(out);
  if (inputs.sequences.sequences == 0) return;
  array queries = make_dense(encoder, inputs.queries), keys = make_dense(encoder, inputs.keys);
  array values = make_dense(encoder, inputs.values), decay = make_dense(encoder, inputs.decay);
  array beta = make_dense(encoder, inputs.beta);
  const DeltaPlan plan{values.dtype().val(), keys.shape(-2),   values.shape(-2),
                       keys.shape(-1),       values.shape(-1), decay.ndim() == values.ndim()};
  if (plan.value_heads == 0) return;
  const int64_t tokens = static_cast<int64_t>(beta.size()) / plan.value_heads;
  const BoundSequences sequences(encoder, inputs.sequences, tokens, states.shape(0));
  const Bound query = encoder.input(queries), key = encoder.input(keys);
  const Bound value = encoder.input(values), factor = encoder.input(decay);
  const Bound gate = encoder.input(beta);
  encoder.input(states);
  const Bound state = encoder.output(states), target = encoder.output(out);
  const int64_t tasks = inputs.sequences.sequences * plan.value_heads;
  const int64_t state_size = plan.key_dims * plan.value_dims;
  encoder.native(
      encoder.op(), tasks, (8 * inputs.sequences.sequences + 2 * tokens) * state_size,
      [=](const NativeContext& context, int64_t begin, int64_t end) {
        TaskScratch scratch(static_cast<size_t>(plan.scratch_floats()) * sizeof(float));
        for (int64_t task = begin; task < end; ++task) {
          const int64_t head = task % plan.value_heads;
          const auto sequence = sequences.at("gated_delta", context, task / plan.value_heads);
          char* to = context.data(target);
          if (sequence.state < 0) {
            const int64_t bytes = plan.value_dims * item_of(plan.dtype);
            for (int64_t t = 0; t < sequence.count; ++t) {
              const int64_t row = (sequence.first + t) * plan.value_heads + head;
              std::fill_n(to + row * bytes, bytes, char{0});
            }
            continue;
          }
          float* of_head =
              context.data<float>(state) + (sequence.state * plan.value_heads + head) * state_size;
          plan.run(head, sequence, context.data(query), context.data(key), context.data(value),
                   context.data<const float>(factor), context.data<const float>(gate), of_head, to,
                   static_cast<float*>(scratch.get()));
        }
      });
}

void CpuBackend::causal_conv(Encoder& encoder, const ConvInputs& inputs, array& states,
                             array& out) {
  encoder.allocate(out);
  if (inputs.sequences.sequences == 0) return;
  array x = make_dense(encoder, inputs.x), weights = make_dense(encoder, inputs.weight);
  std::optional<array> biases;
  if (inputs.bias != nullptr) biases = make_dense(encoder, *inputs.bias);
  const ConvPlan plan{x.dtype().val(), states.dtype().val(), weights.shape(0), weights.shape(1)};
  if (plan.channels == 0) return;
  const int64_t tokens = static_cast<int64_t>(x.size()) / plan.channels;
  const BoundSequences sequences(encoder, inputs.sequences, tokens, states.shape(0));
  const Bound source = encoder.input(x), weight = encoder.input(weights);
  const Bound bias = biases ? encoder.input(*biases) : Bound{};
  encoder.input(states);
  const Bound state = encoder.output(states), target = encoder.output(out);
  const int64_t pieces = plan.pieces();
  const int64_t state_bytes = (plan.width - 1) * plan.channels * item_of(plan.state_dtype);
  encoder.native(
      encoder.op(), inputs.sequences.sequences * pieces,
      4 * static_cast<int64_t>(x.nbytes()) + 2 * inputs.sequences.sequences * state_bytes,
      [=](const NativeContext& context, int64_t begin, int64_t end) {
        TaskScratch scratch(static_cast<size_t>(plan.scratch_floats()) * sizeof(float));
        for (int64_t task = begin; task < end; ++task) {
          const auto sequence = sequences.at("causal_conv", context, task / pieces);
          char* to = context.data(target);
          if (sequence.state < 0) {
            // Once, by the sequence's first task.
            const int64_t bytes = plan.channels * item_of(plan.dtype);
            if (task % pieces == 0) {
              std::fill_n(to + sequence.first * bytes, sequence.count * bytes, char{0});
            }
            continue;
          }
          plan.run(task % pieces, sequence, context.data(source), context.data<const float>(weight),
                   context.data<const float>(bias),
                   context.data(state) + sequence.state * state_bytes, to,
                   static_cast<float*>(scratch.get()));
        }
      });
}

}  // namespace holdfast::kernels::cpu
