// What the commands of language models have in common: options, loading, printing.
#pragma once

#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <holdfast/lm.h>

#include "tools/holdfast/commands.h"

// For the help of these commands.
#define HOLDFAST_LM_OPTIONS                                                                       \
  "  --max-tokens N       tokens to generate at most (default: 256)\n"                            \
  "  --temperature T      0 (default) for the likeliest token, 1 for the model's probabilities\n" \
  "  --top-k K --top-p P --min-p P --repetition-penalty X\n"                                      \
  "                       which tokens may be drawn\n"                                            \
  "  --seed N             the same seed draws the same text\n"                                    \
  "  --stop TEXT          ends the text there; may be given several times\n"                      \
  "  --system TEXT        the system message of the model's chat template\n"                      \
  "  --raw                the prompt as it is, without the chat template\n"                       \
  "  --dtype NAME         what is computed in: float32, float16 or bfloat16 (default: the "       \
  "file's)\n"                                                                                     \
  "  --cache SCHEME       of keys and values: dense (default), affine8, turbo4v2 and others\n"    \
  "  --cache-tokens N     the longest text (default: 4096)\n"                                     \
  "  --json               a line of JSON for each piece, and one for the end\n"                   \
  "  --quiet              the text alone, without times\n"

namespace holdfast::tool {

struct LmOptions {
  std::vector<std::string> words;  // arguments that are no options
  lm::Request request;
  lm::LoadOptions load;
  lm::EngineOptions engine;
  std::string system;  // the system message
  bool json = false, raw = false, quiet = false;
};

// The options of `holdfast generate` and `holdfast chat`.
LmOptions lm_options(Arguments arguments);

// A number in [least, most]; UsageError names the option otherwise.
double number_of(const std::string& option, const std::string& text, double least, double most);
// "1,16,64".
std::vector<int> numbers_of(const std::string& option, const std::string& text);
Dtype dtype_of(const std::string& option, const std::string& name);

// Loads a model with its tokenizer; progress goes to stderr where that is a terminal.
struct LoadedModel {
  std::shared_ptr<const lm::Model> model;
  lm::Tokenizer tokenizer;
};
LoadedModel load_model(const std::string& path, LmOptions options);

// Prints pieces as they come, and at the end what it cost. The text of all of them.
std::string print_generation(lm::Generation generation, const LmOptions& options);

}  // namespace holdfast::tool
