// What a model is made of: read from config.json or from the metadata of a GGUF file.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include <holdfast/io.h>

namespace holdfast::lm {

// How positions turn the features of queries and keys.
struct RopeConfig {
  int dims = 0;  // features that turn; the others stay
  float base = 10000.0f;
  bool traditional = false;         // pairs are neighbours
  std::string scaling = "default";  // or "linear", "llama3", "yarn"
  float factor = 1.0f;
  float low_frequency_factor = 1.0f, high_frequency_factor = 4.0f;  // llama3
  float beta_fast = 32.0f, beta_slow = 1.0f;                        // yarn
  float attention_factor = 0.0f;  // yarn; 0: what follows from the factor
  int original_positions = 0;     // llama3, yarn
};

// What lets the tokens of a sequence see each other in a layer.
enum class Mixer { full_attention, sliding_attention, delta_net };
enum class Activation { silu, gelu };

struct Config {
  std::string architecture;  // "llama", "qwen3_moe", …: a row of the table (known_architectures)

  int vocabulary = 0, hidden = 0, feed_forward = 0;
  int heads = 0, key_heads = 0, head_dims = 0;
  int most_positions = 0;  // 0: not said
  float norm_epsilon = 1e-6f;
  float attention_scale = 0.0f;
  bool tied_embeddings = false;
  Activation activation = Activation::silu;
  RopeConfig rope;          // of full attention
  RopeConfig sliding_rope;  // of sliding attention
  int window = 0;           // of sliding attention
  std::vector<Mixer> layers;

  // Variants.
  bool query_bias = false, output_bias = false, feed_forward_bias = false;
  bool query_norm = false;         // RMS norm of each head's query and key
  bool output_gate = false;        // attention's result times the sigmoid of a gate
  bool sandwich_norms = false;     // norms after attention and feed-forward, too
  bool offset_norms = false;       // norms multiply by 1 + weight
  bool scaled_embeddings = false;  // by the root of the hidden size

  // Mixture of experts, in the layers where `sparse` says so.
  int experts = 0, experts_per_token = 0, expert_feed_forward = 0, shared_feed_forward = 0;
  bool normalised_experts = true;  // weights of the chosen experts add up to 1
  std::vector<bool> sparse;

  // Gated delta net.
  int delta_key_heads = 0, delta_value_heads = 0, delta_key_dims = 0, delta_value_dims = 0;
  int conv_width = 0;

  std::vector<int> end_tokens;  // where generation stops

  bool has(Mixer mixer) const;
  int count(Mixer mixer) const;
  // ModelError when the numbers do not fit together.
  void check() const;

  // The text of a config.json; `source` names it in messages.
  static Config from_json(const std::string& text, const std::string& source = "config.json");
  static Config from_gguf(const std::unordered_map<std::string, GGUFMetaData>& metadata,
                          const std::string& source);
};

// The architectures that can be loaded, as `model_type` of a config.json names them.
std::vector<std::string> known_architectures();

}  // namespace holdfast::lm
