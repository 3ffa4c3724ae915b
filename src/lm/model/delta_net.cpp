#include <cmath>

#include <holdfast/ops.h>

#include "lm/model/layers.h"
#include "lm/support.h"

namespace holdfast::lm {
namespace {

// Rows of a product in which each key head has its parts together, sorted by part. `sizes`: rows of
// each part for one key head.
std::vector<Linear> parts_of_heads(const Linear& whole, int key_heads,
                                   const std::vector<int>& sizes) {
  int all = 0;
  Shape ends;
  for (size_t i = 0; i < sizes.size(); ++i) {
    all += sizes[i];
    if (i + 1 < sizes.size()) ends.push_back(all);
  }
  auto parts_of = [&](const array& rows) {
    std::vector<array> parts = split(reshape(rows, {key_heads, all, -1}), ends, 1);
    for (size_t i = 0; i < parts.size(); ++i)
      parts[i] = reshape(parts[i], {key_heads * sizes[i], rows.shape(-1)});
    return parts;
  };
  std::vector<Linear> result;
  std::vector<array> codes = parts_of(whole.weight), scales, biases;
  if (whole.scales) scales = parts_of(*whole.scales);
  if (whole.biases) biases = parts_of(*whole.biases);
  for (size_t i = 0; i < sizes.size(); ++i) {
    Linear part{codes[i], {}, {}, {}, whole.group_size, whole.bits, whole.mode};
    if (whole.scales) part.scales = scales[i];
    if (whole.biases) part.biases = biases[i];
    result.push_back(std::move(part));
  }
  return result;
}

array unit_length(const array& x) {
  array wide = astype(x, float32);
  array squares = sum(multiply(wide, wide), -1, true);
  return multiply(wide, rsqrt(add(squares, array(1e-6f))));
}

}  // namespace

DeltaNet::DeltaNet(const Loader& from, const std::string& stem)
    : key_heads_(from.config.delta_key_heads),
      value_heads_(from.config.delta_value_heads),
      key_dims_(from.config.delta_key_dims),
      value_dims_(from.config.delta_value_dims),
      epsilon_(from.config.norm_epsilon),
      output_(from.linear(stem + "out_proj", from.config.hidden, value_heads_ * value_dims_)),
      convolution_(array(0.0f)),
      rate_(array(0.0f)),
      offset_(array(0.0f)),
      norm_(array(0.0f)) {
  const Config& config = from.config;
  Weights& weights = from.weights;
  const int keys = key_heads_ * key_dims_, values = value_heads_ * value_dims_;
  const int channels = 2 * keys + values, hidden = config.hidden;
  std::vector<Linear> inputs;
  if (weights.has(stem + "in_proj_qkvz.weight")) {
    const int each = value_heads_ / key_heads_;
    inputs =
        parts_of_heads(from.linear(stem + "in_proj_qkvz", channels + values, hidden), key_heads_,
                       {key_dims_, key_dims_, each * value_dims_, each * value_dims_});
    for (Linear& part : parts_of_heads(from.linear(stem + "in_proj_ba", 2 * value_heads_, hidden),
                                       key_heads_, {each, each}))
      inputs.push_back(std::move(part));
  } else {
    // As above: queries, keys, values, gate, beta, decay; the first three stay one.
    inputs.push_back(from.linear(stem + "in_proj_qkv", channels, hidden));
    inputs.push_back(from.linear(stem + "in_proj_z", values, hidden));
    inputs.push_back(from.linear(stem + "in_proj_b", value_heads_, hidden));
    inputs.push_back(from.linear(stem + "in_proj_a", value_heads_, hidden));
  }
  inputs_ = JoinedLinear(weights, std::move(inputs), stem + "in_proj");
  keep_linear(weights, output_, stem + "out_proj");

  // (channels, 1, width) in Hugging Face's files, (channels, width, 1) in MLX's.
  array convolution = weights.take(stem + "conv1d.weight");
  if (convolution.size() !=
          static_cast<size_t>(channels) * static_cast<size_t>(config.conv_width) ||
      convolution.ndim() != 3 || convolution.shape(0) != channels)
    weights.fail(message("the tensor \"", stem, "conv1d.weight\" must have ", channels,
                         " channels of width ", config.conv_width));
  convolution_ = weights.keep(
      astype(reshape(convolution, {channels, config.conv_width}), from.dtype), stem + "conv1d");
  array decay = weights.take_floats(stem + "A_log", {value_heads_}, float32);
  rate_ = weights.keep(negative(exp(decay)), stem + "A_log");
  offset_ = weights.keep(weights.take_floats(stem + "dt_bias", {value_heads_}, float32),
                         stem + "dt_bias");
  norm_ = weights.keep(weights.take_floats(stem + "norm.weight", {value_dims_}, from.dtype),
                       stem + "norm");
}

array DeltaNet::operator()(const array& x, const StepArrays& step, Cache::Layer& cache) const {
  const int tokens = x.shape(0), keys = key_heads_ * key_dims_;
  std::vector<array> parts = inputs_(x);
  array mixed = parts.size() == 6 ? concatenate({parts[0], parts[1], parts[2]}, -1) : parts[0];
  const array &gate = parts[parts.size() - 3], &b = parts[parts.size() - 2], &a = parts.back();

  array inputs = std::move(cache.inputs.value()), states = std::move(cache.states.value());
  cache.inputs.reset();
  cache.states.reset();
  // With one token for each sequence the axis of tokens is there, else tokens are ragged.
  auto ragged = [&](const array& rows) { return step.starts ? rows : expand_dims(rows, 1); };
  auto flat = [&](const array& rows) { return step.starts ? rows : squeeze(rows, 1); };
  std::tie(mixed, inputs) = fast::causal_conv(ragged(mixed), convolution_, std::move(inputs),
                                              std::nullopt, step.sequences);
  mixed = activate(flat(mixed), Activation::silu);
  std::vector<array> qkv = split(mixed, Shape{keys, 2 * keys}, -1);
  array q = unit_length(reshape(qkv[0], {tokens, key_heads_, key_dims_}));
  array k = unit_length(reshape(qkv[1], {tokens, key_heads_, key_dims_}));
  array v = reshape(qkv[2], {tokens, value_heads_, value_dims_});
  q = multiply(q, array(1.0f / std::sqrt(static_cast<float>(key_dims_))));
  array delay = add(astype(a, float32), offset_);
  array decay = exp(multiply(rate_, logaddexp(delay, array(0.0f))));
  array beta = sigmoid(astype(b, float32));
  array y = v;
  std::tie(y, states) =
      fast::gated_delta(ragged(q), ragged(k), ragged(astype(v, float32)), ragged(decay),
                        ragged(beta), std::move(states), step.sequences);
  cache.inputs = std::move(inputs);
  cache.states = std::move(states);
  y = astype(fast::rms_norm(flat(y), norm_, epsilon_), float32);
  array z = astype(reshape(gate, {tokens, value_heads_, value_dims_}), float32);
  y = multiply(y, activate(z, Activation::silu));
  return output_(astype(reshape(y, {tokens, value_heads_ * value_dims_}), x.dtype()));
}

}  // namespace holdfast::lm
