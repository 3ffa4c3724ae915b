// What a generation's owner and the engine's thread share.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <string>

#include <holdfast/lm/engine.h>

namespace holdfast::lm::engine {

class Channel {
 public:
  using Clock = std::chrono::steady_clock;

  // --- the engine's side ---
  void push(Piece piece);
  // Only the first end counts. `error` belongs to Finish::failed.
  void end(Finish finish, const std::string& error = {});
  bool is_cancelled() const { return cancelled_.load(std::memory_order_relaxed); }
  void count_prompt(int tokens, int reused);

  // --- the owner's side ---
  void cancel() noexcept { cancelled_.store(true, std::memory_order_relaxed); }
  // False when the deadline passed; waits for ever without one.
  bool next(std::optional<Clock::time_point> deadline, std::optional<Piece>& piece);
  std::optional<Finish> finish() const;
  Usage usage() const;

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Piece> pieces_;
  std::optional<Finish> finish_;
  std::string error_;
  Usage usage_;
  const Clock::time_point begin_ = Clock::now();
  std::atomic<bool> cancelled_{false};
};

}  // namespace holdfast::lm::engine
