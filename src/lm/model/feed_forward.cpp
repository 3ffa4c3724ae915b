#include <cmath>

#include <holdfast/ops.h>

#include "lm/model/layers.h"
#include "lm/support.h"

namespace holdfast::lm {
namespace {

// The experts' matrices (experts, outputs, inputs) of one kind, from whichever layout the files
// have: "switch_mlp.<name>" (MLX, GGUF), or "experts.<i>.<name>" (an array for each).
Linear take_experts(const Loader& from, const std::string& stem, const char* name, int outputs,
                    int inputs) {
  int count = from.config.experts;
  if (from.weights.has(stem + "switch_mlp." + name + ".weight"))
    return take_linear(from.weights, stem + "switch_mlp." + name, outputs, inputs, false,
                       from.dtype, count);
  std::vector<array> codes, scales, biases;
  Linear first{array(0.0f), {}, {}, {}, 0, 0, ""};
  for (int i = 0; i < count; ++i) {
    Linear one = from.linear(stem + "experts." + std::to_string(i) + "." + name, outputs, inputs);
    codes.push_back(std::move(one.weight));
    if (one.scales) scales.push_back(*one.scales);
    if (one.biases) biases.push_back(*one.biases);
    if (i == 0) first = {array(0.0f), {}, {}, {}, one.group_size, one.bits, one.mode};
    if (one.bits != first.bits || one.mode != first.mode || one.group_size != first.group_size)
      from.weights.fail(message("the experts of ", stem, " are quantised in different formats"));
  }
  first.weight = stack(codes, 0);
  if (!scales.empty()) first.scales = stack(scales, 0);
  if (!biases.empty()) first.biases = stack(biases, 0);
  return first;
}

}  // namespace

array activate(const array& x, Activation activation) {
  if (activation == Activation::silu) return multiply(x, sigmoid(x));
  auto number = [&](double value) { return array(static_cast<float>(value), x.dtype()); };
  array cube = multiply(multiply(x, x), x);
  array inner = multiply(number(std::sqrt(2.0 / M_PI)), add(x, multiply(number(0.044715), cube)));
  return multiply(multiply(number(0.5), x), add(number(1.0), tanh(inner)));
}

FeedForward::FeedForward(const Loader& from, const std::string& stem, int size)
    : activation_(from.config.activation),
      down_(from.linear(stem + "down_proj", from.config.hidden, size,
                        from.config.feed_forward_bias)) {
  const Config& config = from.config;
  gate_up_ =
      JoinedLinear(from.weights,
                   {from.linear(stem + "gate_proj", size, config.hidden, config.feed_forward_bias),
                    from.linear(stem + "up_proj", size, config.hidden, config.feed_forward_bias)},
                   stem + "gate_up");
  keep_linear(from.weights, down_, stem + "down_proj");
}

array FeedForward::operator()(const array& x) const {
  std::vector<array> parts = gate_up_(x);
  return down_(multiply(activate(parts[0], activation_), parts[1]));
}

Experts::Experts(const Loader& from, const std::string& stem)
    : count_(from.config.experts),
      chosen_(from.config.experts_per_token),
      normalised_(from.config.normalised_experts),
      activation_(from.config.activation),
      router_(from.linear(stem + "gate", count_, from.config.hidden)),
      down_{array(0.0f), {}, {}, {}, 0, 0, ""} {
  const Config& config = from.config;
  const int hidden = config.hidden, size = config.expert_feed_forward;
  if (from.weights.has(stem + "experts.gate_up_proj")) {  // gate and up as one, for all experts
    gate_up_ = JoinedLinear(
        from.weights,
        [&] {
          array both = from.weights.take_floats(stem + "experts.gate_up_proj",
                                                {count_, 2 * size, hidden}, from.dtype);
          std::vector<Linear> halves;
          for (array& half : split(both, 2, 1))
            halves.push_back({std::move(half), {}, {}, {}, 0, 0, ""});
          return halves;
        }(),
        stem + "experts.gate_up_proj");
    down_.weight =
        from.weights.take_floats(stem + "experts.down_proj", {count_, hidden, size}, from.dtype);
  } else {
    gate_up_ = JoinedLinear(from.weights,
                            {take_experts(from, stem, "gate_proj", size, hidden),
                             take_experts(from, stem, "up_proj", size, hidden)},
                            stem + "experts.gate_up_proj");
    down_ = take_experts(from, stem, "down_proj", hidden, size);
  }
  keep_linear(from.weights, router_, stem + "gate");
  keep_linear(from.weights, down_, stem + "experts.down_proj");
  if (config.shared_feed_forward > 0) {
    shared_.emplace(from, stem + "shared_expert.", config.shared_feed_forward);
    if (from.weights.has(stem + "shared_expert_gate.weight")) {
      const array* gate = from.weights.find(stem + "shared_expert_gate.weight");
      if (gate->ndim() == 1) {  // GGUF: a vector
        shared_gate_ = Linear{
            expand_dims(
                from.weights.take_floats(stem + "shared_expert_gate.weight", {hidden}, from.dtype),
                0),
            {},
            {},
            {},
            0,
            0,
            ""};
      } else {
        shared_gate_ = from.linear(stem + "shared_expert_gate", 1, hidden);
      }
      keep_linear(from.weights, *shared_gate_, stem + "shared_expert_gate");
    }
  }
}

array Experts::operator()(const array& x) const {
  array weights = softmax(astype(router_(x), float32), -1);
  array chosen = split(argpartition(negative(weights), chosen_ - 1, -1), Shape{chosen_}, -1)[0];
  array shares = take_along_axis(weights, chosen, -1);
  if (normalised_) shares = divide(shares, sum(shares, -1, true));
  array rows = expand_dims(x, 1);  // (tokens, 1, hidden), the same for all chosen experts
  std::vector<array> parts = gate_up_.of_experts(rows, chosen);
  array y = down_.of_experts(multiply(activate(parts[0], activation_), parts[1]), chosen);
  y = sum(multiply(astype(y, float32), expand_dims(shares, -1)), 1);
  if (shared_) {
    array common = astype((*shared_)(x), float32);
    if (shared_gate_) common = multiply(common, sigmoid(astype((*shared_gate_)(x), float32)));
    y = add(y, common);
  }
  return astype(y, x.dtype());
}

size_t Experts::bytes() const {
  size_t sum = router_.bytes() + gate_up_.bytes() + down_.bytes();
  if (shared_) sum += shared_->bytes();
  if (shared_gate_) sum += shared_gate_->bytes();
  return sum;
}

size_t Experts::active_bytes() const {
  size_t of_all = gate_up_.bytes() + down_.bytes();
  return bytes() - of_all + of_all / static_cast<size_t>(count_) * static_cast<size_t>(chosen_);
}

}  // namespace holdfast::lm
