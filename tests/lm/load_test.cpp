#include <doctest/doctest.h>

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>

#include <holdfast/eval.h>
#include <holdfast/io.h>
#include <holdfast/lm.h>
#include <holdfast/memory.h>
#include <holdfast/ops.h>

#include "lm/model/load.h"
#include "lm/tiny_models.h"

using namespace holdfast;
using namespace holdfast::lm;
using namespace holdfast::testing;
using Tensors = std::unordered_map<std::string, array>;

namespace {

// A folder of its own that goes away.
class ModelFolder {
 public:
  explicit ModelFolder(const std::string& architecture)
      : path(std::filesystem::temp_directory_path() /
             ("holdfast_lm_" + architecture + "_" + std::to_string(getpid()))) {
    std::filesystem::create_directories(path);
    write("config.json", tiny_config_json(architecture));
    for (auto& [name, value] : random_tensors(tiny_config(architecture), {}))
      tensors.insert({"model." + name, value});
  }
  ~ModelFolder() { std::filesystem::remove_all(path); }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(path / name) << text;
  }
  void save() const { save_safetensors(path / "model.safetensors", tensors); }
  std::shared_ptr<const Model> load() const { return Model::load(path); }
  std::string error() const {
    try {
      load();
    } catch (const ModelError& error) {
      return error.what();
    }
    return "no error";
  }

  std::filesystem::path path;
  Tensors tensors;
};

bool same_logits(const Model& a, const Model& b) {
  std::vector<int> tokens = tiny_prompt(20, 3);
  return array_equal(a.logits(tokens), b.logits(tokens)).item<bool>();
}

#define CHECK_CONTAINS(text, part) \
  CHECK_MESSAGE((text).find(part) != std::string::npos, "got: ", (text), ", expected: ", (part))

}  // namespace

TEST_CASE("lm: a model in one file, in shards, and what is reported while it loads") {
  ModelFolder folder("qwen3");
  folder.save();
  size_t bytes = 0, calls = 0, total = 0;
  auto model = Model::load(folder.path, {.progress = [&](const LoadProgress& progress) {
                             CHECK(progress.bytes >= bytes);
                             bytes = progress.bytes, total = progress.total_bytes;
                             ++calls;
                           }});
  CHECK(calls > 20);
  CHECK(bytes == total);
  auto expected = Model::random(tiny_config("qwen3"));
  CHECK(same_logits(*model, *expected));
  CHECK(model->bytes() == expected->bytes());
  // The same in two shards.
  Tensors first, second;
  std::string map;
  for (auto& [name, value] : folder.tensors) {
    bool in_first = name < "model.layers.2";
    (in_first ? first : second).insert({name, value});
    map +=
        (map.empty() ? "\"" : ", \"") + name + "\": \"" + (in_first ? "a" : "b") + ".safetensors\"";
  }
  save_safetensors(folder.path / "a.safetensors", first);
  save_safetensors(folder.path / "b.safetensors", second);
  folder.write("model.safetensors.index.json", "{\"weight_map\": {" + map + "}}");
  CHECK(same_logits(*folder.load(), *expected));
  folder.write("model.safetensors.index.json", "{\"weight_map\": {\"x\": \"../a.safetensors\"}}");
  CHECK_CONTAINS(folder.error(), "must be a name in the folder");
  std::filesystem::remove(folder.path / "b.safetensors");
  folder.write("model.safetensors.index.json", "{\"weight_map\": {" + map + "}}");
  CHECK_CONTAINS(folder.error(), "b.safetensors");
}

TEST_CASE("lm: loading needs the memory of the model and of little more") {
  ModelFolder folder("llama");
  folder.save();
  auto config = tiny_config("llama");
  folder.tensors.clear();
  clear_cache();
  size_t before = get_active_memory();
  reset_peak_memory();
  auto model = folder.load();
  size_t peak = get_peak_memory() - before;
  CHECK(peak < model->bytes() * 14 / 10);
}

TEST_CASE("lm: tensors that are missing, wrong or left over are named") {
  ModelFolder folder("llama");
  const std::string name = "model.layers.1.mlp.down_proj.weight";
  array right = folder.tensors.at(name);
  folder.tensors.erase(name);
  folder.save();
  CHECK_CONTAINS(folder.error(), "the tensor \"layers.1.mlp.down_proj.weight\" is missing");
  folder.tensors.insert({name, zeros({64, 95})});
  folder.save();
  CHECK_CONTAINS(folder.error(), "must have the shape (64, 96), got (64, 95)");
  folder.tensors.at(name) = zeros({64, 96}, int32);
  folder.save();
  CHECK_CONTAINS(folder.error(), "must hold floating-point numbers, got int32");
  folder.tensors.at(name) = right;
  folder.tensors.insert({"model.layers.9.mlp.down_proj.weight", right});
  folder.save();
  CHECK_CONTAINS(folder.error(), "no place for 1 of the tensors, such as \"layers.9.");
  folder.tensors.erase("model.layers.9.mlp.down_proj.weight");
  folder.tensors.insert({"model.layers.0.self_attn.rotary_emb.inv_freq", zeros({16})});
  folder.save();
  CHECK(folder.error() == "no error");
  std::filesystem::resize_file(folder.path / "model.safetensors", 20000);
  CHECK_CONTAINS(folder.error(), "model.safetensors");
  std::filesystem::remove(folder.path / "model.safetensors");
  CHECK_CONTAINS(folder.error(), "has neither model.safetensors nor");
  CHECK_THROWS_AS(Model::load(folder.path / "nothing"), ModelError);
  CHECK_THROWS_AS(Model::load(folder.path / "config.json"), ModelError);
}

TEST_CASE("lm: files that change while they load are found") {
  ModelFolder folder("llama");
  folder.save();
  bool touched = false;
  try {
    Model::load(folder.path, {.progress = [&](const LoadProgress&) {
                  if (!touched)
                    std::ofstream(folder.path / "model.safetensors", std::ios::app) << "x";
                  touched = true;
                }});
    FAIL("the change was not seen");
  } catch (const ModelError& error) {
    CHECK_CONTAINS(std::string(error.what()), "changed while it was loaded");
  }
}

TEST_CASE("lm: a config that is wrong is a message with its key") {
  auto error_of = [](std::string from, const std::string& to) {
    std::string json = tiny_config_json("qwen3_5_moe_text");
    size_t at = json.find(from);
    REQUIRE(at != std::string::npos);
    json.replace(at, from.size(), to);
    try {
      Config::from_json(json);
    } catch (const ModelError& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  CHECK_CONTAINS(error_of("qwen3_5_moe_text", "mamba"), "the architecture \"mamba\" is not known");
  CHECK_CONTAINS(error_of("\"hidden_size\": 64", "\"hidden_size\": \"64\""),
                 "\"hidden_size\" must be an integer, got \"64\"");
  CHECK_CONTAINS(error_of("\"hidden_size\": 64,", ""), "\"hidden_size\" is missing");
  CHECK_CONTAINS(error_of("\"num_hidden_layers\": 4", "\"num_hidden_layers\": 99999999999"),
                 "\"num_hidden_layers\" is out of range");
  CHECK_CONTAINS(error_of("\"num_key_value_heads\": 2", "\"num_key_value_heads\": 3"),
                 "num_attention_heads (4) must be a multiple of num_key_value_heads (3)");
  CHECK_CONTAINS(error_of("\"num_experts_per_tok\": 2", "\"num_experts_per_tok\": 9"),
                 "num_experts_per_tok must be from 1 to num_experts (8), got 9");
  CHECK_CONTAINS(error_of("\"head_dim\": 32", "\"head_dim\": 33"),
                 "head_dim must be a multiple of 16, got 33");
  CHECK_CONTAINS(error_of("\"rope_theta\": 10000.0", "\"rope_scaling\": {\"type\": \"dynamic\"}"),
                 "rope scaling \"dynamic\" is not supported");
  CHECK_CONTAINS(error_of("{", "["), "is not valid JSON");
  CHECK_CONTAINS(
      error_of("\"rope_theta\": 10000.0", "\"quantization_config\": {\"quant_method\": \"gptq\"}"),
      "weights quantised by \"gptq\" are not supported");
}

TEST_CASE("lm: a GGUF file of Llama has its pairs as neighbours") {
  Config config = tiny_config("llama");
  Tensors tensors = random_tensors(config, {}), named;
  const int half = config.head_dims / 2;
  for (auto& [name, value] : tensors) {
    std::string gguf = name;
    auto replace = [&](const std::string& from, const std::string& to) {
      size_t at = gguf.find(from);
      if (at != std::string::npos) gguf.replace(at, from.size(), to);
    };
    array stored = value;
    if (name.find("q_proj") != std::string::npos || name.find("k_proj") != std::string::npos) {
      int heads = value.shape(0) / config.head_dims;
      stored = contiguous(
          reshape(swapaxes(reshape(value, {heads, 2, half, -1}), 1, 2), {value.shape(0), -1}));
    }
    for (auto [from, to] : std::initializer_list<std::pair<const char*, const char*>>{
             {"layers.", "blk."},
             {"input_layernorm", "attn_norm"},
             {"post_attention_layernorm", "ffn_norm"},
             {"self_attn.q_proj", "attn_q"},
             {"self_attn.k_proj", "attn_k"},
             {"self_attn.v_proj", "attn_v"},
             {"self_attn.o_proj", "attn_output"},
             {"mlp.gate_proj", "ffn_gate"},
             {"mlp.up_proj", "ffn_up"},
             {"mlp.down_proj", "ffn_down"},
             {"embed_tokens", "token_embd"}})
      replace(from, to);
    if (name == "norm.weight") gguf = "output_norm.weight";
    named.insert({gguf, stored});
  }
  auto number = [](auto value) { return GGUFMetaData(array(value)); };
  std::unordered_map<std::string, GGUFMetaData> metadata{
      {"general.architecture", std::string("llama")},
      {"llama.block_count", number(uint32_t{4})},
      {"llama.embedding_length", number(uint32_t{64})},
      {"llama.feed_forward_length", number(uint32_t{96})},
      {"llama.attention.head_count", number(uint32_t{4})},
      {"llama.attention.head_count_kv", number(uint32_t{2})},
      {"llama.attention.key_length", number(uint32_t{32})},
      {"llama.attention.layer_norm_rms_epsilon", number(1e-6f)},
      {"llama.vocab_size", number(uint32_t{128})},
      {"llama.rope.dimension_count", number(uint32_t{32})}};
  std::string path = std::filesystem::temp_directory_path() /
                     ("holdfast_lm_" + std::to_string(getpid()) + ".gguf");
  save_gguf(path, named, metadata);
  auto model = Model::load(path);
  std::vector<int> tokens = tiny_prompt(30, 2);
  array expected = Model::random(config)->logits(tokens);
  CHECK(max(abs(model->logits(tokens) - expected)).item<float>() < 1e-4f);

  auto error_of = [&] {
    save_gguf(path, named, metadata);
    try {
      Model::load(path);
    } catch (const ModelError& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  named.insert({"blk.0.attn_rot_embd.weight", zeros({4})});
  CHECK_CONTAINS(error_of(), "the tensor \"blk.0.attn_rot_embd.weight\" is not known");
  metadata.at("llama.attention.head_count") = std::string("four");
  CHECK_CONTAINS(error_of(), "\"llama.attention.head_count\" must be a number");
  metadata.at("general.architecture") = std::string("starcoder");
  CHECK_CONTAINS(error_of(), "the architecture \"starcoder\" of GGUF files is not known");
  std::filesystem::remove(path);
}
