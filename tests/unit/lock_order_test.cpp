// base/lock_order.h: a thread that takes locks in a wrong order ends the process, in builds that
// check.
#include <doctest/doctest.h>

#include <mutex>
#include <type_traits>

#include "base/sync.h"
#include "tests/support/death.h"
#include "tests/support/threads.h"

using namespace holdfast;
using sync::Rank;
using testing::aborted;
using testing::contains;

namespace {

// Only a guard is a proof.
static_assert(!std::is_default_constructible_v<sync::Held>);
static_assert(!std::is_constructible_v<sync::Held, sync::Mutex&>);
static_assert(std::is_convertible_v<std::lock_guard<sync::Mutex>&, sync::Held>);
static_assert(std::is_convertible_v<std::unique_lock<sync::SpinLock>&, sync::Held>);
static_assert(std::is_empty_v<sync::Held>);

}  // namespace

TEST_CASE("lock order: locks may be taken in the order of their ranks") {
  sync::Mutex queue{Rank::queue}, leaf;
  sync::SpinLock bin{Rank::bin};
  for (int round = 0; round < 2; ++round) {
    std::lock_guard first(queue);
    std::unique_lock second(bin);
    {
      std::lock_guard third(leaf);
    }
    second.unlock();
    std::lock_guard third(leaf);
  }
  // Released in another order than taken.
  std::unique_lock first(queue), third(leaf);
  first.unlock();
  third.unlock();
  std::lock_guard again(queue);
}

TEST_CASE("lock order: try_lock does not wait, and may be called in any order") {
  sync::Mutex queue{Rank::queue}, leaf;
  std::lock_guard guard(leaf);
  REQUIRE(queue.try_lock());
  queue.unlock();
}

TEST_CASE("lock order: threads hold locks of their own") {
  sync::Mutex queue{Rank::queue}, leaf;
  std::lock_guard guard(leaf);
  testing::on_threads(2, [&](int) { std::lock_guard own(queue); });
}

TEST_CASE("lock order: who waits for a condition does not hold the mutex meanwhile") {
  sync::Mutex queue{Rank::queue};
  sync::CondVar never;
  std::unique_lock lock(queue);
  CHECK_FALSE(never.wait_for(lock, std::chrono::milliseconds(1), [] { return false; }));
  sync::Mutex leaf;
  std::lock_guard guard(leaf);
}

#if HOLDFAST_CHECKS

namespace {

struct WrongOrder {
  const char* name;
  void (*body)();
  std::vector<const char*> said;
};

const WrongOrder wrong_orders[] = {
    {"a lock of an earlier rank",
     [] {
       sync::Mutex allocator{Rank::allocator}, queue{Rank::queue};
       std::lock_guard first(allocator);
       std::lock_guard second(queue);
     },
     {"takes a lock of rank queue", "holds a lock of rank allocator", "lock_order_test.cpp:"}},
    {"two locks of one rank",
     [] {
       sync::Mutex one{Rank::queue}, other{Rank::queue};
       std::lock_guard first(one);
       std::lock_guard second(other);
     },
     {"takes a lock of rank queue", "holds a lock of rank queue"}},
    {"a lock that is held",
     [] {
       sync::Mutex queue{Rank::queue};
       queue.lock();
       queue.lock();
     },
     {"takes a lock of rank queue", "holds a lock of rank queue"}},
    {"a lock below a leaf",
     [] {
       sync::SpinLock leaf;
       sync::Mutex other;
       std::lock_guard first(leaf);
       std::lock_guard second(other);
     },
     {"takes a lock of rank leaf", "holds a lock of rank leaf"}},
    {"a lock below one of try_lock",
     [] {
       sync::Mutex allocator{Rank::allocator}, queue{Rank::queue};
       allocator.try_lock();
       queue.lock();
     },
     {"takes a lock of rank queue", "holds a lock of rank allocator"}},
    {"not the last lock that was taken",
     [] {
       sync::Mutex storage{Rank::storage}, queue{Rank::queue}, device{Rank::device};
       storage.lock();
       queue.try_lock();
       device.lock();
     },
     {"takes a lock of rank device", "holds a lock of rank storage"}},
    {"again after a wait, with a later lock held",
     [] {
       sync::Mutex queue{Rank::queue}, allocator{Rank::allocator};
       sync::CondVar changed;
       std::unique_lock first(queue);
       std::lock_guard second(allocator);
       changed.wait_for(first, std::chrono::milliseconds(1), [] { return false; });
     },
     {"takes a lock of rank queue", "holds a lock of rank allocator"}},
    {"one that is not held, to release it",
     [] {
       sync::Mutex queue{Rank::queue};
       queue.unlock();
     },
     {"releases a lock of rank queue", "which it does not hold"}},
    {"a guard that was unlocked, as a proof",
     [] {
       sync::Mutex queue{Rank::queue};
       std::unique_lock lock(queue);
       lock.unlock();
       sync::Held{lock};
     },
     {"expected a guard that holds its lock"}},
};

}  // namespace

TEST_CASE("lock order: a wrong order aborts, with both locks named") {
  for (const WrongOrder& wrong : wrong_orders) {
    const testing::Death death = testing::run_in_fork(wrong.body);
    INFO(wrong.name, ": ", death.output);
    CHECK(aborted(death));
    for (const char* said : wrong.said) CHECK(contains(death.output, said));
  }
}

#else

static_assert(sizeof(sync::SpinLock) == 1);
static_assert(sizeof(sync::Mutex) == sizeof(std::mutex));

#endif
