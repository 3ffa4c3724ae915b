#include <holdfast/ops.h>

#include "lm/model/layers.h"

namespace holdfast::lm {

Attention::Attention(const Loader& from, const std::string& stem, Mixer kind, const Rope& rope)
    : heads_(from.config.heads),
      key_heads_(from.config.key_heads),
      dims_(from.config.head_dims),
      window_(kind == Mixer::sliding_attention ? from.config.window : 0),
      has_gate_(from.config.output_gate),
      scale_(from.config.attention_scale),
      epsilon_(from.config.norm_epsilon),
      rope_(rope),
      output_(from.linear(stem + "o_proj", from.config.hidden, heads_ * dims_,
                          from.config.output_bias)) {
  const Config& config = from.config;
  auto input = [&](const char* name, int outputs) {
    return from.linear(stem + name, outputs, config.hidden, config.query_bias);
  };
  inputs_ = JoinedLinear(from.weights,
                         {input("q_proj", heads_ * dims_ * (has_gate_ ? 2 : 1)),
                          input("k_proj", key_heads_ * dims_), input("v_proj", key_heads_ * dims_)},
                         stem + "qkv");
  keep_linear(from.weights, output_, stem + "o_proj");
  if (config.query_norm) {
    query_norm_ = from.norm(stem + "q_norm.weight", dims_);
    key_norm_ = from.norm(stem + "k_norm.weight", dims_);
  }
}

array Attention::operator()(const array& x, const StepArrays& step, Cache::Layer& cache) const {
  const int tokens = x.shape(0);
  std::vector<array> parts = inputs_(x);
  array queries = reshape(parts[0], {tokens, heads_, -1});
  array keys = reshape(parts[1], {tokens, key_heads_, dims_});
  array values = reshape(parts[2], {tokens, key_heads_, dims_});
  std::optional<array> gate;
  if (has_gate_) {
    std::vector<array> halves = split(queries, 2, -1);
    queries = halves[0];
    gate = reshape(halves[1], {tokens, heads_ * dims_});
  }
  if (query_norm_) {
    queries = fast::rms_norm(queries, query_norm_, epsilon_);
    keys = fast::rms_norm(keys, key_norm_, epsilon_);
  }
  queries = rope_(queries, step.positions);
  keys = rope_(keys, step.positions);
  // Out of the cache while they are written: nothing else may hold them, and an error loses them.
  array key_pool = std::move(cache.keys.value()), value_pool = std::move(cache.values.value());
  cache.keys.reset();
  cache.values.reset();
  std::tie(key_pool, value_pool) = fast::kv_write(std::move(key_pool), std::move(value_pool), keys,
                                                  values, step.slots, cache.scheme);
  array y = fast::paged_attention(queries, key_pool, value_pool, step.blocks, step.lengths, scale_,
                                  cache.scheme, step.starts, window_);
  cache.keys = std::move(key_pool);
  cache.values = std::move(value_pool);
  y = reshape(y, {tokens, heads_ * dims_});
  if (gate) y = multiply(y, sigmoid(*gate));
  return output_(y);
}

}  // namespace holdfast::lm
