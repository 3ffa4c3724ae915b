#include "lm/model/gguf_names.h"

#include <array>
#include <cctype>

namespace holdfast::lm {
namespace {

struct GgufName {
  const char *gguf, *folder;
};

constexpr std::array<GgufName, 3> outer_names{
    {{"token_embd", "embed_tokens"}, {"output_norm", "norm"}, {"output", "lm_head"}}};

// In a layer.
constexpr std::array<GgufName, 20> layer_names{{{"attn_norm", "input_layernorm"},
                                                {"attn_q", "self_attn.q_proj"},
                                                {"attn_k", "self_attn.k_proj"},
                                                {"attn_v", "self_attn.v_proj"},
                                                {"attn_output", "self_attn.o_proj"},
                                                {"attn_q_norm", "self_attn.q_norm"},
                                                {"attn_k_norm", "self_attn.k_norm"},
                                                {"post_attention_norm", "post_attention_layernorm"},
                                                {"post_ffw_norm", "post_feedforward_layernorm"},
                                                {"ffn_gate", "mlp.gate_proj"},
                                                {"ffn_up", "mlp.up_proj"},
                                                {"ffn_down", "mlp.down_proj"},
                                                {"ffn_gate_inp", "mlp.gate"},
                                                {"ffn_gate_exps", "mlp.switch_mlp.gate_proj"},
                                                {"ffn_up_exps", "mlp.switch_mlp.up_proj"},
                                                {"ffn_down_exps", "mlp.switch_mlp.down_proj"},
                                                {"ffn_gate_shexp", "mlp.shared_expert.gate_proj"},
                                                {"ffn_up_shexp", "mlp.shared_expert.up_proj"},
                                                {"ffn_down_shexp", "mlp.shared_expert.down_proj"},
                                                {"ffn_gate_inp_shexp", "mlp.shared_expert_gate"}}};

}  // namespace

std::optional<std::string> name_of_gguf(const std::string& name, bool sandwich_norms) {
  size_t dot = name.rfind('.');
  if (dot == std::string::npos) return std::nullopt;
  std::string stem = name.substr(0, dot), kind = name.substr(dot);
  if (kind != ".weight" && kind != ".bias" && kind != ".scales" && kind != ".biases")
    return std::nullopt;
  for (const GgufName& row : outer_names) {
    if (stem == row.gguf) return row.folder + kind;
  }
  if (!stem.starts_with("blk.")) return std::nullopt;
  size_t end = stem.find('.', 4);
  if (end == std::string::npos || end == 4) return std::nullopt;
  for (size_t i = 4; i < end; ++i) {
    if (!std::isdigit(static_cast<unsigned char>(stem[i]))) return std::nullopt;
  }
  std::string layer = "layers." + stem.substr(4, end - 4) + ".", inner = stem.substr(end + 1);
  if (inner == "ffn_norm") {
    return layer + (sandwich_norms ? "pre_feedforward_layernorm" : "post_attention_layernorm") +
           kind;
  }
  for (const GgufName& row : layer_names) {
    if (inner == row.gguf) return layer + row.folder + kind;
  }
  return std::nullopt;
}

}  // namespace holdfast::lm
