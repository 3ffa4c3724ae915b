#include "kernels/plan/recurrent.h"

#include <array>
#include <optional>
#include <string>

#include "base/text.h"
#include "kernels/metal/launch.h"
#include "kernels/metal/metal_backend.h"
#include "kernels/metal/parts.h"
#include "kernels/staging.h"

namespace holdfast::kernels::metal {
namespace {

#include "kernels/metal/support/recurrent_parameters.h"

constexpr int64_t most_delta_dims = 256;

// What is not there is `other`, which the kernels do not read then.
class DenseSequences {
 public:
  DenseSequences(Encoder& encoder, const SequenceInputs& inputs, int64_t tokens, int64_t states,
                 const array& other)
      : argument_{fit(inputs.sequences),
                  fit(tokens),
                  fit(states),
                  fit(tokens / inputs.sequences),
                  inputs.starts != nullptr,
                  inputs.slots != nullptr,
                  inputs.fresh != nullptr,
                  inputs.mask != nullptr},
        arrays_{given(encoder, inputs.starts, other), given(encoder, inputs.slots, other),
                given(encoder, inputs.fresh, other), given(encoder, inputs.mask, other)} {}

  const RecurrentSequences& argument() const { return argument_; }
  Launch& bind(Launch& launch) const {
    for (const array& a : arrays_) launch.input(a);
    return launch;
  }
  static std::vector<std::string> messages(const char* op, int64_t tokens, int64_t states) {
    return {text("[", op, "] starts must rise from 0 to the number of tokens (", tokens,
                 "), got {} and {}"),
            text("[", op, "] slot {} of sequence {} must be less than the number of states (",
                 states, ")")};
  }

 private:
  static array given(Encoder& encoder, const array* a, const array& other) {
    return a != nullptr ? make_dense(encoder, *a) : other;
  }
  RecurrentSequences argument_;
  std::array<array, 4> arrays_;
};

}  // namespace

void MetalBackend::gated_delta(Encoder& encoder, const DeltaInputs& inputs, array& states,
                               array& out) {
  // Without states, results are zeros all the same.
  if (inputs.keys.shape(-1) > most_delta_dims || states.size() == 0) throw exec::NoKernel();
  encoder.allocate(out);
  if (inputs.sequences.sequences == 0) return;
  array queries = make_dense(encoder, inputs.queries), keys = make_dense(encoder, inputs.keys);
  array values = make_dense(encoder, inputs.values), decay = make_dense(encoder, inputs.decay);
  array beta = make_dense(encoder, inputs.beta);
  const DeltaSizes delta{fit(keys.shape(-2)), fit(values.shape(-2)), fit(keys.shape(-1)),
                         fit(values.shape(-1)), decay.ndim() == values.ndim()};
  const int64_t tokens = static_cast<int64_t>(beta.size()) / delta.value_heads;
  const DenseSequences sequences(encoder, inputs.sequences, tokens, states.shape(0), beta);
  Launch launch(encoder, "recurrent", entry_of("gated_delta", values));
  launch.input(queries).input(keys).input(values).input(decay).input(beta);
  sequences.bind(launch)
      .output(states)
      .output(out)
      .value(sequences.argument())
      .value(delta)
      .errors(DenseSequences::messages("gated_delta", tokens, states.shape(0)))
      .over(int64_t{32} * inputs.sequences.sequences * delta.value_heads * delta.value_dims, 128);
}

void MetalBackend::causal_conv(Encoder& encoder, const ConvInputs& inputs, array& states,
                               array& out) {
  encoder.allocate(out);
  const int64_t channels = inputs.weight.shape(0);
  if (inputs.sequences.sequences == 0 || channels == 0) return;
  array x = make_dense(encoder, inputs.x), weight = make_dense(encoder, inputs.weight);
  array bias = inputs.bias != nullptr ? make_dense(encoder, *inputs.bias) : weight;
  const ConvSizes conv{fit(channels), fit(weight.shape(1)), inputs.bias != nullptr};
  const int64_t tokens = static_cast<int64_t>(x.size()) / channels;
  const DenseSequences sequences(encoder, inputs.sequences, tokens, states.shape(0), weight);
  const std::string entry = entry_of("causal_conv", x);
  Launch launch(encoder, "recurrent", states.dtype() == x.dtype() ? entry : entry + "_float32");
  launch.input(x).input(weight).input(bias);
  sequences.bind(launch)
      .output(states)
      .output(out)
      .value(sequences.argument())
      .value(conv)
      .errors(DenseSequences::messages("causal_conv", tokens, states.shape(0)))
      .over(inputs.sequences.sequences * channels, 256);
}

}  // namespace holdfast::kernels::metal
