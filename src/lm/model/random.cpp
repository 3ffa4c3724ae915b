// Models of random weights: for tests and benchmarks of any shape.
#include <cmath>

#include <holdfast/ops.h>
#include <holdfast/random.h>

#include "lm/model/layers.h"
#include "lm/model/load.h"
#include "lm/support.h"

namespace holdfast::lm {
namespace {

class RandomTensors {
 public:
  RandomTensors(const Config& config, const RandomOptions& options)
      : config_(config), options_(options) {}

  std::unordered_map<std::string, array> all() {
    matrix("embed_tokens", {config_.vocabulary, config_.hidden});
    if (!config_.tied_embeddings) matrix("lm_head", {config_.vocabulary, config_.hidden});
    norm("norm", config_.hidden);
    for (size_t i = 0; i < config_.layers.size(); ++i) layer(i);
    return std::move(tensors_);
  }

 private:
  array normal(Shape shape, float scale) {
    array key = random::key(options_.seed * 1000003 + count_++);
    return random::normal(shape, options_.dtype, 0.0f, scale, key, options_.stream);
  }
  void matrix(const std::string& stem, Shape shape, bool has_bias = false, int bits = 0) {
    const int inputs = shape.back(), outputs = shape[shape.size() - 2];
    array weight = normal(shape, 1.0f / std::sqrt(static_cast<float>(inputs)));
    if (options_.bits > 0) {
      std::vector<array> parts =
          quantize(weight, options_.group_size, bits > 0 ? bits : options_.bits, "affine",
                   std::nullopt, options_.stream);
      tensors_.insert({stem + ".weight", parts[0]});
      tensors_.insert({stem + ".scales", parts[1]});
      tensors_.insert({stem + ".biases", parts[2]});
    } else {
      tensors_.insert({stem + ".weight", weight});
    }
    if (has_bias) tensors_.insert({stem + ".bias", normal({outputs}, 0.1f)});
  }
  // Around what leaves the numbers as they are.
  void norm(const std::string& stem, int size, bool may_be_offset = true) {
    array weight = normal({size}, 0.1f);
    if (!config_.offset_norms || !may_be_offset)
      weight = add(weight, array(1.0f, options_.dtype), options_.stream);
    tensors_.insert({stem + ".weight", weight});
  }
  void feed_forward(const std::string& stem, int size, bool has_bias) {
    matrix(stem + "gate_proj", {size, config_.hidden}, has_bias);
    matrix(stem + "up_proj", {size, config_.hidden}, has_bias);
    matrix(stem + "down_proj", {config_.hidden, size}, has_bias);
  }
  void experts(const std::string& stem) {
    const int count = config_.experts, size = config_.expert_feed_forward;
    matrix(stem + "gate", {count, config_.hidden}, false, 8);
    matrix(stem + "switch_mlp.gate_proj", {count, size, config_.hidden});
    matrix(stem + "switch_mlp.up_proj", {count, size, config_.hidden});
    matrix(stem + "switch_mlp.down_proj", {count, config_.hidden, size});
    if (config_.shared_feed_forward == 0) return;
    feed_forward(stem + "shared_expert.", config_.shared_feed_forward, false);
    matrix(stem + "shared_expert_gate", {1, config_.hidden}, false, 8);
  }
  void attention(const std::string& stem) {
    const int queries = config_.heads * config_.head_dims,
              keys = config_.key_heads * config_.head_dims;
    bool bias = config_.query_bias;
    matrix(stem + "q_proj", {queries * (config_.output_gate ? 2 : 1), config_.hidden}, bias);
    matrix(stem + "k_proj", {keys, config_.hidden}, bias);
    matrix(stem + "v_proj", {keys, config_.hidden}, bias);
    matrix(stem + "o_proj", {config_.hidden, queries}, config_.output_bias);
    if (!config_.query_norm) return;
    norm(stem + "q_norm", config_.head_dims);
    norm(stem + "k_norm", config_.head_dims);
  }
  void delta_net(const std::string& stem) {
    const int keys = config_.delta_key_heads * config_.delta_key_dims;
    const int values = config_.delta_value_heads * config_.delta_value_dims;
    const int channels = 2 * keys + values;
    matrix(stem + "in_proj_qkv", {channels, config_.hidden});
    matrix(stem + "in_proj_z", {values, config_.hidden});
    matrix(stem + "in_proj_b", {config_.delta_value_heads, config_.hidden});
    matrix(stem + "in_proj_a", {config_.delta_value_heads, config_.hidden});
    matrix(stem + "out_proj", {config_.hidden, values});
    tensors_.insert({stem + "conv1d.weight", normal({channels, 1, config_.conv_width}, 0.5f)});
    tensors_.insert({stem + "A_log", normal({config_.delta_value_heads}, 0.5f)});
    tensors_.insert({stem + "dt_bias", normal({config_.delta_value_heads}, 0.5f)});
    norm(stem + "norm", config_.delta_value_dims, false);
  }
  void layer(size_t i) {
    std::string stem = "layers." + std::to_string(i) + ".";
    norm(stem + "input_layernorm", config_.hidden);
    norm(stem + "post_attention_layernorm", config_.hidden);
    if (config_.sandwich_norms) {
      norm(stem + "pre_feedforward_layernorm", config_.hidden);
      norm(stem + "post_feedforward_layernorm", config_.hidden);
    }
    if (config_.layers[i] == Mixer::delta_net) {
      delta_net(stem + "linear_attn.");
    } else {
      attention(stem + "self_attn.");
    }
    if (config_.sparse[i]) {
      experts(stem + "mlp.");
    } else {
      feed_forward(stem + "mlp.", config_.feed_forward, config_.feed_forward_bias);
    }
  }

  const Config& config_;
  const RandomOptions& options_;
  uint64_t count_ = 0;
  std::unordered_map<std::string, array> tensors_;
};

}  // namespace

std::unordered_map<std::string, array> random_tensors(const Config& config,
                                                      const RandomOptions& options) {
  return RandomTensors(config, options).all();
}

std::shared_ptr<const Model> Model::random(const Config& config, const RandomOptions& options) {
  config.check();
  Weights weights = Weights::of_arrays(random_tensors(config, options), "random weights",
                                       {.stream = options.stream});
  return std::make_shared<const Model>(build_model(weights, config, options.dtype));
}

}  // namespace holdfast::lm
