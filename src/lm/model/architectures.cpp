#include "lm/model/architectures.h"

namespace holdfast::lm {
namespace {

constexpr Architecture all_architectures[] = {
    {.name = "llama", .gguf_name = "llama", .traditional_gguf = true},
    {.name = "mistral", .gguf_name = nullptr},
    {.name = "qwen2", .gguf_name = "qwen2", .query_bias = true},
    {.name = "qwen3", .gguf_name = "qwen3", .query_norm = true},
    {.name = "qwen3_moe", .gguf_name = "qwen3moe", .query_norm = true},
    {.name = "qwen3_next",
     .gguf_name = nullptr,
     .query_norm = true,
     .output_gate = true,
     .offset_norms = true,
     .full_attention_interval = 4,
     .other_layers = Mixer::delta_net,
     .rotated_part = 0.25f},
    {.name = "qwen3_5_text",
     .gguf_name = nullptr,
     .query_norm = true,
     .output_gate = true,
     .offset_norms = true,
     .full_attention_interval = 4,
     .other_layers = Mixer::delta_net,
     .rotated_part = 0.25f},
    {.name = "qwen3_5_moe_text",
     .gguf_name = nullptr,
     .query_norm = true,
     .output_gate = true,
     .offset_norms = true,
     .full_attention_interval = 4,
     .other_layers = Mixer::delta_net,
     .rotated_part = 0.25f},
    {.name = "gemma3_text",
     .gguf_name = "gemma3",
     .query_norm = true,
     .sandwich_norms = true,
     .offset_norms = true,
     .scaled_embeddings = true,
     .activation = Activation::gelu,
     .tied_embeddings = true,
     .full_attention_interval = 6,
     .other_layers = Mixer::sliding_attention,
     .local_rope_base = 10000.0f},
};

// Models with other senses than text have their own name for the whole.
struct Alias {
  const char *name, *text_model;
};
constexpr Alias aliases[] = {
    {"gemma3", "gemma3_text"}, {"qwen3_5", "qwen3_5_text"}, {"qwen3_5_moe", "qwen3_5_moe_text"}};

}  // namespace

const Architecture* find_architecture(const std::string& name) {
  std::string wanted = name;
  for (const Alias& alias : aliases) {
    if (name == alias.name) wanted = alias.text_model;
  }
  for (const Architecture& row : all_architectures) {
    if (wanted == row.name) return &row;
  }
  return nullptr;
}

const Architecture* find_gguf_architecture(const std::string& gguf_name) {
  for (const Architecture& row : all_architectures) {
    if (row.gguf_name != nullptr && gguf_name == row.gguf_name) return &row;
  }
  return nullptr;
}

std::string architecture_list() {
  std::string list;
  for (const std::string& name : known_architectures()) list += (list.empty() ? "" : ", ") + name;
  return list;
}

std::vector<std::string> known_architectures() {
  std::vector<std::string> names;
  for (const Architecture& row : all_architectures) names.emplace_back(row.name);
  return names;
}

}  // namespace holdfast::lm
