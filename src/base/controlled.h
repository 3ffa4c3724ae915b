// Schedules that replay.
//
// In the `controlled` preset (HOLDFAST_CONTROLLED=1) exactly one registered thread runs at any
// time. At every operation of base/sync.h the running thread may pass a baton to another runnable
// thread, chosen by a generator that is seeded by the test: a concurrency bug is then a seed, and
// the same seed gives the same interleaving. In every other preset the functions here exist and do
// nothing, so that a test is written once.
//
// Rules for code under control:
//  - Threads are sync::Threads. The first thread that touches a sync object is registered as
//    "main"; any other foreign thread (std::thread, a library's thread) that touches one aborts the
//    process with a message.
//  - A thread that blocks in something else than a sync object (a pipe, a std::mutex) keeps the
//    baton while it does.
//  - Decisions must not depend on what a seed cannot replay: addresses, real time, hash order of
//    pointers.
//
// Strategies:
//  - random: at each point, switch to another runnable thread with a probability that the seed
//    draws from 1/2, 1/4, 1/16 and 1/64; the new thread is drawn uniformly.
//  - pct (probabilistic concurrency testing): each thread has a random priority and the highest
//    runnable one runs; at depth-1 steps the running thread falls below all others. The length of
//    the run is not known beforehand, and a seed must replay by itself, so these steps are drawn
//    log-uniformly from 4 ... 16383: short and long scenarios get their share. A thread that says
//    it makes no progress (sync::pause), or that takes 10,000 steps in a row, falls as well.
// Both inject what the standard allows: spurious wake-ups, weak compare-exchange failures,
// notify_one to any waiter.
//
// Time is virtual (sync::now): each step advances it by 100 ns, and when no thread can run it jumps
// to the earliest deadline. Sleeping costs nothing. Memory orders weaker than sequential
// consistency are ThreadSanitizer's job, not this one's.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#ifndef HOLDFAST_CONTROLLED
#define HOLDFAST_CONTROLLED 0
#endif

// Under a name of our own: g++ declares `__dso_handle` itself once it has seen a static object.
extern "C" __attribute__((visibility("hidden"))) void* holdfast_dso_handle __asm__("__dso_handle");

namespace holdfast::controlled {

// Whether this build schedules its threads itself.
constexpr bool enabled() { return HOLDFAST_CONTROLLED != 0; }

struct Schedule {
  enum Strategy { random, pct };
  uint64_t seed = 1;
  Strategy strategy = random;
  int depth = 3;  // pct only: the number of ordering constraints looked for
};

// The schedule that for_each_schedule uses for a seed: even seeds run pct with depths 2 to 4, odd
// ones random. A function of the seed alone, so that a seed is enough to replay.
inline Schedule schedule_of_seed(uint64_t seed) {
  return Schedule{seed, seed % 2 == 0 ? Schedule::pct : Schedule::random,
                  2 + static_cast<int>((seed / 2) % 3)};
}

#if HOLDFAST_CONTROLLED

// Starts a schedule: lets the other threads run until each is blocked, then reseeds and sets the
// step counter to zero. Threads that survive from an earlier schedule (a worker pool) keep their
// order; they must be in the same state for the same seed to give the same interleaving. Called by
// one thread, between scenarios.
void begin(Schedule schedule);

// Scheduling points passed since begin().
uint64_t steps();

// A hash of every switch (step, thread) since begin(): equal for equal interleavings.
uint64_t fingerprint();

// The current schedule, for failure messages: `INFO(controlled::describe())`.
std::string describe();

#else

inline void begin(Schedule) {}
inline uint64_t steps() { return 0; }
inline uint64_t fingerprint() { return 0; }
inline std::string describe() { return "schedule: native, not controlled"; }

#endif

// Runs `scenario(schedule)` under `count` schedules, or `count_native` times where scheduling is
// native. A scenario joins the threads it starts. HOLDFAST_TEST_LONG=1 runs 20 times as many
// schedules. HOLDFAST_SCHEDULE_SEED=n runs that seed only, HOLDFAST_SCHEDULE_STRATEGY=random|pct
// overrides its strategy. When the scenario throws, the schedule is printed to stderr; checks that
// do not throw should use `INFO(controlled::describe())`.
template <class Scenario>
void for_each_schedule(int count, Scenario scenario, int count_native = 3) {
  uint64_t first = 1;
  uint64_t last = static_cast<uint64_t>(enabled() ? count : count_native);
  if (const char* is_long = std::getenv("HOLDFAST_TEST_LONG"); enabled() && is_long && *is_long) {
    last *= 20;
  }
  if (const char* seed = std::getenv("HOLDFAST_SCHEDULE_SEED"); seed && *seed) {
    first = last = std::strtoull(seed, nullptr, 10);
  }
  const char* strategy = std::getenv("HOLDFAST_SCHEDULE_STRATEGY");
  for (uint64_t seed = first; seed <= last; ++seed) {
    Schedule schedule = schedule_of_seed(seed);
    if (strategy && *strategy) {
      schedule.strategy = std::strcmp(strategy, "pct") == 0 ? Schedule::pct : Schedule::random;
    }
    begin(schedule);
    try {
      scenario(static_cast<const Schedule&>(schedule));
    } catch (...) {
      std::fprintf(stderr, "[controlled] scenario failed; %s\n", describe().c_str());
      throw;
    }
  }
}

#if HOLDFAST_CONTROLLED

// ---- What base/sync.h is made of. Nothing else calls these. ----

struct ThreadRecord;  // one registered thread; owned by the scheduler
using TimePoint = std::chrono::steady_clock::time_point;

// A scheduling point: returns when the calling thread is scheduled again.
void point();
// The same for a thread that makes no progress until another one runs: always switches when another
// can run.
void point_without_progress();
// True once in `n`, drawn from the schedule: for the failures that the standard allows.
bool one_in(uint32_t n);

TimePoint virtual_now();
void sleep_until(TimePoint deadline);

// A lock whose owner is scheduler state: a thread that waits for it is not runnable. `kind` is a
// word for messages.
class Lock {
 public:
  constexpr explicit Lock(const char* kind) noexcept : kind_(kind) {}
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;
  void lock();
  bool try_lock();
  void unlock();

 private:
  friend class WaitList;
  friend class Scheduler;  // reads the owner for its reports
  void acquire();          // the parts of lock and unlock that are no scheduling point
  void release();
  const char* kind_;
  ThreadRecord* owner_ = nullptr;
  uint32_t waiters_ = 0;
};

// The waiters of a condition variable. The threads themselves know what they wait for, so it holds
// nothing but an address.
class WaitList {
 public:
  constexpr WaitList() noexcept = default;
  WaitList(const WaitList&) = delete;
  WaitList& operator=(const WaitList&) = delete;
  // Releases `held`, waits, takes it again. False when the deadline passed first. May wake without
  // a reason.
  bool wait(Lock& held, const TimePoint* deadline);
  void notify(bool all);
};

// The life of a thread, in order. The creator registers (so that order does not depend on the
// system), then starts the system's thread, or forgets the record when that fails. The new thread
// enters first of all: it returns when the thread is scheduled, and leaves by itself after the last
// destructor of a thread_local object and the last at_thread_exit callback.
ThreadRecord* register_thread(const std::string& name);
void forget_thread(ThreadRecord* record);
void enter_thread(ThreadRecord* record);
// Waits until the thread has left. The record is gone afterwards.
void join_thread(ThreadRecord* record);

#endif

}  // namespace holdfast::controlled
