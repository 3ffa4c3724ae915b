// Whether this process may use the library: not in a child that was forked after the start, and not
// once exit began.
#pragma once

#include <atomic>
#include <stdexcept>

namespace holdfast::process {

enum class State { not_started, running, exiting, forked };

inline std::atomic<State> state{State::not_started};

// Every entry that would need threads, queues or memory calls this.
inline void check_usable() {
  switch (state.load(std::memory_order_acquire)) {
    case State::forked:
      throw std::runtime_error(
          "[holdfast] this process was forked from one that had already used holdfast: the worker "
          "threads are gone. Fork before the first use, or start a new program (exec)");
    case State::exiting:
      throw std::runtime_error("[holdfast] the process is exiting: no new work is accepted");
    default:
      break;
  }
}

}  // namespace holdfast::process
