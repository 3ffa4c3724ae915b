// The workload that started the project, in small: many threads, each of which owns generations on
// a compressed cache and drops them at random moments.
#include <doctest/doctest.h>

#include <atomic>
#include <chrono>

#include <holdfast/lm.h>
#include <holdfast/memory.h>

#include "base/fault.h"
#include "lm/tiny_models.h"
#include "support/child.h"
#include "support/inspection.h"
#include "support/threads.h"

using namespace holdfast;
using namespace holdfast::lm;
using namespace holdfast::testing;

namespace {

constexpr int prompts = 8, most_tokens = 12;

// Blocks as Qwen3.5-MoE has them, with its heads of 256 dimensions.
Config workload_config() {
  std::string json = tiny_config_json("qwen3_5_moe_text");
  json.replace(json.find("\"head_dim\": 32"), 14, "\"head_dim\": 256");
  json.replace(json.find("\"num_hidden_layers\": 4"), 22, "\"num_hidden_layers\": 12");
  return Config::from_json(json);
}

EngineOptions workload_options() {
  return {.batch = 64, .cache_tokens = 8192, .cache_scheme = "turbo4v2"};
}

Request workload_request(int i) {
  Request request{.tokens = tiny_prompt(5 + i % prompts * 9, static_cast<uint64_t>(i % prompts)),
                  .max_tokens = most_tokens};
  request.ignores_end = true;
  return request;
}

// Tokens are the first ones of what is expected; all of them when it came to its end.
bool is_right(const std::vector<int>& tokens, const std::vector<int>& expected, bool is_whole) {
  return tokens.size() <= expected.size() && (!is_whole || tokens.size() == expected.size()) &&
         std::equal(tokens.begin(), tokens.end(), expected.begin());
}

// Generations that were wrong, of `threads` threads with `each` one after the other.
int run_workload(Engine& engine, const std::vector<std::vector<int>>& expected, int threads,
                 int each) {
  std::atomic<int> wrong{0};
  on_threads(threads, [&](int thread) {
    Random random(static_cast<uint64_t>(thread * 1000 + threads));
    for (int i = 0; i < each; ++i) {
      int number = thread + i;
      Generation generation = engine.generate(workload_request(number));
      std::vector<int> tokens;
      // Half of them are dropped before their end, some at once.
      size_t taken = random.below(2) ? random.below(most_tokens) : most_tokens + 1;
      bool is_whole = false;
      while (tokens.size() < taken) {
        std::optional<Piece> piece = generation.next();
        if (!piece) {
          is_whole = true;
          break;
        }
        tokens.push_back(piece->token);
      }
      if (!is_right(tokens, expected[static_cast<size_t>(number % prompts)], is_whole)) ++wrong;
    }
  });
  return wrong;
}

std::vector<std::vector<int>> expected_tokens(const std::shared_ptr<const Model>& model) {
  Engine engine(model, {}, workload_options());
  std::vector<std::vector<int>> expected;
  for (int i = 0; i < prompts; ++i)
    expected.push_back(engine.generate(workload_request(i)).tokens());
  return expected;
}

}  // namespace

TEST_CASE("lm workload: threads that come and go get the tokens of one at a time") {
  auto model = Model::random(workload_config());
  auto expected = expected_tokens(model);
  LeakCheck leaks;
  {
    Engine engine(model, {}, workload_options());
    for (int threads : {16, 17, 32, 64})
      CHECK(run_workload(engine, expected, scaled(threads, threads / 4, 4), 2) == 0);
    CHECK(eventually([&] { return engine.metrics().running == 0; }));
    Metrics metrics = engine.metrics();
    CHECK(metrics.free_blocks + metrics.kept_blocks == metrics.blocks);
    CHECK(metrics.failed == 0);
    CHECK(metrics.cancelled > 0);
  }
  leaks.check();
}

TEST_CASE("lm workload: 100 runs of each number of threads [long]") {
  auto model = Model::random(workload_config());
  auto expected = expected_tokens(model);
  Engine engine(model, {}, workload_options());
  int wrong_runs = 0;
  for (int run = 0; run < 100; ++run) {
    for (int threads : {16, 17, 32, 64})
      wrong_runs += run_workload(engine, expected, threads, 2) != 0;
  }
  CHECK(wrong_runs == 0);
}

// The ablation: what the lists own is what keeps it right.
TEST_CASE("lm workload: the child without retaining") {
  if (!is_child("lm workload: the child without retaining")) return;
  auto model = Model::random(workload_config());
  auto expected = expected_tokens(model);
  Engine engine(model, {}, workload_options());
  int wrong = run_workload(engine, expected, 16, 2);
  report(wrong == 0 && engine.metrics().failed_steps == 0 ? "right" : "wrong");
}

TEST_CASE("lm workload: without retaining it fails, and the validator names the buffer") {
  ChildResult kept = run_child("lm workload: the child without retaining");
  CHECK(reported(kept).starts_with("right"));
  ChildResult child = run_child("lm workload: the child without retaining", {"HOLDFAST_RETAIN=0"});
  CHECK_MESSAGE((child.exit_code != 0 || reported(child).starts_with("wrong")), child.output);
  child = run_child("lm workload: the child without retaining",
                    {"HOLDFAST_RETAIN=0", "HOLDFAST_VALIDATE=1"});
  CHECK_MESSAGE(child.output.find("lifetime.buffer-released") != std::string::npos, child.output);
}

namespace {

// Random arrivals, lengths, limits, drops and faults for so long.
void soak(std::chrono::seconds time, uint64_t first_seed) {
  auto model = Model::random(workload_config());
  auto expected = expected_tokens(model);
  LeakCheck leaks;
  {
    EngineOptions options = workload_options();
    options.cache_tokens = 384;  // too little for all
    options.queue = 24;
    options.batch = 16;
    Engine engine(model, {}, options);
    std::atomic<int> wrong{0}, answered{0}, failed{0};
    auto deadline = std::chrono::steady_clock::now() + time;
    on_threads(12, [&](int thread) {
      Random random(first_seed + static_cast<uint64_t>(thread));
      while (std::chrono::steady_clock::now() < deadline) {
        if (thread == 0) {  // the saboteur
          fault::arm(random.below(2) ? fault::Point::allocation : fault::Point::dispatch,
                     1 + random.below(3000));
          std::this_thread::sleep_for(std::chrono::milliseconds(random.below(20)));
          continue;
        }
        int number = static_cast<int>(random.below(prompts));
        try {
          Request request = workload_request(number);
          if (random.below(16) == 0) request.max_tokens = 100000;  // beyond the limit
          Generation generation = engine.generate(request);
          std::vector<int> tokens;
          size_t taken = random.below(3 * most_tokens);
          bool is_whole = false;
          while (tokens.size() < taken && !is_whole) {
            std::optional<Piece> piece = generation.next();
            if (piece) tokens.push_back(piece->token);
            is_whole = !piece;
          }
          if (!is_right(tokens, expected[static_cast<size_t>(number)], is_whole)) ++wrong;
          ++answered;
        } catch (const RequestError&) {
          ++failed;
        }
        std::this_thread::sleep_for(std::chrono::microseconds(random.below(2000)));
      }
    });
    fault::disarm();
    CHECK(wrong == 0);
    CHECK(answered > 0);
    CHECK(eventually([&] {
      Metrics metrics = engine.metrics();
      return metrics.running == 0 && metrics.queued == 0 &&
             metrics.free_blocks + metrics.kept_blocks == metrics.blocks;
    }));
    // As well as before.
    for (int i = 0; i < prompts; ++i)
      CHECK(engine.generate(workload_request(i)).tokens() == expected[static_cast<size_t>(i)]);
    Metrics metrics = engine.metrics();
    MESSAGE("answered ", answered.load(), ", failed by name ", failed.load(), ", steps ",
            metrics.steps, ", failed steps ", metrics.failed_steps, ", preempted ",
            metrics.preempted);
  }
  leaks.check();
}

}  // namespace

TEST_CASE("lm soak: a few seconds") { soak(std::chrono::seconds(3), 1); }
TEST_CASE("lm soak: half an hour [long]") { soak(std::chrono::minutes(30), 100); }
