// The engine's thread.
#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include <holdfast/lm/engine.h>

#include "lm/engine/scheduler.h"
#include "lm/engine/sequence.h"

namespace holdfast::lm::engine {

class Loop {
 public:
  Loop(std::shared_ptr<const Model> model, std::optional<Tokenizer> tokenizer,
       const EngineOptions& options);
  ~Loop();

  std::shared_ptr<Channel> submit(Request request);
  Metrics metrics() const;
  const Model& model() const { return *model_; }
  const std::optional<Tokenizer>& tokenizer() const { return tokenizer_; }

 private:
  std::unique_ptr<Sequence> checked(Request request) const;
  void run();
  // Waits for something to do; false when the engine ends.
  bool receive();
  void step();
  // What the step gave: for each row of outputs the likeliest token, or all logits.
  void compute(const Plan& plan, std::vector<int>& likeliest, std::vector<float>& logits);
  void recover(const Plan& plan, const std::string& error);
  void deliver(Sequence& sequence, const Choice& choice);
  void finish(Sequence& sequence, Finish finish, const std::string& error = {});
  void end(Sequence& sequence, Finish finish, const std::string& error = {});
  void fail_all(const std::string& error);
  void publish_metrics();

  const std::shared_ptr<const Model> model_;
  const std::optional<Tokenizer> tokenizer_;
  const EngineOptions options_;
  size_t request_limit_ = 0;  // tokens
  Cache cache_;               // the engine's thread only, as all that follows
  Scheduler scheduler_;
  Metrics counted_;

  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::vector<std::unique_ptr<Sequence>> inbox_;
  Metrics metrics_;
  uint64_t refused_ = 0, requests_ = 0;
  bool closing_ = false;

  std::thread thread_;
};

}  // namespace holdfast::lm::engine
