// base/sync.h, base/ref.h, and under the `controlled` preset the scheduler itself: that it finds
// planted bugs, replays them from their seed, and reports a deadlock by name.
#include <doctest/doctest.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <memory>
#include <string>
#include <system_error>
#include <thread>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/ref.h"
#include "base/sync.h"

using namespace holdfast;
using namespace std::chrono_literals;

namespace {

constexpr int rounds = controlled::enabled() ? 20 : 2000;

// Runs `body(i)` on `count` threads at once.
void on_threads(int count, const std::function<void(int)>& body) {
  std::vector<sync::Thread> threads;
  for (int i = 0; i < count; ++i) {
    threads.emplace_back("worker-" + std::to_string(i), [&body, i] { body(i); });
  }
  for (sync::Thread& thread : threads) thread.join();
}

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

namespace {

struct Counted : RefCounted {
  explicit Counted(sync::Atomic<int>& live) : alive(live) { alive.fetch_add(1); }
  ~Counted() { alive.fetch_sub(1); }
  sync::Atomic<int>& alive;
  int payload = 0;
};

// A type with an end of its own.
struct Pooled : RefCounted {
  void release() {
    if (drop_reference()) ++returned;
  }
  int returned = 0;
};

}  // namespace

TEST_CASE("ref: copies share, moves do not count, the last owner destroys") {
  sync::Atomic<int> live{0};
  Ref<Counted> first = make_ref<Counted>(live);
  CHECK(first->is_unique());
  Ref<Counted> second = first;
  CHECK(first->reference_count() == 2);
  CHECK(first == second);
  Ref<const Counted> third = std::move(second);
  CHECK_FALSE(second);
  CHECK(second == nullptr);
  CHECK(third == first.get());
  CHECK(first->reference_count() == 2);
  third.reset();
  CHECK(first->is_unique());

  first = *&first;
  CHECK(first->is_unique());
  Counted* raw = first.detach();
  CHECK_FALSE(first);
  CHECK(live.load() == 1);
  CHECK(raw->retain_unless_gone());
  CHECK(raw->reference_count() == 2);
  first = Ref<Counted>::adopt(raw);
  Ref<Counted> adopted = Ref<Counted>::adopt(raw);
  Ref<Counted> stolen = first.steal();
  CHECK_FALSE(first);
  CHECK((*stolen).payload == 0);
  CHECK(std::unordered_set<Ref<Counted>>{stolen, adopted}.size() == 1);
  stolen = nullptr;
  CHECK(live.load() == 1);
  adopted = Ref<Counted>();
  CHECK(live.load() == 0);

  Pooled pooled;
  {
    Ref<Pooled> own = Ref<Pooled>::adopt(&pooled);
  }
  CHECK(pooled.returned == 1);
  CHECK_FALSE(pooled.retain_unless_gone());
}

TEST_CASE("ref: the last of several threads destroys, once, and sees what the others wrote") {
  struct Shared : RefCounted {
    explicit Shared(std::vector<int>& sums) : ended(sums) {}
    ~Shared() { ended.push_back(written[0] + written[1] + written[2] + written[3]); }
    std::vector<int>& ended;
    int written[4] = {};
  };
  controlled::for_each_schedule(
      40,
      [](const auto&) {
        std::vector<int> ended;
        std::vector<Ref<Shared>> owners(4, make_ref<Shared>(ended));
        on_threads(4, [&](int role) {
          Ref<Shared> own = std::move(owners[static_cast<size_t>(role)]);
          for (int i = 0; i < rounds; ++i) Ref<Shared> copy = own;
          own->written[role] = 1 << role;
        });
        INFO(controlled::describe());
        CHECK(ended == std::vector<int>{15});
      },
      /*count_native=*/50);
}

#if HOLDFAST_CONTROLLED

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

// What a forked child prints before it ends, and how it ended. A child has only the forking thread.
struct Death {
  std::string output;
  int status = 0;
};

Death run_in_child(const std::function<void()>& body) {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  std::cout.flush();
  fflush(nullptr);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    signal(SIGABRT, SIG_DFL);
    dup2(ends[1], STDERR_FILENO);
    close(ends[0]);
    close(ends[1]);
    alarm(30);
    body();
    _exit(0);
  }
  close(ends[1]);
  Death death;
  char buffer[4096];
  for (ssize_t n; (n = read(ends[0], buffer, sizeof(buffer))) > 0;) {
    death.output.append(buffer, static_cast<size_t>(n));
  }
  close(ends[0]);
  REQUIRE(waitpid(child, &death.status, 0) == child);
  return death;
}

bool aborted(const Death& death) {
  return WIFSIGNALED(death.status) && WTERMSIG(death.status) == SIGABRT;
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
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
  const Death death = run_in_child([] {
    for (uint64_t seed = 1; seed <= 200; ++seed) {
      controlled::begin(controlled::schedule_of_seed(seed));
      sync::Mutex first, second;
      on_threads(2, [&](int role) {
        std::lock_guard outer(role == 0 ? first : second);
        std::lock_guard inner(role == 0 ? second : first);
      });
    }
  });
  INFO(death.output);
  CHECK(aborted(death));
  CHECK(contains(death.output, "deadlock: no thread can run"));
  CHECK(contains(death.output, "thread \"main\" joins thread \"worker-0\""));
  CHECK(contains(death.output, "thread \"worker-0\" waits for mutex"));
  CHECK(contains(death.output, "held by \"worker-1\""));
  CHECK(contains(death.output, "held by \"worker-0\""));
  CHECK(contains(death.output, "HOLDFAST_SCHEDULE_SEED="));
}

TEST_CASE("controlled: a lost wake-up is a deadlock") {
  const Death death = run_in_child([] {
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
  const Death child = run_in_child([] {
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
         sync::Mutex mutex;
         mutex.lock();
         mutex.lock();
       }},
      {"unlocks what it does not hold",
       [] {
         sync::Mutex mutex;
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
    const Death death = run_in_child(misuse.body);
    INFO(misuse.message, " in: ", death.output);
    CHECK(aborted(death));
    CHECK(contains(death.output, misuse.message));
  }
}

TEST_CASE("controlled: the process ends with threads blocked, and exit handlers may join") {
  const Death blocked = run_in_child([] {
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

  const Death joined = run_in_child([] {
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
