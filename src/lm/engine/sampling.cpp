#include <holdfast/lm/sampling.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include <holdfast/lm/errors.h>

#include "lm/support.h"

namespace holdfast::lm {
namespace {

constexpr int most_logprobs = 1024;

// A number in [0, 1) from a seed and a counter: SplitMix64's mixing of both.
double uniform_at(uint64_t seed, uint64_t counter) {
  auto mixed = [](uint64_t x) {
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
  };
  return static_cast<double>(mixed(mixed(seed) ^ counter) >> 11) * 0x1.0p-53;
}

void penalise(std::span<float> logits, const Sampling& sampling, std::span<const int> tokens,
              size_t prompt_size) {
  if (sampling.repetition_penalty != 1.0f) {
    size_t count = sampling.penalty_tokens > 0
                       ? std::min(tokens.size(), static_cast<size_t>(sampling.penalty_tokens))
                       : tokens.size();
    std::vector<int> seen(tokens.end() - static_cast<int64_t>(count), tokens.end());
    std::sort(seen.begin(), seen.end());
    seen.erase(std::unique(seen.begin(), seen.end()), seen.end());
    for (int token : seen) {
      float& logit = logits[static_cast<size_t>(token)];
      logit = logit > 0 ? logit / sampling.repetition_penalty : logit * sampling.repetition_penalty;
    }
  }
  if (sampling.presence_penalty != 0 || sampling.frequency_penalty != 0) {
    std::unordered_map<int, int> counts;
    for (int token : tokens.subspan(prompt_size)) ++counts[token];
    for (const auto& [token, count] : counts) {
      logits[static_cast<size_t>(token)] -=
          sampling.presence_penalty + sampling.frequency_penalty * static_cast<float>(count);
    }
  }
  for (const auto& [token, bias] : sampling.logit_bias) logits[static_cast<size_t>(token)] += bias;
}

// The likeliest token; RequestError when there is none.
int likeliest_of(std::span<const float> logits) {
  int best = -1;
  for (size_t i = 0; i < logits.size(); ++i) {
    if (std::isnan(logits[i]))
      throw RequestError(message("the logit of token ", i, " is not a number"));
    if (best < 0 || logits[i] > logits[static_cast<size_t>(best)]) best = static_cast<int>(i);
  }
  if (best < 0 || !std::isfinite(logits[static_cast<size_t>(best)])) {
    throw RequestError(best < 0 || logits[static_cast<size_t>(best)] < 0
                           ? std::string("no token is allowed to follow")
                           : message("the logit of token ", best, " is infinite"));
  }
  return best;
}

// Tokens in the order of their logits, the highest first, and the lowest number of equals.
class Candidates {
 public:
  Candidates(std::span<const float> logits, int count) : logits_(logits) {
    for (int i = 0; i < static_cast<int>(logits.size()); ++i) {
      if (logits[static_cast<size_t>(i)] > -std::numeric_limits<float>::infinity())
        tokens_.push_back(i);
    }
    if (count > 0 && static_cast<size_t>(count) < tokens_.size()) {
      sort_first(static_cast<size_t>(count));
      tokens_.resize(static_cast<size_t>(count));
    }
  }

  size_t size() const { return tokens_.size(); }
  int operator[](size_t i) const { return tokens_[i]; }
  void resize(size_t size) { tokens_.resize(size); }
  template <typename Condition>
  void keep(Condition condition) {
    std::erase_if(tokens_, [&](int token) { return !condition(token); });
  }
  // Brings the first `count` into order.
  void sort_first(size_t count) {
    count = std::min(count, tokens_.size());
    if (count <= sorted_) return;
    auto before = [&](int a, int b) {
      float left = logits_[static_cast<size_t>(a)], right = logits_[static_cast<size_t>(b)];
      return left != right ? left > right : a < b;
    };
    auto first = tokens_.begin(), end = first + static_cast<int64_t>(count);
    if (count < tokens_.size()) std::nth_element(first, end, tokens_.end(), before);
    std::sort(first, end, before);
    sorted_ = count;
  }

 private:
  std::span<const float> logits_;
  std::vector<int> tokens_;
  size_t sorted_ = 0;
};

int draw(std::span<const float> logits, const Sampling& sampling, float highest, double uniform) {
  Candidates candidates(logits, sampling.top_k);
  auto weight = [&](int token) {
    return std::exp((static_cast<double>(logits[static_cast<size_t>(token)]) - highest) /
                    sampling.temperature);
  };
  auto sum_of = [&] {
    double sum = 0;
    for (size_t i = 0; i < candidates.size(); ++i) sum += weight(candidates[i]);
    return sum;
  };
  if (sampling.top_p < 1.0f) {
    // Few tokens have most of the probability: more are sorted only when they are needed.
    double wanted = sampling.top_p * sum_of(), reached = 0;
    size_t kept = 0, sorted = 0;
    while (kept < candidates.size() && (reached < wanted || kept == 0)) {
      if (kept == sorted) candidates.sort_first(sorted = std::max<size_t>(256, sorted * 8));
      reached += weight(candidates[kept++]);
    }
    candidates.resize(kept);
  }
  // The likeliest token has the weight 1.
  if (sampling.min_p > 0)
    candidates.keep([&](int token) { return weight(token) >= sampling.min_p; });
  double target = uniform * sum_of();
  for (size_t i = 0; i < candidates.size(); ++i) {
    if ((target -= weight(candidates[i])) < 0) return candidates[i];
  }
  return candidates[candidates.size() - 1];
}

}  // namespace

void Sampling::check(int vocabulary) const {
  auto need = [](bool holds, const std::string& what) {
    if (!holds) throw RequestError("sampling: " + what);
  };
  need(std::isfinite(temperature) && temperature >= 0,
       message("temperature must be at least 0, got ", temperature));
  need(top_k >= 0, message("top_k must be at least 0, got ", top_k));
  need(top_p > 0 && top_p <= 1, message("top_p must be above 0 and at most 1, got ", top_p));
  need(min_p >= 0 && min_p <= 1, message("min_p must be from 0 to 1, got ", min_p));
  need(std::isfinite(repetition_penalty) && repetition_penalty > 0,
       message("repetition_penalty must be above 0, got ", repetition_penalty));
  need(penalty_tokens >= 0, message("penalty_tokens must be at least 0, got ", penalty_tokens));
  need(std::isfinite(presence_penalty) && std::isfinite(frequency_penalty),
       "presence_penalty and frequency_penalty must be finite");
  need(logprobs <= std::min(most_logprobs, vocabulary),
       message("logprobs must be at most ", std::min(most_logprobs, vocabulary), ", got ",
               logprobs));
  for (const auto& [token, bias] : logit_bias) {
    need(token >= 0 && token < vocabulary && !std::isnan(bias),
         message("logit_bias must name tokens from 0 to ", vocabulary - 1, ", got ", token,
                 " with ", bias));
  }
}

bool Sampling::needs_logits() const {
  return temperature > 0 || repetition_penalty != 1.0f || presence_penalty != 0 ||
         frequency_penalty != 0 || !logit_bias.empty() || logprobs >= 0 || constrain;
}

Choice choose(std::span<float> logits, const Sampling& sampling, uint64_t seed,
              std::span<const int> tokens, size_t prompt_size) {
  penalise(logits, sampling, tokens, prompt_size);
  if (sampling.constrain) sampling.constrain(tokens.subspan(prompt_size), logits);
  Choice choice;
  choice.token = likeliest_of(logits);
  float highest = logits[static_cast<size_t>(choice.token)];
  if (sampling.temperature > 0) {
    choice.token = draw(logits, sampling, highest, uniform_at(seed, tokens.size() - prompt_size));
  }
  if (sampling.logprobs < 0) return choice;
  double sum = 0;
  for (float logit : logits) sum += std::exp(static_cast<double>(logit) - highest);
  double all = highest + std::log(sum);
  auto logprob_of = [&](int token) {
    return static_cast<float>(logits[static_cast<size_t>(token)] - all);
  };
  choice.logprob = logprob_of(choice.token);
  if (sampling.logprobs == 0) return choice;
  Candidates candidates(logits, sampling.logprobs);
  candidates.sort_first(candidates.size());
  for (size_t i = 0; i < candidates.size(); ++i)
    choice.likeliest.emplace_back(candidates[i], logprob_of(candidates[i]));
  return choice;
}

}  // namespace holdfast::lm
