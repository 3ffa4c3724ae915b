#include "base/lock_order.h"

#include <cstdio>
#include <cstdlib>
#include <string>

#if HOLDFAST_CHECKS

namespace holdfast::sync {
namespace {

constexpr const char* rank_names[] = {
#define RANK(name, meaning) #name,
#include "base/lock_ranks.def"
#undef RANK
};

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "[holdfast] %s\n", what.c_str());
  std::abort();
}

}  // namespace

// The locks that a thread holds, the last one taken at the end.
struct Ranked::HeldByThread {
  static constexpr int capacity = 64;
  const Ranked* locks[capacity];
  int count;
  static thread_local HeldByThread of_this_thread;

  static std::string describe(const Ranked& lock) {
    return std::string("a lock of rank ") + rank_names[static_cast<int>(lock.rank_)] +
           " (declared at " + lock.where_.file_name() + ":" + std::to_string(lock.where_.line()) +
           ", " + lock.where_.function_name() + ")";
  }
};
constinit thread_local Ranked::HeldByThread Ranked::HeldByThread::of_this_thread{};

void Ranked::check_order() const noexcept {
  const HeldByThread& held = HeldByThread::of_this_thread;
  for (int i = held.count; i-- > 0;) {
    const Ranked& other = *held.locks[i];
    if (other.rank_ < rank_) continue;
    fail("a thread takes " + HeldByThread::describe(*this) + " while it holds " +
         HeldByThread::describe(other) + ": expected the order of src/base/lock_ranks.def");
  }
}

void Ranked::note_taken() const noexcept {
  HeldByThread& held = HeldByThread::of_this_thread;
  if (held.count == HeldByThread::capacity) fail("a thread holds more locks than are kept of it");
  held.locks[held.count++] = this;
}

void Ranked::note_released() const noexcept {
  HeldByThread& held = HeldByThread::of_this_thread;
  for (int i = held.count; i-- > 0;) {
    if (held.locks[i] != this) continue;
    for (; i + 1 < held.count; ++i) held.locks[i] = held.locks[i + 1];
    --held.count;
    return;
  }
  fail("a thread releases " + HeldByThread::describe(*this) + ", which it does not hold");
}

void Held::fail() noexcept {
  sync::fail(
      "expected a guard that holds its lock, as proof that it is held, got one that does not");
}

}  // namespace holdfast::sync

#endif
