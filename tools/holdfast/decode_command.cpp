// `holdfast bench decode`: tokens a second of a model of random weights, by batch and context.
#include <chrono>
#include <cstdio>
#include <fstream>

#include <nlohmann/json.hpp>

#include <holdfast/eval.h>
#include <holdfast/lm.h>
#include <holdfast/memory.h>
#include <holdfast/ops.h>

#include "tools/holdfast/lm_options.h"

namespace holdfast::tool {
namespace {

using Clock = std::chrono::steady_clock;

// Shapes of public checkpoints; the last one is made smaller to fit anywhere.
constexpr struct {
  const char *name, *json;
} known_shapes[] = {
    {"smollm2-135m",
     R"({"model_type": "llama", "vocab_size": 49152, "hidden_size": 576, "intermediate_size": 1536,
     "num_hidden_layers": 30, "num_attention_heads": 9, "num_key_value_heads": 3,
     "rms_norm_eps": 1e-5, "rope_theta": 100000, "tie_word_embeddings": true})"},
    {"qwen3-0.6b",
     R"({"model_type": "qwen3", "vocab_size": 151936, "hidden_size": 1024, "intermediate_size": 3072,
     "num_hidden_layers": 28, "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 128,
     "rope_theta": 1000000, "tie_word_embeddings": true})"},
    {"qwen3.5-35b-a3b",
     R"({"model_type": "qwen3_5_moe_text", "vocab_size": 248320, "hidden_size": 2048,
     "num_hidden_layers": 40, "num_attention_heads": 16, "num_key_value_heads": 2, "head_dim": 256,
     "rope_theta": 10000000, "partial_rotary_factor": 0.25, "num_experts": 256,
     "num_experts_per_tok": 8, "moe_intermediate_size": 512, "shared_expert_intermediate_size": 512,
     "linear_num_key_heads": 16, "linear_num_value_heads": 32, "linear_key_head_dim": 128,
     "linear_value_head_dim": 128, "linear_conv_kernel_dim": 4, "tie_word_embeddings": false})"},
    {"qwen3.5-moe-small",
     R"({"model_type": "qwen3_5_moe_text", "vocab_size": 32000, "hidden_size": 512,
     "num_hidden_layers": 8, "num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 256,
     "rope_theta": 10000000, "partial_rotary_factor": 0.25, "num_experts": 32,
     "num_experts_per_tok": 8, "moe_intermediate_size": 128, "shared_expert_intermediate_size": 128,
     "linear_num_key_heads": 4, "linear_num_value_heads": 8, "linear_key_head_dim": 128,
     "linear_value_head_dim": 128, "linear_conv_kernel_dim": 4, "tie_word_embeddings": false})"}};

struct DecodeOptions {
  std::string config = "smollm2-135m";
  std::vector<int> batches{1, 16, 64}, contexts{1024};
  std::vector<std::string> schemes{"dense", "turbo4v2"};
  int bits = 4, steps = 16;
  Dtype dtype = bfloat16;
  bool steady = false;
  std::string json;
};

lm::Config config_of(const std::string& name) {
  std::string known;
  for (const auto& shape : known_shapes) {
    if (name == shape.name) return lm::Config::from_json(shape.json, name);
    known += std::string(known.empty() ? "" : ", ") + shape.name;
  }
  std::ifstream file(name);
  if (!file) throw UsageError("there is no config \"" + name + "\"; a file, or one of " + known);
  return lm::Config::from_json({std::istreambuf_iterator<char>(file), {}}, name);
}

struct Decoded {
  double seconds;  // a step
  size_t cache_bytes;
};

// Steps of `batch` sequences that have `context` tokens behind them, of zeros: no time depends on
// what they are.
Decoded decode(const lm::Model& model, const std::string& scheme, int batch, int context,
               const DecodeOptions& options) {
  const int block_size = 32, each = (context + options.steps + block_size) / block_size;
  lm::Cache cache(
      model, {.blocks = each * batch, .block_size = block_size, .states = batch, .scheme = scheme});
  std::vector<double> times;
  for (int i = 0; i < options.steps; ++i) {
    lm::Step step;
    const int position = context + i;
    const int tokens = options.steady ? std::max(batch, model.steady_tokens()) : batch;
    for (int b = 0; b < tokens; ++b) {
      const bool is_real = b < batch;
      step.tokens.push_back(b % model.config().vocabulary);
      step.positions.push_back(is_real ? position : 0);
      step.slots.push_back(is_real ? b * each * block_size + position : -1);
      step.starts.push_back(b);
      step.lengths.push_back(is_real ? position + 1 : 0);
      step.blocks.emplace_back();
      for (int j = 0; is_real && j < each; ++j) step.blocks.back().push_back(b * each + j);
      step.states.push_back(is_real ? b : -1);
      step.fresh.push_back(false);
      step.outputs.push_back(b);
    }
    step.starts.push_back(tokens);
    if (!model.config().has(lm::Mixer::delta_net)) {
      step.states.clear();
      step.fresh.clear();
    }
    auto begin = Clock::now();
    std::vector<array> wanted = {argmax(model.forward(step, cache), -1)};
    for (array& each_array : cache.arrays()) wanted.push_back(std::move(each_array));
    eval(std::move(wanted));
    times.push_back(std::chrono::duration<double>(Clock::now() - begin).count());
  }
  std::sort(times.begin(), times.end());
  return {times[times.size() / 2], cache.bytes()};
}

DecodeOptions decode_options(Arguments arguments) {
  DecodeOptions options;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& option = arguments[i];
    auto value = [&]() -> const std::string& {
      if (i + 1 == arguments.size()) throw UsageError(option + " needs a value");
      return arguments[++i];
    };
    if (option == "--config") {
      options.config = value();
    } else if (option == "--batch") {
      options.batches = numbers_of(option, value());
    } else if (option == "--context") {
      options.contexts = numbers_of(option, value());
    } else if (option == "--bits") {
      options.bits = static_cast<int>(number_of(option, value(), 0, 8));
    } else if (option == "--steps") {
      options.steps = static_cast<int>(number_of(option, value(), 1, 100000));
    } else if (option == "--dtype") {
      options.dtype = dtype_of(option, value());
    } else if (option == "--steady") {
      options.steady = true;
    } else if (option == "--cache") {
      options.schemes.clear();
      std::string list = value();
      for (size_t at = 0; at <= list.size();) {
        size_t end = std::min(list.find(',', at), list.size());
        options.schemes.push_back(list.substr(at, end - at));
        at = end + 1;
      }
    } else if (option == "--json") {
      options.json = value();
    } else {
      throw UsageError("unknown option " + option);
    }
  }
  return options;
}

}  // namespace

int run_bench_decode(Arguments arguments) {
  DecodeOptions options = decode_options(arguments);
  lm::Config config = config_of(options.config);
  auto begin = Clock::now();
  auto model = lm::Model::random(config, {.dtype = options.dtype, .bits = options.bits});
  std::printf("%s, %s, %d bits: %.1f MB of weights, %.1f MB of them for a token; made in %.1f s\n",
              options.config.c_str(), options.steady ? "steady" : "fastest", options.bits,
              static_cast<double>(model->bytes()) / 1e6,
              static_cast<double>(model->active_bytes()) / 1e6,
              std::chrono::duration<double>(Clock::now() - begin).count());
  std::printf("%-10s %6s %8s %12s %12s %12s\n", "cache", "batch", "context", "tokens/s", "ms/step",
              "cache MB");
  nlohmann::json rows = nlohmann::json::array();
  for (int context : options.contexts) {
    for (int batch : options.batches) {
      for (const std::string& scheme : options.schemes) {
        Decoded decoded = decode(*model, scheme, batch, context, options);
        double rate = batch / decoded.seconds;
        std::printf("%-10s %6d %8d %12.1f %12.2f %12.1f\n", scheme.c_str(), batch, context, rate,
                    decoded.seconds * 1e3, static_cast<double>(decoded.cache_bytes) / 1e6);
        std::fflush(stdout);
        rows.push_back({{"cache", scheme},
                        {"batch", batch},
                        {"context", context},
                        {"tokens_per_second", rate},
                        {"cache_bytes", decoded.cache_bytes}});
        clear_cache();
      }
    }
  }
  if (!options.json.empty()) {
    std::ofstream file(options.json);
    file << nlohmann::json{{"config", options.config},
                           {"bits", options.bits},
                           {"weight_bytes", model->bytes()},
                           {"rows", rows}}
                .dump(1)
         << "\n";
    if (!file.flush()) throw std::runtime_error("cannot write " + options.json);
  }
  return 0;
}

}  // namespace holdfast::tool
