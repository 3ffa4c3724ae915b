#include <holdfast/lm/config.h>

#include <algorithm>
#include <cmath>

#include <holdfast/lm/errors.h>

#include "lm/support.h"

namespace holdfast::lm {
namespace {

// Beyond these a config is taken for damaged: no model comes near them, and products of two fit.
constexpr int largest_size = 1 << 24, most_layers = 4096, most_experts = 1 << 16;

void need(const Config& config, bool holds, const std::string& what) {
  if (!holds) throw ModelError(message("config of a ", config.architecture, " model: ", what));
}

void need_size(const Config& config, const char* name, int value, int most = largest_size) {
  need(config, value > 0 && value <= most,
       message(name, " must be from 1 to ", most, ", got ", value));
}

void check_rope(const Config& config, const RopeConfig& rope) {
  need(config, rope.dims > 0 && rope.dims <= config.head_dims && rope.dims % 2 == 0,
       message("rope must turn an even number of features, at most head_dim (", config.head_dims,
               "), got ", rope.dims));
  need(config, std::isfinite(rope.base) && rope.base > 0,
       message("rope_theta must be above 0, got ", rope.base));
  const std::string& kind = rope.scaling;
  need(config, kind == "default" || kind == "linear" || kind == "llama3" || kind == "yarn",
       message("rope scaling \"", kind,
               "\" is not supported; default, linear, llama3 and yarn are"));
  need(config, std::isfinite(rope.factor) && rope.factor > 0,
       message("rope's factor must be above 0, got ", rope.factor));
  if (kind == "llama3" || kind == "yarn") {
    need(config, rope.original_positions > 0,
         message("rope scaling \"", kind, "\" needs original_max_position_embeddings"));
  }
  if (kind == "llama3") {
    need(config, rope.high_frequency_factor > rope.low_frequency_factor,
         message("rope's high_freq_factor (", rope.high_frequency_factor,
                 ") must be above its low_freq_factor (", rope.low_frequency_factor, ")"));
  }
}

void check_delta_net(const Config& config) {
  need_size(config, "linear_num_key_heads", config.delta_key_heads);
  need_size(config, "linear_num_value_heads", config.delta_value_heads);
  need_size(config, "linear_key_head_dim", config.delta_key_dims);
  need_size(config, "linear_value_head_dim", config.delta_value_dims);
  need(config, config.delta_value_heads % config.delta_key_heads == 0,
       message("linear_num_value_heads (", config.delta_value_heads,
               ") must be a multiple of linear_num_key_heads (", config.delta_key_heads, ")"));
  need(config, config.conv_width >= 2 && config.conv_width <= 16,
       message("linear_conv_kernel_dim must be from 2 to 16, got ", config.conv_width));
}

}  // namespace

bool Config::has(Mixer mixer) const { return count(mixer) > 0; }

int Config::count(Mixer mixer) const {
  return static_cast<int>(std::count(layers.begin(), layers.end(), mixer));
}

void Config::check() const {
  need_size(*this, "vocab_size", vocabulary);
  need_size(*this, "hidden_size", hidden);
  need(*this, !layers.empty() && layers.size() <= most_layers,
       message("num_hidden_layers must be from 1 to ", most_layers, ", got ", layers.size()));
  need_size(*this, "num_attention_heads", heads, 1 << 14);
  need_size(*this, "num_key_value_heads", key_heads, 1 << 14);
  need_size(*this, "head_dim", head_dims, 1024);
  need(*this, head_dims % 16 == 0, message("head_dim must be a multiple of 16, got ", head_dims));
  need(*this, heads % key_heads == 0,
       message("num_attention_heads (", heads, ") must be a multiple of num_key_value_heads (",
               key_heads, ")"));
  need(*this, std::isfinite(norm_epsilon) && norm_epsilon >= 0,
       message("rms_norm_eps must not be negative, got ", norm_epsilon));
  need(*this, std::isfinite(attention_scale) && attention_scale > 0,
       message("the scale of attention must be above 0, got ", attention_scale));
  need(*this, most_positions >= 0,
       message("max_position_embeddings must not be negative, got ", most_positions));
  check_rope(*this, rope);
  if (has(Mixer::sliding_attention)) {
    check_rope(*this, sliding_rope);
    need_size(*this, "sliding_window", window, 1 << 30);
  }
  if (has(Mixer::delta_net)) check_delta_net(*this);
  need(*this, sparse.size() == layers.size(), "layers with experts are not known for each layer");
  if (std::count(sparse.begin(), sparse.end(), false) > 0)
    need_size(*this, "intermediate_size", feed_forward);
  if (std::count(sparse.begin(), sparse.end(), true) > 0) {
    need_size(*this, "num_experts", experts, most_experts);
    need_size(*this, "moe_intermediate_size", expert_feed_forward);
    need(*this, experts_per_token > 0 && experts_per_token <= experts,
         message("num_experts_per_tok must be from 1 to num_experts (", experts, "), got ",
                 experts_per_token));
    need(
        *this, shared_feed_forward >= 0 && shared_feed_forward <= largest_size,
        message("shared_expert_intermediate_size must not be negative, got ", shared_feed_forward));
  }
}

}  // namespace holdfast::lm
