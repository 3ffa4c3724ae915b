// The metadata of a GGUF file as a config.
#include <cmath>

#include <holdfast/ops.h>

#include <holdfast/lm/config.h>
#include <holdfast/lm/errors.h>

#include "lm/model/architectures.h"
#include "lm/support.h"

namespace holdfast::lm {
namespace {

class Metadata {
 public:
  Metadata(const std::unordered_map<std::string, GGUFMetaData>& values, const std::string& source)
      : values_(values), source_(source) {}

  [[noreturn]] void fail(const std::string& what) const {
    throw ModelError(message(source_, ": ", what));
  }
  std::string string(const std::string& key) const {
    auto at = values_.find(key);
    if (at == values_.end()) fail(message("the metadata \"", key, "\" is missing"));
    const auto* text = std::get_if<std::string>(&at->second);
    if (!text) fail(message("the metadata \"", key, "\" must be a string"));
    return *text;
  }
  bool has(const std::string& key) const { return values_.contains(key); }
  // The first value where it is a list (some have one for each layer, all alike in what we load).
  double number(const std::string& key) const {
    auto at = values_.find(key);
    if (at == values_.end()) fail(message("the metadata \"", key, "\" is missing"));
    const auto* value = std::get_if<array>(&at->second);
    if (!value || value->size() == 0) fail(message("the metadata \"", key, "\" must be a number"));
    array all = reshape(astype(*value, float64, Device::cpu), {-1}, Device::cpu);
    all.eval();
    const auto* first = static_cast<const array&>(all).data<double>();
    for (size_t i = 1; i < all.size(); ++i) {
      if (first[i] != first[0])
        fail(message("the metadata \"", key, "\" differs between layers, which is not supported"));
    }
    return *first;
  }
  double number(const std::string& key, double otherwise) const {
    return has(key) ? number(key) : otherwise;
  }
  int integer(const std::string& key) const {
    double value = number(key);
    if (!(value >= -1 && value < 2147483648.0) || value != std::floor(value))
      fail(message("the metadata \"", key, "\" is out of range: ", value));
    return static_cast<int>(value);
  }
  int integer(const std::string& key, int otherwise) const {
    return has(key) ? integer(key) : otherwise;
  }
  // The length of a list of strings; 0 where there is none.
  size_t strings(const std::string& key) const {
    auto at = values_.find(key);
    const auto* list =
        at == values_.end() ? nullptr : std::get_if<std::vector<std::string>>(&at->second);
    return list ? list->size() : 0;
  }

 private:
  const std::unordered_map<std::string, GGUFMetaData>& values_;
  const std::string& source_;
};

}  // namespace

Config Config::from_gguf(const std::unordered_map<std::string, GGUFMetaData>& metadata,
                         const std::string& source) {
  Metadata of(metadata, source);
  std::string name = of.string("general.architecture");
  const Architecture* row = find_gguf_architecture(name);
  if (!row) {
    of.fail(message("the architecture \"", name, "\" of GGUF files is not known; these are: ",
                    "gemma3, llama, qwen2, qwen3, qwen3moe"));
  }
  auto key = [&](const char* rest) { return name + "." + rest; };
  Config config;
  config.architecture = row->name;
  config.hidden = of.integer(key("embedding_length"));
  config.vocabulary =
      of.integer(key("vocab_size"), static_cast<int>(of.strings("tokenizer.ggml.tokens")));
  config.feed_forward = of.integer(key("feed_forward_length"), 0);
  config.heads = of.integer(key("attention.head_count"));
  config.key_heads = of.integer(key("attention.head_count_kv"), config.heads);
  config.head_dims =
      of.integer(key("attention.key_length"), config.hidden / std::max(1, config.heads));
  if (of.integer(key("attention.value_length"), config.head_dims) != config.head_dims)
    of.fail("values with other dimensions than keys are not supported");
  config.most_positions = of.integer(key("context_length"), 0);
  config.norm_epsilon =
      static_cast<float>(of.number(key("attention.layer_norm_rms_epsilon"), 1e-6));
  config.attention_scale =
      static_cast<float>(1.0 / std::sqrt(static_cast<double>(std::max(1, config.head_dims))));
  config.activation = row->activation;

  config.rope.dims = of.integer(key("rope.dimension_count"), config.head_dims);
  config.rope.base = static_cast<float>(of.number(key("rope.freq_base"), 10000.0));
  config.rope.traditional = row->traditional_gguf;
  if (of.has(key("rope.scaling.type"))) {
    std::string kind = of.string(key("rope.scaling.type"));
    config.rope.scaling = kind == "none" ? "default" : kind;
    config.rope.factor = static_cast<float>(of.number(key("rope.scaling.factor"), 1.0));
    config.rope.original_positions = of.integer(key("rope.scaling.original_context_length"), 0);
  }
  config.sliding_rope = config.rope;
  if (row->local_rope_base != 0) {
    config.sliding_rope = RopeConfig{.dims = config.rope.dims, .base = row->local_rope_base};
  }

  int layers = of.integer(key("block_count"));
  if (layers < 1 || layers > 4096)
    of.fail(message("the number of layers must be from 1 to 4096, got ", layers));
  config.window = of.integer(key("attention.sliding_window"), 0);
  int interval = row->other_layers == Mixer::sliding_attention ? row->full_attention_interval : 0;
  config.experts = of.integer(key("expert_count"), 0);
  config.experts_per_token = of.integer(key("expert_used_count"), 0);
  config.expert_feed_forward = of.integer(key("expert_feed_forward_length"), 0);
  config.shared_feed_forward = of.integer(key("expert_shared_feed_forward_length"), 0);
  for (int i = 0; i < layers; ++i) {
    bool full = interval == 0 || (i + 1) % interval == 0;
    config.layers.push_back(full ? Mixer::full_attention : row->other_layers);
    config.sparse.push_back(config.experts > 0);
  }
  config.query_bias = row->query_bias;
  config.query_norm = row->query_norm;
  config.sandwich_norms = row->sandwich_norms;
  config.offset_norms = false;  // the files hold what norms multiply by
  config.scaled_embeddings = row->scaled_embeddings;
  if (of.has("tokenizer.ggml.eos_token_id"))
    config.end_tokens.push_back(of.integer("tokenizer.ggml.eos_token_id"));
  if (of.has("tokenizer.ggml.eot_token_id"))
    config.end_tokens.push_back(of.integer("tokenizer.ggml.eot_token_id"));
  try {
    config.check();
  } catch (const ModelError& error) {
    throw ModelError(message(source, ": ", error.what()));
  }
  return config;
}

}  // namespace holdfast::lm
