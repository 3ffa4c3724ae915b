#include <doctest/doctest.h>

#include <chrono>
#include <cmath>
#include <thread>

#include <holdfast/eval.h>
#include <holdfast/lm.h>
#include <holdfast/memory.h>
#include <holdfast/ops.h>

#include "base/fault.h"
#include "lm/tiny_models.h"
#include "support/inspection.h"
#include "support/threads.h"

using namespace holdfast;
using namespace holdfast::lm;
using namespace holdfast::testing;
using namespace std::chrono_literals;

namespace {

// Prompts of different lengths, of which some begin alike.
Request numbered_request(int i, int max_tokens) {
  std::vector<int> tokens = tiny_prompt(3 + i * 7 % 50, 1);
  tokens.push_back(i % 128);
  Request request{.tokens = tokens, .max_tokens = max_tokens};
  request.ignores_end = true;
  return request;
}

std::vector<std::vector<int>> one_at_a_time(const std::shared_ptr<const Model>& model, int count,
                                            int max_tokens, const EngineOptions& options = {}) {
  EngineOptions alone = options;
  alone.batch = 1;
  alone.steady = true;
  alone.reuses_prefixes = false;
  Engine engine(model, {}, alone);
  std::vector<std::vector<int>> all;
  for (int i = 0; i < count; ++i)
    all.push_back(engine.generate(numbered_request(i, max_tokens)).tokens());
  return all;
}

// All blocks are free or kept for reuse again.
bool is_at_rest(const Engine& engine) {
  Metrics metrics = engine.metrics();
  return metrics.running == 0 && metrics.queued == 0 &&
         metrics.free_blocks + metrics.kept_blocks == metrics.blocks;
}

}  // namespace

TEST_CASE("lm engine: a sequence gets the same tokens alone and in any batch") {
  for (const char* name : {"llama", "gemma3_text", "qwen3_5_moe_text"}) {
    for (int bits : {0, 4}) {
      CAPTURE(name);
      CAPTURE(bits);
      RandomOptions weights{.dtype = bits ? bfloat16 : float32, .bits = bits, .group_size = 32};
      auto model = Model::random(tiny_config(name), weights);
      const int count = scaled(17, 5, 5), length = scaled(12, 4, 4);
      auto expected = one_at_a_time(model, count, length);
      Engine engine(model, {}, {.batch = 32, .prefill_tokens = 64, .cache_tokens = 8192});
      std::vector<Generation> running;
      for (int i = 0; i < count; ++i)
        running.push_back(engine.generate(numbered_request(i, length)));
      for (int i = 0; i < count; ++i)
        CHECK(running[static_cast<size_t>(i)].tokens() == expected[static_cast<size_t>(i)]);
    }
  }
}

TEST_CASE("lm engine: without room for all, the youngest wait, and get the same tokens") {
  auto model = Model::random(tiny_config("llama"));
  const int count = 8, length = 40;
  auto expected = one_at_a_time(model, count, length);
  // Room for about two and a half of them.
  Engine engine(model, {}, {.batch = 8, .cache_tokens = 16 * 15, .block_size = 16, .steady = true});
  std::vector<Generation> running;
  for (int i = 0; i < count; ++i) running.push_back(engine.generate(numbered_request(i, length)));
  for (int i = 0; i < count; ++i)
    CHECK(running[static_cast<size_t>(i)].tokens() == expected[static_cast<size_t>(i)]);
  CHECK(engine.metrics().preempted > 0);
  CHECK(eventually([&] { return is_at_rest(engine); }));
}

TEST_CASE("lm engine: what sequences begin with alike is computed once") {
  auto model = Model::random(tiny_config("qwen3"));
  std::vector<int> prompt = tiny_prompt(100, 5);
  Engine engine(model, {}, {.cache_tokens = 1024, .block_size = 16});
  Request request{.tokens = prompt, .max_tokens = 20};
  request.ignores_end = true;
  Generation first = engine.generate(request);
  std::vector<int> tokens = first.tokens();
  CHECK(first.usage().reused_tokens == 0);
  CHECK(first.usage().prompt_tokens == 100);
  CHECK(first.usage().generated_tokens == 20);
  Generation second = engine.generate(request);
  CHECK(second.tokens() == tokens);
  CHECK(second.usage().reused_tokens == 96);
  // What was generated serves as well.
  request.tokens.insert(request.tokens.end(), tokens.begin(), tokens.end());
  Generation third = engine.generate(request);
  third.tokens();
  CHECK(third.usage().reused_tokens == 112);
  CHECK(engine.metrics().reused_tokens == 96 + 112);
  // Another token in the first block: nothing is alike.
  request.tokens[3] ^= 1;
  Generation other = engine.generate(request);
  other.tokens();
  CHECK(other.usage().reused_tokens == 0);
}

TEST_CASE("lm engine: a generation that goes away gives its blocks back") {
  auto model = Model::random(tiny_config("llama"));
  Engine engine(model, {}, {.batch = 4, .cache_tokens = 4096, .reuses_prefixes = false});
  {
    std::vector<Generation> running;
    for (int i = 0; i < 6; ++i) running.push_back(engine.generate(numbered_request(i, 500)));
    CHECK(running[0].next().has_value());
    running[1].cancel();
    CHECK_FALSE(running[0].finish().has_value());
    while (running[1].next()) {
    }
    CHECK(*running[1].finish() == Finish::cancelled);
  }
  CHECK(eventually([&] { return is_at_rest(engine); }));
  CHECK(engine.metrics().cancelled == 6);
  CHECK(engine.metrics().free_blocks == engine.metrics().blocks);
}

TEST_CASE("lm engine: what can never be served is refused at once, and by name") {
  auto model = Model::random(tiny_config("llama"));
  Engine engine(model, {}, {.batch = 1, .queue = 2, .request_tokens = 100, .cache_tokens = 256});
  auto refused = [&](Request request, const char* part) {
    try {
      engine.generate(std::move(request));
      FAIL("was not refused: ", part);
    } catch (const RequestError& error) {
      CHECK_MESSAGE(std::string(error.what()).find(part) != std::string::npos, error.what());
    }
  };
  refused({}, "the prompt is empty");
  refused({.prompt = "text"}, "needs an engine with a tokenizer");
  refused({.tokens = {1, 128}}, "from 0 to 127, got 128");
  refused({.tokens = {1}, .max_tokens = 0}, "max_tokens must be at least 1");
  refused({.tokens = tiny_prompt(80, 1), .max_tokens = 21}, "more than the 100");
  refused({.tokens = {1}, .max_tokens = 1, .sampling = {.temperature = -1}},
          "temperature must be at least 0");
  refused({.tokens = {1}, .max_tokens = 1, .sampling = {.top_p = 0}}, "top_p must be above 0");
  refused({.tokens = {1}, .max_tokens = 1, .sampling = {.logit_bias = {{500, 1.0f}}}},
          "logit_bias must name tokens");
  refused({.tokens = {1}, .max_tokens = 1, .stop = {"x"}},
          "stop texts need an engine with a tokenizer");
  // One runs, two wait, the fourth is refused.
  std::vector<Generation> running;
  running.push_back(engine.generate(numbered_request(0, 60)));
  running[0].next();
  running.push_back(engine.generate(numbered_request(0, 5)));
  running.push_back(engine.generate(numbered_request(0, 5)));
  refused(numbered_request(0, 5), "the queue is full");
  CHECK(engine.metrics().refused == 1);
  for (Generation& each : running) each.tokens();
  CHECK(*running[2].finish() == Finish::length);
}

TEST_CASE("lm engine: options that fit no cache are refused") {
  auto model = Model::random(tiny_config("llama"));
  CHECK_THROWS_AS(Engine(model, {}, {.batch = 0}), std::invalid_argument);
  CHECK_THROWS_AS(Engine(model, {}, {.block_size = 24}), std::invalid_argument);
  CHECK_THROWS_AS(Engine(model, {}, {.cache_bytes = 100}), std::invalid_argument);
  CHECK_THROWS_AS(Engine(model, {}, {.cache_scheme = "turbo9"}), std::invalid_argument);
}

TEST_CASE("lm engine: seeds give the same text at any batch size") {
  auto model = Model::random(tiny_config("llama"));
  auto request_of = [&](uint64_t seed) {
    Request request = numbered_request(static_cast<int>(seed), 16);
    request.sampling = {.temperature = 1.0f,
                        .top_k = 50,
                        .top_p = 0.9f,
                        .min_p = 0.01f,
                        .repetition_penalty = 1.1f,
                        .seed = seed,
                        .logprobs = 2};
    return request;
  };
  std::vector<std::vector<int>> alone;
  Engine engine(model, {}, {.batch = 16, .cache_tokens = 4096});
  for (uint64_t i = 0; i < 8; ++i) alone.push_back(engine.generate(request_of(i)).tokens());
  std::vector<Generation> running;
  for (uint64_t i = 0; i < 8; ++i) running.push_back(engine.generate(request_of(i)));
  for (size_t i = 0; i < 8; ++i) CHECK(running[i].tokens() == alone[i]);
  Request other = request_of(0);
  other.sampling.seed = 99;
  CHECK(engine.generate(other).tokens() != alone[0]);
  // Probabilities come with the pieces.
  Generation generation = engine.generate(request_of(3));
  std::optional<Piece> piece = generation.next();
  REQUIRE(piece);
  CHECK(piece->likeliest.size() == 2);
  CHECK(piece->likeliest[0].second >= piece->likeliest[1].second);
  CHECK(piece->logprob <= piece->likeliest[0].second);
}

TEST_CASE("lm engine: a grammar decides what may follow, and its error fails its request alone") {
  auto model = Model::random(tiny_config("llama"));
  Engine engine(model, {}, {.cache_tokens = 1024});
  Request request = numbered_request(1, 6);
  request.sampling.constrain = [](std::span<const int> generated, std::span<float> logits) {
    for (size_t i = 0; i < logits.size(); ++i) {
      if (i != generated.size() + 10) logits[i] = -INFINITY;
    }
  };
  CHECK(engine.generate(request).tokens() == std::vector<int>{10, 11, 12, 13, 14, 15});
  Request failing = numbered_request(1, 6);
  failing.sampling.constrain = [](std::span<const int> generated, std::span<float>) {
    if (generated.size() == 2) throw std::runtime_error("the grammar is at its end");
  };
  Generation beside = engine.generate(numbered_request(2, 30));
  Generation generation = engine.generate(failing);
  CHECK(generation.next().has_value());
  CHECK(generation.next().has_value());
  CHECK_THROWS_WITH_AS(generation.next(), "the grammar is at its end", RequestError);
  CHECK(*generation.finish() == Finish::failed);
  CHECK(beside.tokens().size() == 30);
  request.sampling.constrain = [](std::span<const int>, std::span<float> logits) {
    for (float& logit : logits) logit = -INFINITY;
  };
  CHECK_THROWS_WITH_AS(engine.generate(request).tokens(), "no token is allowed to follow",
                       RequestError);
}

TEST_CASE("lm engine: tokens that stop, and the end of the engine") {
  auto model = Model::random(tiny_config("llama"));
  std::optional<Generation> left;
  {
    Engine engine(model, {}, {.cache_tokens = 4096});
    Request request = numbered_request(4, 30);
    std::vector<int> all = engine.generate(request).tokens();
    request.stop_tokens = {all[5]};
    Generation generation = engine.generate(request);
    std::vector<int> some = generation.tokens();
    CHECK(*generation.finish() == Finish::stop);
    CHECK(some.size() <= 5);
    CHECK(std::equal(some.begin(), some.end(), all.begin()));
    left.emplace(engine.generate(numbered_request(4, 3000)));
    CHECK(left->next().has_value());
    std::optional<Piece> piece;
    while (left->next_for(0ns, piece)) {
    }
  }
  CHECK_THROWS_WITH_AS(left->tokens(), "the engine was closed before the request had ended",
                       RequestError);
}

TEST_CASE("lm engine: a step that fails is computed again, and gives the same tokens") {
  auto model = Model::random(tiny_config("qwen3_5_moe_text"));
  auto expected = one_at_a_time(model, 4, 10);
  LeakCheck leaks;
  {
    Engine engine(model, {}, {.batch = 4, .cache_tokens = 1024, .steady = true});
    for (fault::Point point : {fault::Point::allocation, fault::Point::dispatch}) {
      for (uint64_t k : {1, 7, 40, 200, 1000}) {
        std::vector<Generation> running;
        for (int i = 0; i < 4; ++i) running.push_back(engine.generate(numbered_request(i, 10)));
        fault::arm(point, k);
        for (int i = 0; i < 4; ++i)
          CHECK(running[static_cast<size_t>(i)].tokens() == expected[static_cast<size_t>(i)]);
        fault::disarm();
      }
    }
    CHECK(engine.metrics().failed_steps > 0);
    CHECK(engine.metrics().failed == 0);
    // One that never stops: each request fails by name, and the engine lives on.
    Generation failing = engine.generate(numbered_request(1, 10));
    fault::arm(fault::Point::dispatch, 1, true);
    CHECK_THROWS_AS(failing.tokens(), RequestError);
    fault::disarm();
    CHECK(engine.generate(numbered_request(2, 10)).tokens() == expected[2]);
    CHECK(eventually([&] { return is_at_rest(engine); }));
  }
  leaks.check();
}
