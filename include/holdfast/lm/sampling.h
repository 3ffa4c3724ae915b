// How the next token is chosen.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

namespace holdfast::lm {

// In this order: penalties and biases are added to the logits, `constrain` changes them, they are
// divided by the temperature; then of the tokens the `top_k` likeliest stay, of those the likeliest
// that together have a probability of `top_p`, of those the ones with at least `min_p` times the
// probability of the likeliest.
struct Sampling {
  float temperature = 0.0f;  // 0: always the likeliest, and the lowest number of several
  int top_k = 0;             // 0: all
  float top_p = 1.0f;
  float min_p = 0.0f;
  // Of tokens among the last `penalty_tokens` (0: all): above 0 the logit is divided by it, below 0
  // multiplied. 1: none. The prompt counts.
  float repetition_penalty = 1.0f;
  int penalty_tokens = 0;
  // Subtracted for tokens that were generated, once and for each time.
  float presence_penalty = 0.0f, frequency_penalty = 0.0f;
  std::unordered_map<int, float> logit_bias = {};
  // The same seed gives the same choices from the same logits, whatever else runs. Without one each
  // request gets its own.
  std::optional<uint64_t> seed = {};
  // Logarithms of the probability of the token and of so many likeliest ones, before the
  // temperature. Below 0: none.
  int logprobs = -1;
  // A grammar, say: sees what was generated, and sets the logits of what may not follow to minus
  // infinity. Called on the engine's thread; what it throws fails its request alone.
  std::function<void(std::span<const int> generated, std::span<float> logits)> constrain = {};

  // RequestError for what is out of range.
  void check(int vocabulary) const;
  // Does the choice need more than the likeliest token?
  bool needs_logits() const;
};

struct Choice {
  int token = 0;
  float logprob = 0.0f;
  std::vector<std::pair<int, float>> likeliest;  // token and logprob, the likeliest first
};

// Chooses from logits, which it changes. `tokens`: prompt and generated tokens; the latter begin at
// `prompt_size`. What it draws depends on `seed` and on the number of generated tokens.
Choice choose(std::span<float> logits, const Sampling& sampling, uint64_t seed,
              std::span<const int> tokens, size_t prompt_size);

}  // namespace holdfast::lm
