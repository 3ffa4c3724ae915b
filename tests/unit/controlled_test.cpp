// base/controlled.h, in the preset `controlled`: the scheduler finds planted bugs, replays them
// from their seed, and reports a deadlock by name.
#include "base/controlled.h"

#if HOLDFAST_CONTROLLED

#include <doctest/doctest.h>
#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/sync.h"
#include "tests/support/death.h"
#include "tests/support/threads.h"

using namespace holdfast;
using namespace std::chrono_literals;
using testing::aborted;
using testing::contains;
using testing::Death;
using testing::on_threads;
using testing::run_in_fork;

namespace {

using controlled::Schedule;

// Increments that are not atomic. Returns how many were lost and appends each step's thread to the
// trace, which needs no lock: one thread runs at a time.
int lost_updates(std::vector<int>& trace) {
  sync::Atomic<int> counter{0};
  on_threads(2, [&](int role) {
    for (int i = 0; i < 4; ++i) {
      trace.push_back(role);
      const int seen = counter.load();
      trace.push_back(role);
      counter.store(seen + 1);
    }
  });
  return 8 - counter.load();
}

}  // namespace

TEST_CASE("controlled: a lost update is found within 50 seeds and replays") {
  for (Schedule::Strategy strategy : {Schedule::random, Schedule::pct}) {
    uint64_t found = 0;
    int lost = 0;
    std::vector<int> trace;
    for (uint64_t seed = 1; seed <= 50 && !found; ++seed) {
      trace.clear();
      controlled::begin({seed, strategy, 2});
      if ((lost = lost_updates(trace)) > 0) found = seed;
    }
    INFO(controlled::describe());
    REQUIRE(found != 0);
    for (int repeat = 0; repeat < 5; ++repeat) {
      std::vector<int> again;
      controlled::begin({found, strategy, 2});
      CHECK(lost_updates(again) == lost);
      CHECK(again == trace);
    }
  }
}

TEST_CASE("controlled: a seed determines the interleaving, other seeds give others") {
  auto scenario = [](std::vector<int>& trace) {
    sync::Mutex mutex;
    sync::CondVar changed;
    sync::SpinLock spin;
    int tokens = 0;
    on_threads(4, [&](int role) {
      for (int i = 0; i < 10; ++i) {
        trace.push_back(role);
        std::unique_lock lock(mutex);
        if (role % 2 == 0) {
          ++tokens;
          changed.notify_one();
        } else {
          changed.wait_for(lock, 3us, [&] { return tokens > 0; });
          if (tokens > 0) --tokens;
        }
        lock.unlock();
        std::lock_guard guard(spin);
        trace.push_back(role + 10);
      }
    });
  };
  std::unordered_set<uint64_t> different;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    std::vector<int> traces[2];
    uint64_t fingerprints[2];
    uint64_t steps[2];
    for (int run = 0; run < 2; ++run) {
      controlled::begin(controlled::schedule_of_seed(seed));
      scenario(traces[run]);
      fingerprints[run] = controlled::fingerprint();
      steps[run] = controlled::steps();
    }
    INFO(controlled::describe());
    CHECK(traces[0] == traces[1]);
    CHECK(fingerprints[0] == fingerprints[1]);
    CHECK(steps[0] == steps[1]);
    different.insert(fingerprints[0]);
  }
  CHECK(different.size() == 20);
}

TEST_CASE("controlled: pct finds a bug of depth 2, and only by its change points") {
  // The reader must be interrupted between its check and its use: no choice of priorities alone
  // does that.
  auto found_with_depth = [](int depth) {
    int found = 0;
    for (uint64_t seed = 1; seed <= 500; ++seed) {
      controlled::begin({seed, Schedule::pct, depth});
      sync::Atomic<bool> valid{true};
      bool used_after_end = false;
      on_threads(2, [&](int role) {
        for (int i = 0; i < 10; ++i) sync::yield_point();
        if (role == 0) {
          if (!valid.load()) return;
          for (int i = 0; i < 5; ++i) sync::yield_point();
          if (!valid.load()) used_after_end = true;
        } else {
          valid.store(false);
        }
      });
      found += used_after_end ? 1 : 0;
    }
    return found;
  };
  CHECK(found_with_depth(1) == 0);
  CHECK(found_with_depth(2) > 0);
}

TEST_CASE("controlled: every operation is a scheduling point") {
  sync::Atomic<int> word{0};
  sync::Mutex mutex;
  sync::SpinLock spin;
  sync::CondVar changed;
  int expected = 0;
  const std::vector<std::pair<const char*, std::function<void()>>> operations = {
      {"load", [&] { word.load(); }},
      {"store", [&] { word.store(0); }},
      {"exchange", [&] { word.exchange(0); }},
      {"fetch_add", [&] { word.fetch_add(0); }},
      {"compare_exchange_strong", [&] { word.compare_exchange_strong(expected, 0); }},
      {"lock", [&] { mutex.lock(); }},
      {"unlock", [&] { mutex.unlock(); }},
      {"try_lock", [&] { CHECK(mutex.try_lock()); }},
      {"unlock after try_lock", [&] { mutex.unlock(); }},
      {"spin lock", [&] { spin.lock(); }},
      {"spin unlock", [&] { spin.unlock(); }},
      {"notify_one", [&] { changed.notify_one(); }},
      {"notify_all", [&] { changed.notify_all(); }},
      {"yield_point", [] { sync::yield_point(); }},
      {"pause", [] { sync::pause(); }},
      {"now", [] { sync::now(); }},
  };
  for (const auto& [name, operation] : operations) {
    const uint64_t before = controlled::steps();
    operation();
    INFO(name);
    CHECK(controlled::steps() > before);
  }
}

TEST_CASE("controlled: virtual time costs nothing and wakes sleepers in order") {
  controlled::for_each_schedule(20, [](const auto&) {
    std::vector<int> order;
    const auto before = sync::now();
    on_threads(3, [&](int role) {
      sync::sleep_for(std::chrono::hours(3 - role));
      order.push_back(role);
    });
    CHECK(order == std::vector<int>{2, 1, 0});
    CHECK(sync::now() - before >= 3h);
  });
}

TEST_CASE("controlled: begin waits until the other threads are blocked") {
  sync::Mutex mutex;
  sync::CondVar changed;
  bool stop = false;
  int progress = 0;
  sync::Thread worker("pool", [&] {
    for (; progress < 1000; ++progress) sync::yield_point();
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return stop; });
  });
  controlled::begin({7, Schedule::pct, 3});
  CHECK(progress == 1000);
  CHECK(controlled::steps() == 0);
  {
    std::lock_guard lock(mutex);
    stop = true;
  }
  changed.notify_all();
  worker.join();
}

TEST_CASE("controlled: a deadlock is reported with names, owners and the seed") {
  const Death death = run_in_fork([] {
    for (uint64_t seed = 1; seed <= 200; ++seed) {
      controlled::begin(controlled::schedule_of_seed(seed));
      controlled::Lock first{"mutex"}, second{"mutex"};  // of no rank
      on_threads(2, [&](int role) {
        std::lock_guard outer(role == 0 ? first : second);
        std::lock_guard inner(role == 0 ? second : first);
      });
    }
  });
  INFO(death.output);
  CHECK(aborted(death));
  CHECK(contains(death.output, "deadlock: no thread can run"));
  CHECK(contains(death.output, "thread \"main\" joins thread \"test-0\""));
  CHECK(contains(death.output, "thread \"test-0\" waits for mutex"));
  CHECK(contains(death.output, "held by \"test-1\""));
  CHECK(contains(death.output, "held by \"test-0\""));
  CHECK(contains(death.output, "HOLDFAST_SCHEDULE_SEED="));
}

TEST_CASE("controlled: a lost wake-up is a deadlock") {
  const Death death = run_in_fork([] {
    for (uint64_t seed = 1; seed <= 500; ++seed) {
      controlled::begin(controlled::schedule_of_seed(seed));
      sync::Mutex mutex;
      sync::CondVar changed;
      sync::Atomic<bool> ready{false};
      on_threads(2, [&](int role) {
        if (role == 0) {
          std::unique_lock lock(mutex);
          changed.wait(lock, [&] { return ready.load(); });
        } else {  // the bug: changes the condition without the lock
          ready.store(true);
          changed.notify_one();
        }
      });
    }
  });
  INFO(death.output);
  CHECK(aborted(death));
  CHECK(contains(death.output, "waits for condition variable"));
}

TEST_CASE("controlled: the child of a fork schedules the forking thread alone") {
  sync::Atomic<bool> stop{false};
  sync::Thread spinner("spinner", [&] {
    while (!stop.load()) sync::pause();
  });
  sync::Thread sleeper("sleeper", [] { sync::sleep_for(1s); });
  const Death child = run_in_fork([] {
    for (int i = 0; i < 1000; ++i) sync::pause();
    sync::Thread("new", [] { sync::sleep_for(2s); }).join();
  });
  CHECK(WIFEXITED(child.status));
  stop.store(true);
  spinner.join();
  sleeper.join();
}

TEST_CASE("controlled: misuse is reported") {
  struct Misuse {
    const char* message;
    std::function<void()> body;
  };
  const Misuse cases[] = {
      {"locks what it already holds",
       [] {
         controlled::Lock mutex{"mutex"};
         mutex.lock();
         mutex.lock();
       }},
      {"unlocks what it does not hold",
       [] {
         controlled::Lock mutex{"mutex"};
         mutex.unlock();
       }},
      {"ended while it held a lock",
       [] {
         sync::Mutex mutex;
         sync::Thread("careless", [&] { mutex.lock(); }).join();
       }},
      {"not a sync::Thread",
       [] {
         sync::Mutex mutex;
         std::thread([&] { mutex.lock(); }).join();
       }},
  };
  for (const Misuse& misuse : cases) {
    const Death death = run_in_fork(misuse.body);
    INFO(misuse.message, " in: ", death.output);
    CHECK(aborted(death));
    CHECK(contains(death.output, misuse.message));
  }
}

TEST_CASE("controlled: the process ends with threads blocked, and exit handlers may join") {
  const Death blocked = run_in_fork([] {
    static sync::Mutex mutex;
    static sync::CondVar never;
    static auto* thread = new sync::Thread("blocked", [] {
      std::unique_lock lock(mutex);
      never.wait(lock, [] { return false; });
    });
    (void)thread;
    sync::sleep_for(1ms);
    std::exit(3);
  });
  CHECK(WIFEXITED(blocked.status));
  CHECK(WEXITSTATUS(blocked.status) == 3);

  const Death joined = run_in_fork([] {
    static sync::Mutex mutex;
    static sync::CondVar changed;
    static bool stop = false;
    static sync::Thread* thread = new sync::Thread("joined late", [] {
      std::unique_lock lock(mutex);
      changed.wait(lock, [] { return stop; });
      fputs("stopped;", stderr);
    });
    std::atexit([] {
      {
        std::lock_guard lock(mutex);
        stop = true;
      }
      changed.notify_all();
      thread->join();
      fputs("joined;", stderr);
    });
    std::exit(4);
  });
  CHECK(WIFEXITED(joined.status));
  CHECK(WEXITSTATUS(joined.status) == 4);
  CHECK(joined.output == "stopped;joined;");
}

#endif  // HOLDFAST_CONTROLLED
