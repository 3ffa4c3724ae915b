// base/sync.h: locks, condition variables, atomics and threads.
#include <doctest/doctest.h>
#include <pthread.h>

#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/sync.h"
#include "tests/support/threads.h"

using namespace holdfast;
using testing::on_threads;
using namespace std::chrono_literals;

namespace {

constexpr int rounds = controlled::enabled() ? 20 : 2000;

template <class Lock>
void check_mutual_exclusion() {
  controlled::for_each_schedule(20, [](const auto&) {
    Lock lock;
    int counter = 0;
    on_threads(4, [&](int) {
      for (int i = 0; i < rounds; ++i) {
        std::lock_guard guard(lock);
        const int seen = counter;
        sync::yield_point();
        counter = seen + 1;
      }
    });
    INFO(controlled::describe());
    CHECK(counter == 4 * rounds);
  });
}

template <class Lock>
void check_try_lock() {
  Lock lock;
  REQUIRE(lock.try_lock());
  bool taken = true;
  sync::Thread("other", [&] { taken = lock.try_lock(); }).join();
  CHECK_FALSE(taken);
  lock.unlock();
  REQUIRE(lock.try_lock());
  lock.unlock();
}

}  // namespace
TEST_CASE("sync: a mutex and a spin lock exclude") {
  check_mutual_exclusion<sync::Mutex>();
  check_mutual_exclusion<sync::SpinLock>();
  check_try_lock<sync::Mutex>();
  check_try_lock<sync::SpinLock>();
}

TEST_CASE("sync: a condition variable hands over every item once") {
  controlled::for_each_schedule(40, [](const auto&) {
    sync::Mutex mutex;
    sync::CondVar changed;
    int slot = 0;  // guarded by mutex; zero when empty
    int received = 0;
    on_threads(2, [&](int role) {
      for (int i = 1; i <= rounds; ++i) {
        std::unique_lock lock(mutex);
        if (role == 0) {
          changed.wait(lock, [&] { return slot == 0; });
          slot = i;
        } else {
          changed.wait(lock, [&] { return slot != 0; });
          received += slot == i ? 1 : 0;
          slot = 0;
        }
        changed.notify_one();
      }
    });
    INFO(controlled::describe());
    CHECK(received == rounds);
  });
}

TEST_CASE("sync: notify_all wakes every waiter") {
  controlled::for_each_schedule(20, [](const auto&) {
    sync::Mutex mutex;
    sync::CondVar start;
    bool open = false;
    int passed = 0;
    on_threads(5, [&](int role) {
      std::unique_lock lock(mutex);
      if (role == 4) {
        open = true;
        start.notify_all();
      } else {
        start.wait(lock, [&] { return open; });
        ++passed;
      }
    });
    CHECK(passed == 4);
  });
}

TEST_CASE("sync: timed waits end at their deadline or with their predicate") {
  controlled::for_each_schedule(20, [](const auto&) {
    sync::Mutex mutex;
    sync::CondVar changed;
    bool ready = false;
    {
      std::unique_lock lock(mutex);
      const auto before = sync::now();
      CHECK_FALSE(changed.wait_for(lock, 5ms, [&] { return ready; }));
      CHECK(sync::now() - before >= 5ms);
      CHECK(lock.owns_lock());
      CHECK_FALSE(changed.wait_until(lock, before, [&] { return ready; }));
    }
    sync::Thread setter("setter", [&] {
      sync::sleep_for(1ms);
      std::lock_guard lock(mutex);
      ready = true;
      changed.notify_all();
    });
    {
      std::unique_lock lock(mutex);
      CHECK(changed.wait_for(lock, 1h, [&] { return ready; }));
    }
    setter.join();
  });
}

TEST_CASE("sync: atomics compute what std::atomic does") {
  sync::Atomic<uint32_t> word{6};
  CHECK(word.fetch_add(2) == 6);
  CHECK(word.fetch_sub(1, std::memory_order_acq_rel) == 8);
  CHECK(word.fetch_or(8) == 7);
  CHECK(word.fetch_and(9) == 15);
  CHECK(word.exchange(3) == 9);
  uint32_t expected = 4;
  CHECK_FALSE(word.compare_exchange_strong(expected, 5));
  CHECK(expected == 3);
  while (!word.compare_exchange_weak(expected, 5, std::memory_order_acq_rel,
                                     std::memory_order_acquire)) {
  }
  CHECK(word.load() == 5);
  int values[3] = {};
  sync::Atomic<int*> pointer{values};
  CHECK(pointer.fetch_add(2) == values);
  CHECK(pointer.load() == values + 2);
  sync::Atomic<bool> flag;
  CHECK_FALSE(flag.exchange(true));

  sync::Atomic<int> counter;
  on_threads(4, [&](int) {
    for (int i = 0; i < rounds; ++i) counter.fetch_add(1, std::memory_order_relaxed);
  });
  CHECK(counter.load() == 4 * rounds);
}

TEST_CASE("sync: a waiting loop with pause ends") {
  controlled::for_each_schedule(40, [](const auto&) {
    sync::Atomic<int> turn{0};
    on_threads(8, [&](int role) {
      if (role == 1) sync::sleep_for(1ms);
      while (turn.load(std::memory_order_acquire) != role) sync::pause();
      turn.store(role + 1, std::memory_order_release);
    });
    CHECK(turn.load() == 8);
  });
}

TEST_CASE("sync: threads have names, move, and report that they cannot start") {
  char name[16] = "";
  sync::Thread first("a name longer than fifteen", [&, owned = std::make_unique<int>(7)] {
    CHECK(*owned == 7);
    pthread_getname_np(pthread_self(), name, sizeof(name));
  });
  CHECK(first.joinable());
  sync::Thread second = std::move(first);
  CHECK_FALSE(first.joinable());
  first = std::move(second);
  first.join();
  CHECK_FALSE(first.joinable());
  CHECK(std::string(name) == "a name longer t");

  // No address space has room for this stack.
  pthread_attr_t usual, impossible;
  REQUIRE(pthread_getattr_default_np(&usual) == 0);
  REQUIRE(pthread_getattr_default_np(&impossible) == 0);
  REQUIRE(pthread_attr_setstacksize(&impossible, size_t{1} << 60) == 0);
  REQUIRE(pthread_setattr_default_np(&impossible) == 0);
  CHECK_THROWS_AS(sync::Thread("never", [] {}), std::system_error);
  REQUIRE(pthread_setattr_default_np(&usual) == 0);
  sync::Thread("after", [] {}).join();
}

TEST_CASE("sync: exit callbacks run once, last first, while thread_local objects live") {
  static sync::Mutex mutex;
  static std::vector<int> order;  // guarded by mutex
  static auto append = [](int value) {
    std::lock_guard lock(mutex);
    order.push_back(value);
  };
  struct Local {
    ~Local() { append(0); }
  };
  order.clear();
  sync::Thread("ending", [] {
    thread_local Local constructed_first;
    (void)&constructed_first;
    static int values[] = {1, 2, 3};
    auto callback = [](void* value) {
      append(*static_cast<int*>(value));
      if (*static_cast<int*>(value) == 3) {
        static int late = 4;
        sync::at_thread_exit([](void* argument) { append(*static_cast<int*>(argument)); }, &late);
      }
    };
    for (int& value : values) sync::at_thread_exit(callback, &value);
    append(9);
  }).join();
  CHECK(order == std::vector<int>{9, 3, 4, 2, 1, 0});
}
