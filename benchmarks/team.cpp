#include "benchmarks/team.h"

namespace holdfast::bench {

Team::Team(int threads) {
  for (int i = 1; i < threads; ++i) helpers_.emplace_back([this] { help(); });
}

Team::~Team() {
  {
    std::lock_guard guard(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  for (std::thread& helper : helpers_) helper.join();
}

void Team::drain(const Body& body, int64_t tasks) {
  for (int64_t task = next_.fetch_add(1); task < tasks; task = next_.fetch_add(1)) body(task);
}

void Team::help() {
  uint64_t seen = 0;
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return stopping_ || (round_ != seen && body_ != nullptr); });
    if (stopping_) return;
    seen = round_;
    ++inside_;
    // Taken under the lock: the owner clears body_ while we may still be at work, but does not
    // return, so the body itself lives.
    const Body& body = *body_;
    int64_t tasks = tasks_;
    lock.unlock();
    drain(body, tasks);
    lock.lock();
    --inside_;
    left_.notify_one();
  }
}

void Team::run(int64_t tasks, const Body& body) {
  {
    std::lock_guard guard(mutex_);
    body_ = &body;
    tasks_ = tasks;
    next_.store(0);
    ++round_;
  }
  changed_.notify_all();
  drain(body, tasks);
  std::unique_lock lock(mutex_);
  // A helper that has not woken up by now finds no body and goes on sleeping.
  body_ = nullptr;
  left_.wait(lock, [&] { return inside_ == 0; });
}

}  // namespace holdfast::bench
