// Many generations at once.
//
// An engine owns a thread, which computes one step after the other: each takes the next token of
// all sequences that generate, and chunks of the prompts of those that begin. Sequences join and
// leave between any two steps.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <holdfast/lm/model.h>
#include <holdfast/lm/sampling.h>
#include <holdfast/lm/tokenizer.h>

namespace holdfast::lm {

struct EngineOptions {
  int batch = 64;            // sequences that run at one time
  int queue = 1024;          // requests that wait for it; more are refused
  int prefill_tokens = 512;  // of prompts, in a step
  int request_tokens = 0;    // prompt and result of one request together; 0: what the cache holds
  // Of all sequences together, in tokens; less when `cache_bytes` is given and reached before.
  int cache_tokens = 16384;
  size_t cache_bytes = 0;
  int block_size = 32;
  std::string cache_scheme = "dense";  // see CacheOptions
  bool protects_edges = true;
  bool reuses_prefixes = true;  // of sequences that begin with the same tokens
  // The same text for a sequence alone and in any batch, by the bit. Costs time where fewer than
  // Model::steady_tokens tokens are computed at once, and nothing elsewhere. By default where
  // `batch` is at least that number.
  std::optional<bool> steady = {};
  StreamOrDevice stream = {};
};

struct Request {
  std::vector<int> tokens = {};  // the prompt; or, with a tokenizer,
  std::string prompt = {};       // its text
  int max_tokens = 256;
  Sampling sampling = {};
  std::vector<std::string> stop = {};  // texts that end the result, and do not belong to it
  std::vector<int> stop_tokens = {};
  bool ignores_end = false;  // goes on after tokens that end a text
  // Requests of one owner wait for each other before those of another do.
  std::string owner = {};
};

enum class Finish { end_token, stop, length, cancelled, failed };
const char* name_of(Finish finish);

// What one step gave a generation.
struct Piece {
  int token = 0;
  std::string text;  // with a tokenizer: what became certain; empty inside a character
  float logprob = 0.0f;
  std::vector<std::pair<int, float>> likeliest;
};

struct Usage {
  int prompt_tokens = 0, reused_tokens = 0, generated_tokens = 0;
  std::chrono::nanoseconds first_token{}, total{};  // since the request
};

namespace engine {
class Channel;
class Loop;
}  // namespace engine

// A running request. Any thread may own it; going away, it cancels what is not finished.
class Generation {
 public:
  ~Generation();
  Generation(Generation&&) noexcept = default;
  Generation& operator=(Generation&& other) noexcept;

  // Waits for the next piece. None when the generation has ended; RequestError when it failed, once
  // the pieces before that are taken. The last piece may have no token of its own (-1): text that
  // was held back.
  std::optional<Piece> next();
  // The same with a limit: false when it passed first. `piece` is none at the end.
  bool next_for(std::chrono::nanoseconds timeout, std::optional<Piece>& piece);
  // All that is left, as text.
  std::string text();
  std::vector<int> tokens();
  // From any thread, at any time. Blocks are free again within a step.
  void cancel() noexcept;
  // How it ended; none as long as it runs.
  std::optional<Finish> finish() const;
  Usage usage() const;

 private:
  friend class Engine;
  explicit Generation(std::shared_ptr<engine::Channel> channel) : channel_(std::move(channel)) {}
  engine::Channel& channel() const;  // std::invalid_argument when it was moved from
  std::shared_ptr<engine::Channel> channel_;
};

struct Metrics {
  int queued = 0, running = 0;
  int blocks = 0, free_blocks = 0, kept_blocks = 0;  // kept: of ended sequences, for reuse
  uint64_t steps = 0, requests = 0, finished = 0, cancelled = 0, failed = 0, refused = 0;
  uint64_t prompt_tokens = 0, reused_tokens = 0, generated_tokens = 0;
  uint64_t preempted = 0;     // sequences that gave their blocks to older ones, and went on later
  uint64_t failed_steps = 0;  // whose sequences were computed again
  std::chrono::nanoseconds busy{};  // time in steps
};

// The tokenizer of a Hugging Face folder or of a GGUF file.
Tokenizer load_tokenizer(const std::string& path);

class Engine {
 public:
  // Throws when the options do not fit the model, or the cache does not fit the memory.
  explicit Engine(std::shared_ptr<const Model> model, std::optional<Tokenizer> tokenizer = {},
                  const EngineOptions& options = {});
  // The model and the tokenizer of a folder or of a GGUF file.
  explicit Engine(const std::string& path, const LoadOptions& load = {},
                  const EngineOptions& options = {});
  // Generations that have not ended fail.
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // From any thread. RequestError at once for what can never be served, and when the queue is full.
  Generation generate(Request request);
  Metrics metrics() const;
  const Model& model() const;
  const std::optional<Tokenizer>& tokenizer() const;

 private:
  std::unique_ptr<engine::Loop> loop_;
};

}  // namespace holdfast::lm
