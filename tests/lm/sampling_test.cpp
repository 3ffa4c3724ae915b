#include <doctest/doctest.h>

#include <cmath>
#include <map>

#include <holdfast/lm.h>

#include "lm/engine/blocks.h"

using namespace holdfast::lm;

namespace {

Choice chosen(std::vector<float> logits, const Sampling& sampling, uint64_t seed = 1,
              std::vector<int> tokens = {0}, size_t prompt = 1) {
  return choose(logits, sampling, seed, tokens, prompt);
}

std::map<int, int> counts(const std::vector<float>& logits, const Sampling& sampling) {
  std::map<int, int> result;
  for (uint64_t seed = 0; seed < 4000; ++seed) ++result[chosen(logits, sampling, seed).token];
  return result;
}

}  // namespace

TEST_CASE("lm sampling: the likeliest, and the lowest number of several") {
  CHECK(chosen({1, 3, 3, 2}, {}).token == 1);
  CHECK_THROWS_AS(chosen({1, NAN}, {}), RequestError);
  CHECK_THROWS_AS(chosen({1, INFINITY}, {}), RequestError);
  CHECK_THROWS_AS(chosen({-INFINITY, -INFINITY}, {}), RequestError);
}

TEST_CASE("lm sampling: tokens come as often as their probability says") {
  std::vector<float> logits{std::log(0.5f), std::log(0.3f), std::log(0.15f), std::log(0.05f)};
  std::map<int, int> all = counts(logits, {.temperature = 1});
  CHECK(std::abs(all[0] - 2000) < 150);
  CHECK(std::abs(all[3] - 200) < 60);
  // Squared at half the temperature: 0.25, 0.09, 0.0225, 0.0025 of 0.365.
  std::map<int, int> cold = counts(logits, {.temperature = 0.5f});
  CHECK(std::abs(cold[0] - 2740) < 150);
  CHECK(counts(logits, {.temperature = 1, .top_k = 2}).size() == 2);
  CHECK(counts(logits, {.temperature = 1, .top_k = 1}) == std::map<int, int>{{0, 4000}});
  CHECK(counts(logits, {.temperature = 1, .top_p = 0.7f}).size() == 2);
  CHECK(counts(logits, {.temperature = 1, .top_p = 0.85f}).size() == 3);
  CHECK(counts(logits, {.temperature = 1, .top_p = 1e-6f}).size() == 1);
  CHECK(counts(logits, {.temperature = 1, .min_p = 0.2f}).size() == 3);
  CHECK(counts(logits, {.temperature = 1, .min_p = 1.0f}).size() == 1);
}

TEST_CASE("lm sampling: top_p over many tokens that are alike") {
  std::vector<float> logits(5000, 0.0f);
  for (uint64_t seed = 0; seed < 200; ++seed)
    CHECK(chosen(logits, {.temperature = 1, .top_p = 0.5f}, seed).token < 2500);
}

TEST_CASE("lm sampling: penalties, biases and probabilities") {
  // The prompt is {0, 1}, {2, 2} were generated.
  std::vector<int> tokens{0, 1, 2, 2};
  auto with = [&](const Sampling& sampling) {
    return chosen({2.0f, 1.9f, 1.95f, 1.0f}, sampling, 1, tokens, 2).token;
  };
  CHECK(with({}) == 0);
  CHECK(with({.repetition_penalty = 2.5f}) == 3);
  CHECK(with({.repetition_penalty = 1.5f, .penalty_tokens = 2}) == 0);
  CHECK(with({.presence_penalty = 5}) == 0);
  CHECK(with({.logit_bias = {{2, 1.0f}}}) == 2);
  CHECK(with({.presence_penalty = 0.5f, .logit_bias = {{2, 1.0f}}}) == 2);
  CHECK(with({.frequency_penalty = 0.5f, .logit_bias = {{2, 1.0f}}}) == 0);
  Choice choice = chosen({std::log(0.5f), std::log(0.3f), std::log(0.2f)}, {.logprobs = 2});
  CHECK(choice.logprob == doctest::Approx(std::log(0.5)));
  REQUIRE(choice.likeliest.size() == 2);
  CHECK(choice.likeliest[1].first == 1);
  CHECK(choice.likeliest[1].second == doctest::Approx(std::log(0.3)));
}

TEST_CASE("lm blocks: held, kept for those that begin alike, and given away by age") {
  engine::Blocks blocks(3, 2);
  std::vector<int> ab{1, 2}, cd{3, 4};
  int first = blocks.take(), second = blocks.take();
  uint64_t chain = blocks.publish(first, 0, ab);
  uint64_t end = blocks.publish(second, chain, cd);
  CHECK(end != chain);
  blocks.release(second);
  blocks.release(first);
  CHECK(blocks.free() == 1);
  CHECK(blocks.kept() == 2);
  CHECK(blocks.can_take(3));
  uint64_t found = 0;
  CHECK(blocks.find(found, cd) == -1);  // not at the beginning
  CHECK(blocks.find(found, ab) == first);
  CHECK(found == chain);
  CHECK(blocks.find(found, cd) == second);
  CHECK(blocks.kept() == 0);
  uint64_t again = 0;
  CHECK(blocks.find(again, ab) == first);  // two holders
  blocks.release(first);
  CHECK(blocks.kept() == 0);
  blocks.release(second);
  blocks.release(first);
  CHECK(blocks.take() >= 0);
  CHECK(blocks.take() == second);  // the older of the kept ones
  found = 0;
  CHECK(blocks.find(found, ab) == first);
  CHECK(blocks.find(found, cd) == -1);
  CHECK(blocks.take() == -1);
  blocks.forget();
  blocks.release(first);
  CHECK(blocks.free() == 1);
}
