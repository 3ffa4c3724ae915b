// Threads for tests: they count up, hand on what they throw, and are fewer where each step costs.
#pragma once

#include <doctest/doctest.h>

#include <exception>
#include <string>
#include <vector>

#include "base/sync.h"

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define HOLDFAST_TEST_TSAN 1
#endif
#if __has_feature(address_sanitizer)
#define HOLDFAST_TEST_ASAN 1
#endif
#endif
#ifndef HOLDFAST_TEST_ASAN
#define HOLDFAST_TEST_ASAN 0
#endif
#ifndef HOLDFAST_TEST_TSAN
#define HOLDFAST_TEST_TSAN 0
#endif

namespace holdfast::testing {

// `native` at full speed, less under ThreadSanitizer and under the controlled scheduler.
constexpr int scaled(int native, int under_tsan, int controlled_count) {
  if (controlled::enabled()) return controlled_count;
  return HOLDFAST_TEST_TSAN ? under_tsan : native;
}

// Runs body(0) … body(count - 1) on threads of their own; rethrows the first exception.
template <class Body>
void on_threads(int count, Body body) {
  std::vector<sync::Thread> threads;
  std::vector<std::exception_ptr> errors(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) {
    threads.emplace_back("test-" + std::to_string(i), [&, i] {
      try {
        body(i);
      } catch (...) {
        errors[static_cast<size_t>(i)] = std::current_exception();
      }
    });
  }
  for (sync::Thread& thread : threads) thread.join();
  for (std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
}

// A small generator that is the same everywhere.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15ull + 1) {}
  uint32_t below(uint32_t limit) {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return static_cast<uint32_t>((state_ >> 20) % limit);
  }

 private:
  uint64_t state_;
};

}  // namespace holdfast::testing
