#include "tools/holdfast/lm_options.h"

#include <unistd.h>

#include <cmath>

#include <nlohmann/json.hpp>

namespace holdfast::tool {

double number_of(const std::string& option, const std::string& text, double least, double most) {
  char* end = nullptr;
  double value = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != 0 || !(value >= least && value <= most)) {
    throw UsageError(option + " must be a number from " + std::to_string(least) + " to " +
                     std::to_string(most) + ", got \"" + text + "\"");
  }
  return value;
}

std::vector<int> numbers_of(const std::string& option, const std::string& text) {
  std::vector<int> numbers;
  for (size_t at = 0; at <= text.size();) {
    size_t end = std::min(text.find(',', at), text.size());
    double value = number_of(option, text.substr(at, end - at), 1, 1 << 30);
    if (value != std::floor(value)) throw UsageError(option + " must be whole numbers");
    numbers.push_back(static_cast<int>(value));
    at = end + 1;
  }
  return numbers;
}

Dtype dtype_of(const std::string& option, const std::string& name) {
  if (name == "float32") return float32;
  if (name == "float16") return float16;
  if (name == "bfloat16") return bfloat16;
  throw UsageError(option + " must be float32, float16 or bfloat16, got \"" + name + "\"");
}

LmOptions lm_options(Arguments arguments) {
  LmOptions options;
  options.engine.batch = 1;
  options.engine.steady = false;  // there is one sequence
  options.engine.cache_tokens = 4096;
  lm::Sampling& sampling = options.request.sampling;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& option = arguments[i];
    auto value = [&]() -> const std::string& {
      if (i + 1 == arguments.size()) throw UsageError(option + " needs a value");
      return arguments[++i];
    };
    auto number = [&](double least, double most) {
      return number_of(option, value(), least, most);
    };
    auto whole = [&](double most) { return static_cast<int>(number(0, most)); };
    if (!option.starts_with("--")) {
      options.words.push_back(option);
    } else if (option == "--max-tokens") {
      options.request.max_tokens = whole(1 << 30);
    } else if (option == "--temperature") {
      sampling.temperature = static_cast<float>(number(0, 100));
    } else if (option == "--top-k") {
      sampling.top_k = whole(1 << 30);
    } else if (option == "--top-p") {
      sampling.top_p = static_cast<float>(number(0, 1));
    } else if (option == "--min-p") {
      sampling.min_p = static_cast<float>(number(0, 1));
    } else if (option == "--repetition-penalty") {
      sampling.repetition_penalty = static_cast<float>(number(0, 100));
    } else if (option == "--seed") {
      sampling.seed = static_cast<uint64_t>(number(0, 9007199254740992.0));
    } else if (option == "--stop") {
      options.request.stop.push_back(value());
    } else if (option == "--system") {
      options.system = value();
    } else if (option == "--dtype") {
      options.load.dtype = dtype_of(option, value());
    } else if (option == "--cache") {
      options.engine.cache_scheme = value();
    } else if (option == "--cache-tokens") {
      options.engine.cache_tokens = whole(1 << 30);
    } else if (option == "--json") {
      options.json = true;
    } else if (option == "--raw") {
      options.raw = true;
    } else if (option == "--quiet") {
      options.quiet = true;
    } else {
      throw UsageError("unknown option " + option);
    }
  }
  return options;
}

LoadedModel load_model(const std::string& path, LmOptions options) {
  bool shows = isatty(STDERR_FILENO) != 0 && !options.quiet && !options.json;
  if (shows) {
    options.load.progress = [](const lm::LoadProgress& progress) {
      double part = progress.total_bytes == 0 ? 1.0
                                              : static_cast<double>(progress.bytes) /
                                                    static_cast<double>(progress.total_bytes);
      std::fprintf(stderr, "\rloading %3.0f %%", 100 * part);
    };
  }
  auto model = lm::Model::load(path, options.load);
  if (shows) std::fprintf(stderr, "\r             \r");
  return {model, lm::load_tokenizer(path)};
}

std::string print_generation(lm::Generation generation, const LmOptions& options) {
  std::string text;
  auto print = [&](const nlohmann::json& line) {
    std::printf("%s\n",
                line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
  };
  while (std::optional<lm::Piece> piece = generation.next()) {
    text += piece->text;
    if (options.json) {
      print({{"token", piece->token}, {"text", piece->text}});
    } else {
      std::fputs(piece->text.c_str(), stdout);
    }
    std::fflush(stdout);
  }
  lm::Usage usage = generation.usage();
  auto seconds = [](std::chrono::nanoseconds time) {
    return std::chrono::duration<double>(time).count();
  };
  double decoding = seconds(usage.total - usage.first_token);
  double rate =
      usage.generated_tokens > 1 && decoding > 0 ? (usage.generated_tokens - 1) / decoding : 0;
  if (options.json) {
    print({{"finish", lm::name_of(*generation.finish())},
           {"prompt_tokens", usage.prompt_tokens},
           {"reused_tokens", usage.reused_tokens},
           {"generated_tokens", usage.generated_tokens},
           {"first_token_seconds", seconds(usage.first_token)},
           {"tokens_per_second", rate}});
  } else {
    std::printf("\n");
    std::fflush(stdout);
    if (!options.quiet) {
      std::fprintf(stderr,
                   "[prompt %d tokens, %d of them reused, first token after %.3f s; %d tokens, "
                   "%.1f tokens/s]\n",
                   usage.prompt_tokens, usage.reused_tokens, seconds(usage.first_token),
                   usage.generated_tokens, rate);
    }
  }
  return text;
}

}  // namespace holdfast::tool
