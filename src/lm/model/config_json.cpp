// config.json of a Hugging Face folder.
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include <nlohmann/json.hpp>

#include <holdfast/lm/config.h>
#include <holdfast/lm/errors.h>

#include "lm/model/architectures.h"
#include "lm/support.h"

namespace holdfast::lm {
namespace {

using Json = nlohmann::json;

// An object of the file whose values are asked for by key, kind and range.
class Fields {
 public:
  Fields(const Json& object, const std::string& source) : object_(&object), source_(&source) {}

  [[noreturn]] void fail(const std::string& what) const {
    throw ModelError(message(*source_, ": ", what));
  }
  // Null counts as absent, as Python writes it.
  const Json* find(const char* key) const {
    auto at = object_->find(key);
    return at == object_->end() || at->is_null() ? nullptr : &*at;
  }
  bool has(const char* key) const { return find(key) != nullptr; }

  int integer(const char* key) const {
    const Json* value = find(key);
    if (!value) fail(message("\"", key, "\" is missing"));
    return integer_of(*value, key);
  }
  int integer(const char* key, int otherwise) const { return has(key) ? integer(key) : otherwise; }
  float number(const char* key, float otherwise) const {
    const Json* value = find(key);
    if (!value) return otherwise;
    if (!value->is_number()) fail(message("\"", key, "\" must be a number, got ", shown(*value)));
    return value->get<float>();
  }
  bool boolean(const char* key, bool otherwise) const {
    const Json* value = find(key);
    if (!value) return otherwise;
    if (!value->is_boolean())
      fail(message("\"", key, "\" must be true or false, got ", shown(*value)));
    return value->get<bool>();
  }
  std::string string(const char* key, const std::string& otherwise) const {
    const Json* value = find(key);
    if (!value) return otherwise;
    if (!value->is_string()) fail(message("\"", key, "\" must be a string, got ", shown(*value)));
    return value->get<std::string>();
  }
  std::vector<int> integers(const char* key) const {
    const Json* value = find(key);
    if (!value) return {};
    if (!value->is_array()) return {integer_of(*value, key)};
    std::vector<int> all;
    for (const Json& each : *value) all.push_back(integer_of(each, key));
    return all;
  }
  // An object in it; empty where there is none.
  Fields object(const char* key) const {
    static const Json empty = Json::object();
    const Json* value = find(key);
    if (!value) return {empty, *source_};
    if (!value->is_object()) fail(message("\"", key, "\" must be an object, got ", shown(*value)));
    return {*value, *source_};
  }

 private:
  static std::string shown(const Json& value) {
    return value.dump(-1, ' ', true, Json::error_handler_t::replace).substr(0, 80);
  }
  int integer_of(const Json& value, const char* key) const {
    if (!value.is_number_integer())
      fail(message("\"", key, "\" must be an integer, got ", shown(value)));
    auto number = value.is_number_unsigned() && value.get<uint64_t>() > uint64_t{1} << 62
                      ? int64_t{1} << 62
                      : value.get<int64_t>();
    if (number > std::numeric_limits<int>::max() || number < std::numeric_limits<int>::min())
      fail(message("\"", key, "\" is out of range: ", shown(value)));
    return static_cast<int>(number);
  }

  const Json* object_;
  const std::string* source_;
};

// "rope_theta" and "rope_scaling", or both in "rope_parameters", which may be given for each kind
// of attention.
void read_rope(const Fields& of, const Architecture& row, Config& config) {
  Fields parameters = of.object("rope_parameters");
  float local_base = of.number("rope_local_base_freq", row.local_rope_base);
  if (parameters.has("full_attention")) {
    local_base = parameters.object("sliding_attention").number("rope_theta", local_base);
    parameters = parameters.object("full_attention");
  }
  Fields scaling = of.has("rope_scaling") ? of.object("rope_scaling") : parameters;
  RopeConfig& rope = config.rope;
  rope.base = parameters.number("rope_theta", of.number("rope_theta", 10000.0f));
  rope.scaling = scaling.string("rope_type", scaling.string("type", "default"));
  if (rope.scaling == "mrope") rope.scaling = "default";  // the same for text
  rope.factor = scaling.number("factor", 1.0f);
  rope.low_frequency_factor = scaling.number("low_freq_factor", 1.0f);
  rope.high_frequency_factor = scaling.number("high_freq_factor", 4.0f);
  rope.beta_fast = scaling.number("beta_fast", 32.0f);
  rope.beta_slow = scaling.number("beta_slow", 1.0f);
  rope.attention_factor = scaling.number("attention_factor", 0.0f);
  rope.original_positions = scaling.integer("original_max_position_embeddings", 0);
  rope.traditional = of.boolean("rope_traditional", false);
  float part = parameters.number("partial_rotary_factor",
                                 of.number("partial_rotary_factor", row.rotated_part));
  if (!(part > 0 && part <= 1))
    of.fail(message("\"partial_rotary_factor\" must be above 0 and at most 1, got ", part));
  rope.dims = static_cast<int>(static_cast<float>(config.head_dims) * part);
  // Without a base of its own, sliding attention turns as the rest does.
  config.sliding_rope = rope;
  if (local_base != 0) {
    config.sliding_rope =
        RopeConfig{.dims = rope.dims, .base = local_base, .traditional = rope.traditional};
  }
}

void read_layers(const Fields& of, const Architecture& row, int count, Config& config) {
  if (count < 1 || count > 4096)
    of.fail(message("\"num_hidden_layers\" must be from 1 to 4096, got ", count));
  config.window = of.integer("sliding_window", 0);
  Mixer other = row.other_layers;
  int interval =
      of.integer(row.other_layers == Mixer::sliding_attention ? "sliding_window_pattern"
                                                              : "full_attention_interval",
                 row.full_attention_interval);
  if (config.architecture == "mistral" && config.window > 0) {
    other = Mixer::sliding_attention;
    interval = std::numeric_limits<int>::max();
  }
  int first_other = 0;
  if (of.boolean("use_sliding_window", false) && config.window > 0 &&
      row.full_attention_interval == 0) {
    other = Mixer::sliding_attention;
    interval = std::numeric_limits<int>::max();
    first_other = of.integer("max_window_layers", 0);
  }
  if (interval < 0) of.fail(message("the interval of full attention is negative: ", interval));
  for (int i = 0; i < count; ++i) {
    bool full = interval == 0 || i < first_other || (i + 1) % interval == 0;
    config.layers.push_back(full ? Mixer::full_attention : other);
  }
  const Json* types = of.find("layer_types");
  if (!types) return;
  if (!types->is_array() || types->size() != config.layers.size())
    of.fail(message("\"layer_types\" must be a list of ", count, " names, one for each layer"));
  for (size_t i = 0; i < config.layers.size(); ++i) {
    const Json& type = (*types)[i];
    if (type == "full_attention")
      config.layers[i] = Mixer::full_attention;
    else if (type == "sliding_attention" && config.window > 0)
      config.layers[i] = Mixer::sliding_attention;
    else if (type == "linear_attention" && row.other_layers == Mixer::delta_net)
      config.layers[i] = Mixer::delta_net;
    else
      of.fail(message("\"layer_types\" has ",
                      type.dump(-1, ' ', true, Json::error_handler_t::replace).substr(0, 80),
                      " for layer ", i, ", which a ", config.architecture, " model does not have"));
  }
}

void read_experts(const Fields& of, Config& config) {
  config.experts = of.integer("num_experts", 0);
  config.experts_per_token = of.integer("num_experts_per_tok", 0);
  config.expert_feed_forward = of.integer("moe_intermediate_size", 0);
  config.shared_feed_forward = of.integer("shared_expert_intermediate_size", 0);
  config.normalised_experts = of.boolean("norm_topk_prob", true);
  int step = of.integer("decoder_sparse_step", 1);
  if (step < 1) of.fail(message("\"decoder_sparse_step\" must be at least 1, got ", step));
  std::vector<int> dense = of.integers("mlp_only_layers");
  for (int i = 0; i < static_cast<int>(config.layers.size()); ++i) {
    bool is_dense = std::find(dense.begin(), dense.end(), i) != dense.end();
    config.sparse.push_back(config.experts > 0 && !is_dense && (i + 1) % step == 0);
  }
}

Activation activation_of(const Fields& of, Activation otherwise) {
  std::string name = of.string("hidden_activation", of.string("hidden_act", ""));
  if (name.empty()) return otherwise;
  if (name == "silu" || name == "swish") return Activation::silu;
  if (name == "gelu_pytorch_tanh" || name == "gelu_new") return Activation::gelu;
  of.fail(
      message("the activation \"", name, "\" is not supported; silu and gelu_pytorch_tanh are"));
}

}  // namespace

Config Config::from_json(const std::string& text, const std::string& source) {
  Json parsed = Json::parse(text, nullptr, false);
  if (parsed.is_discarded()) throw ModelError(message(source, " is not valid JSON"));
  if (!parsed.is_object()) throw ModelError(message(source, " must hold an object"));
  Fields whole(parsed, source);
  std::string type = whole.string("model_type", "");
  const Architecture* row = find_architecture(type);
  if (!row) {
    whole.fail(
        message("the architecture \"", type, "\" is not known; these are: ", architecture_list()));
  }
  Fields of = whole.has("text_config") ? whole.object("text_config") : whole;

  Config config;
  config.architecture = row->name;
  config.vocabulary = of.integer("vocab_size", whole.integer("vocab_size", 0));
  config.hidden = of.integer("hidden_size");
  config.feed_forward = of.integer("intermediate_size", 0);
  config.heads = of.integer("num_attention_heads");
  config.key_heads = of.integer("num_key_value_heads", config.heads);
  int heads = std::max(1, config.heads);
  config.head_dims = of.integer("head_dim", config.hidden / heads);
  config.most_positions = of.integer("max_position_embeddings", 0);
  config.norm_epsilon = of.number("rms_norm_eps", 1e-6f);
  float scale_of = of.number("query_pre_attn_scalar", static_cast<float>(config.head_dims));
  config.attention_scale = 1.0f / std::sqrt(scale_of);
  config.tied_embeddings =
      of.boolean("tie_word_embeddings", whole.boolean("tie_word_embeddings", row->tied_embeddings));
  config.activation = activation_of(of, row->activation);
  read_layers(of, *row, of.integer("num_hidden_layers"), config);
  read_rope(of, *row, config);
  read_experts(of, config);

  bool bias = of.boolean("attention_bias", false);
  config.query_bias = row->query_bias || bias;
  config.output_bias = bias;
  config.feed_forward_bias = of.boolean("mlp_bias", false);
  config.query_norm = row->query_norm;
  config.output_gate = row->output_gate;
  config.sandwich_norms = row->sandwich_norms;
  config.offset_norms = row->offset_norms;
  config.scaled_embeddings = row->scaled_embeddings;

  config.delta_key_heads = of.integer("linear_num_key_heads", 0);
  config.delta_value_heads = of.integer("linear_num_value_heads", 0);
  config.delta_key_dims = of.integer("linear_key_head_dim", 0);
  config.delta_value_dims = of.integer("linear_value_head_dim", 0);
  config.conv_width = of.integer("linear_conv_kernel_dim", 4);
  config.end_tokens = of.integers("eos_token_id");
  if (config.end_tokens.empty()) config.end_tokens = whole.integers("eos_token_id");
  if (of.has("quantization_config") || whole.has("quantization_config")) {
    std::string method = (of.has("quantization_config") ? of : whole)
                             .object("quantization_config")
                             .string("quant_method", "");
    // MLX writes its own parameters under this name as well, and has them in the tensors.
    if (!method.empty()) {
      whole.fail(message("weights quantised by \"", method,
                         "\" are not supported; MLX's formats, unquantised weights and GGUF are"));
    }
  }
  try {
    config.check();
  } catch (const ModelError& error) {
    throw ModelError(message(source, ": ", error.what()));
  }
  return config;
}

}  // namespace holdfast::lm
