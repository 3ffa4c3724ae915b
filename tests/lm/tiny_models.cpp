#include "lm/tiny_models.h"

#include <holdfast/ops.h>

namespace holdfast::testing {

std::string tiny_config_json(const std::string& architecture) {
  std::string json = R"({"model_type": ")" + architecture + R"(",
    "vocab_size": 128, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 4,
    "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 32, "rms_norm_eps": 1e-6,
    "max_position_embeddings": 4096, "rope_theta": 10000.0, "tie_word_embeddings": true)";
  if (architecture == "gemma3_text") {
    json += R"(, "sliding_window": 24, "sliding_window_pattern": 2, "query_pre_attn_scalar": 32,
      "hidden_activation": "gelu_pytorch_tanh")";
  }
  if (architecture == "mistral") json += R"(, "sliding_window": 24)";
  bool has_delta_net =
      architecture.starts_with("qwen3_next") || architecture.starts_with("qwen3_5");
  if (architecture.find("moe") != std::string::npos || architecture == "qwen3_next") {
    json += R"(, "num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 64,
      "norm_topk_prob": true, "decoder_sparse_step": 1, "mlp_only_layers": [])";
    if (has_delta_net) json += R"(, "shared_expert_intermediate_size": 64)";
  }
  if (has_delta_net) {
    json += R"(, "linear_num_key_heads": 2, "linear_num_value_heads": 4, "linear_key_head_dim": 32,
      "linear_value_head_dim": 32, "linear_conv_kernel_dim": 4, "full_attention_interval": 2,
      "partial_rotary_factor": 0.25)";
  }
  return json + "}";
}

lm::Config tiny_config(const std::string& architecture) {
  return lm::Config::from_json(tiny_config_json(architecture));
}

std::vector<int> tiny_prompt(int length, uint64_t seed, int vocabulary) {
  std::vector<int> tokens;
  for (int i = 0; i < length; ++i) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    tokens.push_back(static_cast<int>((seed >> 33) % static_cast<uint64_t>(vocabulary)));
  }
  return tokens;
}

std::vector<int> greedy_alone(const lm::Model& model, std::vector<int> tokens, int count) {
  std::vector<int> generated;
  for (int i = 0; i < count; ++i) {
    array logits = model.logits(tokens);
    array last = take(logits, static_cast<int>(tokens.size()) - 1, 0);
    generated.push_back(static_cast<int>(argmax(last).item<uint32_t>()));
    tokens.push_back(generated.back());
  }
  return generated;
}

}  // namespace holdfast::testing
