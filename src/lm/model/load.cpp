// Models from files.
#include <filesystem>

#include <nlohmann/json.hpp>

#include <holdfast/lm/errors.h>
#include <holdfast/ops.h>

#include "lm/model/layers.h"
#include "lm/model/load.h"
#include "lm/support.h"

namespace holdfast::lm {
namespace {

constexpr const char* embedding_name = "embed_tokens";

Dtype dtype_of(const Weights& weights, const Config& config, const LoadOptions& options,
               bool is_gguf) {
  if (options.dtype) {
    if (*options.dtype != float32 && *options.dtype != float16 && *options.dtype != bfloat16)
      weights.fail(
          message("a model computes in float32, float16 or bfloat16, not in ", *options.dtype));
    return *options.dtype;
  }
  const array* scales = weights.find(std::string(embedding_name) + ".scales");
  const array* values = scales ? scales : weights.find(std::string(embedding_name) + ".weight");
  Dtype dtype = values ? values->dtype() : float32;
  if (dtype != float16 && dtype != bfloat16) return float32;
  // What runs through models with scaled embeddings is too large for float16, the dtype of GGUF's
  // scales.
  return is_gguf && config.scaled_embeddings ? float32 : dtype;
}

// Files of MLX hold norms as they multiply, where Hugging Face's hold them less one. Only models
// with a delta net differ so, and their convolution tells which it is.
bool has_norms_as_they_multiply(const Weights& weights, const Config& config) {
  for (size_t i = 0; i < config.layers.size(); ++i) {
    if (config.layers[i] != Mixer::delta_net) continue;
    const array* convolution =
        weights.find("layers." + std::to_string(i) + ".linear_attn.conv1d.weight");
    return convolution && convolution->ndim() == 3 && convolution->shape(-1) == 1 &&
           convolution->shape(1) != 1;
  }
  return false;
}

std::unique_ptr<Model::Parts> load_folder(const std::string& folder, const LoadOptions& options) {
  std::string source = folder + "/config.json";
  Config config = Config::from_json(read_text_file(source), source);
  // Where there are more tokens at which generation stops, they are in this file.
  std::string generation = folder + "/generation_config.json";
  if (std::filesystem::exists(generation)) {
    nlohmann::json parsed = nlohmann::json::parse(read_text_file(generation), nullptr, false);
    if (parsed.is_object() && parsed.contains("eos_token_id")) {
      const nlohmann::json& ends = parsed["eos_token_id"];
      for (const nlohmann::json& end : ends.is_array() ? ends : nlohmann::json::array({ends})) {
        if (end.is_number_integer()) config.end_tokens.push_back(end.get<int>());
      }
    }
  }
  Weights weights = Weights::of_folder(folder, options);
  return build_model(weights, config, dtype_of(weights, config, options, false));
}

std::unique_ptr<Model::Parts> load_gguf_file(const std::string& path, const LoadOptions& options) {
  GGUFLoad file;
  try {
    file = load_gguf(path, options.stream);
  } catch (const std::exception& error) {
    throw ModelError(error.what());
  }
  Config config = Config::from_gguf(file.second, path);
  config.tied_embeddings = !file.first.contains("output.weight");
  Weights weights = Weights::of_gguf(std::move(file.first), path, config.sandwich_norms, options);
  return build_model(weights, config, dtype_of(weights, config, options, true));
}

}  // namespace

std::unique_ptr<Model::Parts> build_model(Weights& weights, Config config, Dtype dtype) {
  if (config.offset_norms && has_norms_as_they_multiply(weights, config))
    config.offset_norms = false;
  Loader from{weights, config, dtype};
  const bool quantised = weights.has_quantised();
  Linear embedding = from.linear(embedding_name, config.vocabulary, config.hidden);
  keep_linear(weights, embedding, embedding_name);
  std::optional<array> factors;
  if (weights.has("rope_freqs.weight")) {
    factors = weights.keep(
        weights.take_floats("rope_freqs.weight", {config.rope.dims / 2}, float32), "rope_freqs");
  }
  Rope rope(config.rope, factors);
  Rope sliding_rope = config.has(Mixer::sliding_attention) ? Rope(config.sliding_rope) : rope;
  std::vector<Block> blocks;
  blocks.reserve(config.layers.size());
  for (int i = 0; i < static_cast<int>(config.layers.size()); ++i)
    blocks.emplace_back(from, i, rope, sliding_rope);
  array norm = from.norm("norm.weight", config.hidden);
  std::optional<Linear> head;
  if (!config.tied_embeddings) {
    head = from.linear("lm_head", config.vocabulary, config.hidden);
    keep_linear(weights, *head, "lm_head");
  } else if (weights.has("lm_head.weight")) {
    weights.take("lm_head.weight");  // some files have the tied matrix twice
  }
  weights.finish();
  return std::make_unique<Model::Parts>(Model::Parts{std::move(config), dtype, quantised,
                                                     std::move(embedding), std::move(head),
                                                     std::move(norm), std::move(blocks)});
}

std::shared_ptr<const Model> Model::load(const std::string& path, const LoadOptions& options) {
  std::error_code error;
  auto status = std::filesystem::status(path, error);
  if (std::filesystem::is_directory(status))
    return std::make_shared<const Model>(load_folder(path, options));
  if (!std::filesystem::exists(status)) throw ModelError(message("there is no model at ", path));
  if (!path.ends_with(".gguf"))
    throw ModelError(message(path, " is neither a folder nor a file that ends in .gguf"));
  return std::make_shared<const Model>(load_gguf_file(path, options));
}

}  // namespace holdfast::lm
