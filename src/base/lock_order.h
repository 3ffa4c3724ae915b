// The rules of locks: their order, and the proof that one is held.
//
// Each sync::Mutex and SpinLock has a rank, a row of base/lock_ranks.def, and a
// thread takes locks in the order of these rows. Builds with HOLDFAST_CHECKS abort, with both locks
// named, when a thread takes one whose rank is not after those of all that it holds: a deadlock is
// found by the first thread that could be part of one, whatever the others do. In other builds
// nothing of this is there.
#pragma once

#include <cstdint>
#include <mutex>
#include <source_location>

#ifndef HOLDFAST_CHECKS
#define HOLDFAST_CHECKS 0
#endif

namespace holdfast::sync {

enum class Rank : uint8_t {
#define RANK(name, meaning) name,
#include "base/lock_ranks.def"
#undef RANK
};

// The part of a lock that knows its place in the order.
class Ranked {
 public:
  Ranked(const Ranked&) = delete;
  Ranked& operator=(const Ranked&) = delete;

#if HOLDFAST_CHECKS
 protected:
  // `where`: the declaration, as far as the compiler says; of a member, its class or constructor.
  constexpr Ranked(Rank rank, std::source_location where) noexcept : rank_(rank), where_(where) {}
  // Before the calling thread waits for the lock.
  void check_order() const noexcept;
  void note_taken() const noexcept;
  void note_released() const noexcept;

 private:
  struct HeldByThread;
  Rank rank_;
  std::source_location where_;
#else
 protected:
  constexpr Ranked(Rank, std::source_location) noexcept {}
  void check_order() const noexcept {}
  void note_taken() const noexcept {}
  void note_released() const noexcept {}
#endif
};

// A parameter that proves that the caller holds the lock which guards what the function touches:
// `void place(CpuQueue&, sync::Held)` is called with the guard. A function that releases the lock
// meanwhile takes the std::unique_lock itself.
class Held {
 public:
  template <class Lock>
  Held(const std::lock_guard<Lock>&) noexcept {}
  template <class Lock>
  Held([[maybe_unused]] const std::unique_lock<Lock>& lock) noexcept {
#if HOLDFAST_CHECKS
    if (!lock.owns_lock()) fail();
#endif
  }

#if HOLDFAST_CHECKS
 private:
  [[noreturn]] static void fail() noexcept;
#endif
};

}  // namespace holdfast::sync
