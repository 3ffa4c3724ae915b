#include "base/controlled.h"

#if HOLDFAST_CONTROLLED

#include <cxxabi.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <vector>

namespace holdfast::controlled {
namespace {

constexpr auto time_per_step = std::chrono::nanoseconds(100);
constexpr auto time_per_fruitless_step = std::chrono::microseconds(1);
constexpr TimePoint never = TimePoint::max();
constexpr uint32_t steps_before_demotion = 10'000;  // pct: a loop that waits without sync::pause
constexpr int quiescing_rounds = 1'000;  // bounds begin() when another thread never blocks
constexpr uint64_t initial_priorities = uint64_t{1} << 63;

// splitmix64: small, fast, and good from any seed.
class Generator {
 public:
  explicit Generator(uint64_t seed) : state_(seed * 0x2545F4914F6CDD1DULL + 1) {}
  uint64_t next() {
    uint64_t z = state_ += 0x9E3779B97F4A7C15ULL;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    return z ^ (z >> 31);
  }
  uint64_t below(uint64_t bound) { return next() % bound; }

 private:
  uint64_t state_;
};

// The right to run, given to one thread. Handing it over also hands over the memory: what the giver
// wrote, the taker sees.
class Baton {
 public:
  void give() {
    if (state_.exchange(given, std::memory_order_acq_rel) == asleep) {
      syscall(SYS_futex, &state_, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
    }
  }
  void take() {
    uint32_t expected = none;
    if (state_.compare_exchange_strong(expected, asleep, std::memory_order_acq_rel)) {
      while (state_.load(std::memory_order_acquire) == asleep) {
        syscall(SYS_futex, &state_, FUTEX_WAIT_PRIVATE, asleep, nullptr, nullptr, 0);
      }
    }
    state_.store(none, std::memory_order_release);
  }

 private:
  enum : uint32_t { none, given, asleep };
  std::atomic<uint32_t> state_{none};
};

}  // namespace

struct ThreadRecord {
  enum State { runnable, blocked, finished };
  enum Reason { nothing, lock, notification, thread_end, time };

  std::string name;
  Baton baton;
  State state = runnable;
  Reason reason = nothing;
  const void* waits_for = nullptr;  // a Lock, a WaitList or a ThreadRecord, by reason
  TimePoint deadline = never;
  bool timed_out = false;
  uint64_t priority = 0;    // pct: the highest runnable one runs
  uint32_t locks_held = 0;  // a thread may not end with any
};

namespace {

constinit thread_local ThreadRecord* current_record = nullptr;
std::atomic<bool> main_is_registered{false};

}  // namespace

// Every member belongs to the thread that holds the baton; there is no lock. Never destroyed:
// static destructors and atexit handlers may still join threads, and threads that are blocked when
// the process ends stay blocked.
class Scheduler {
 public:
  static Scheduler& instance() {
    static Scheduler* scheduler = new Scheduler;
    return *scheduler;
  }

  // The calling thread's record. Registers the process's first thread, rejects foreign ones.
  static ThreadRecord* self() {
    if (!current_record) [[unlikely]]
      instance().register_first_thread();
    return current_record;
  }

  void begin(const Schedule& schedule) {
    ThreadRecord* caller = self();
    quiescing_for_ = caller;
    for (int round = 0; runnable_count_ > 1 && round < quiescing_rounds; ++round) {
      switch_to(caller, choose(caller));
    }
    quiescing_for_ = nullptr;
    seed(schedule);
  }

  void point(ThreadRecord* caller) {
    ++steps_;
    advance(time_per_step);
    if (quiescing_for_) return;
    if (schedule_.strategy == Schedule::random) {
      if (runnable_count_ > 1 && (generator_.next() & switch_mask_) == 0) {
        switch_to(caller, choose(caller));
      }
      return;
    }
    if (++steps_since_switch_ > steps_before_demotion) demote(caller);
    if (next_change_ < changes_.size() && steps_ >= changes_[next_change_]) {
      ++next_change_;
      demote(caller);
    }
    if (priorities_changed_) {
      priorities_changed_ = false;
      switch_to(caller, choose(nullptr));
    }
  }

  void point_without_progress(ThreadRecord* caller) {
    ++steps_;
    advance(time_per_fruitless_step);
    if (runnable_count_ == 1 && earliest_deadline_ != never) jump_to_earliest_deadline();
    if (runnable_count_ == 1) return;
    demote(caller);
    switch_to(caller, choose(caller));
  }

  // Makes the caller wait until wake() or the deadline. Returns false at the deadline.
  bool block(ThreadRecord* caller, ThreadRecord::Reason reason, const void* waits_for,
             TimePoint deadline = never) {
    caller->reason = reason;
    caller->waits_for = waits_for;
    caller->deadline = deadline;
    caller->timed_out = false;
    earliest_deadline_ = std::min(earliest_deadline_, deadline);
    caller->state = ThreadRecord::blocked;
    --runnable_count_;
    switch_to(caller, next_after_block());
    return !caller->timed_out;
  }

  void wake_all(const void* waits_for) {
    for (ThreadRecord* thread : threads_) {
      if (is_waiting(thread, waits_for)) make_runnable(thread);
    }
  }

  void wake_one(const void* waits_for) {
    uint64_t waiting = static_cast<uint64_t>(
        std::count_if(threads_.begin(), threads_.end(),
                      [&](ThreadRecord* thread) { return is_waiting(thread, waits_for); }));
    if (waiting == 0) return;
    uint64_t chosen = generator_.below(waiting);
    for (ThreadRecord* thread : threads_) {
      if (is_waiting(thread, waits_for) && chosen-- == 0) return make_runnable(thread);
    }
  }

  ThreadRecord* add(const std::string& name) {
    auto record = std::make_unique<ThreadRecord>();
    record->name = name;
    record->priority = initial_priorities | generator_.next();
    threads_.push_back(record.get());
    ++runnable_count_;
    priorities_changed_ = true;
    return record.release();
  }

  void remove(ThreadRecord* thread) {
    threads_.erase(std::find(threads_.begin(), threads_.end(), thread));
    if (thread->state == ThreadRecord::runnable) --runnable_count_;
    thread->state = ThreadRecord::finished;
  }

  // The end of a registered thread: the baton goes on and does not come back.
  void leave(ThreadRecord* caller) {
    if (caller->locks_held != 0) fail(caller, "a thread ended while it held a lock");
    remove(caller);
    wake_all(caller);
    current_record = nullptr;
    // When the last thread has left, its process is ending or its joiner is a foreign thread:
    // nobody to run.
    if (!threads_.empty()) pass_baton(next_after_block());
  }

  // In the child of a fork only the thread that forked exists.
  void after_fork() {
    threads_.clear();
    runnable_count_ = 0;
    earliest_deadline_ = never;
    if (!current_record) {
      main_is_registered = false;
      return;
    }
    threads_.push_back(current_record);
    runnable_count_ = 1;
  }

  [[noreturn]] void fail(const ThreadRecord* caller, const char* what) const {
    std::string report = std::string("[controlled] ") + what;
    if (caller) report += " (thread \"" + caller->name + "\")";
    report += "\n";
    for (const ThreadRecord* thread : threads_) {
      report += "  thread \"" + thread->name + "\" " + describe(*thread) + "\n";
    }
    report += "  " + describe() + "\n";
    std::fputs(report.c_str(), stderr);
    std::fflush(stderr);
    std::abort();
  }

  std::string describe() const {
    const std::string strategy = schedule_.strategy == Schedule::pct ? "pct" : "random";
    std::string text = "schedule: seed " + std::to_string(schedule_.seed) + ", " + strategy;
    if (schedule_.strategy == Schedule::pct) text += ", depth " + std::to_string(schedule_.depth);
    return text + ", step " + std::to_string(steps_) +
           "; replay with HOLDFAST_SCHEDULE_SEED=" + std::to_string(schedule_.seed) +
           " HOLDFAST_SCHEDULE_STRATEGY=" + strategy;
  }

  bool one_in(uint32_t n) { return !quiescing_for_ && generator_.below(n) == 0; }
  TimePoint now() const { return now_; }
  uint64_t steps() const { return steps_; }
  uint64_t fingerprint() const { return fingerprint_; }

 private:
  Scheduler() : generator_(1) {
    const char* seed_text = std::getenv("HOLDFAST_SCHEDULE_SEED");
    seed(schedule_of_seed(seed_text && *seed_text ? std::strtoull(seed_text, nullptr, 10) : 1));
    pthread_atfork(nullptr, nullptr, [] { instance().after_fork(); });
  }

  void register_first_thread() {
    if (main_is_registered.exchange(true)) {
      char name[16] = "?";
      pthread_getname_np(pthread_self(), name, sizeof(name));
      std::fprintf(stderr,
                   "[controlled] a thread that is not a sync::Thread (\"%s\") used a sync object; "
                   "start it with sync::Thread\n",
                   name);
      std::abort();
    }
    current_record = add("main");
    // The process's main thread stays registered while exit() runs; another one leaves when it
    // ends.
    if (gettid() != getpid()) leave_at_thread_exit(current_record);
  }

 public:
  static void leave_at_thread_exit(ThreadRecord* record) {
    abi::__cxa_thread_atexit(
        [](void* leaving) { instance().leave(static_cast<ThreadRecord*>(leaving)); }, record,
        &holdfast_dso_handle);
  }

 private:
  void seed(const Schedule& schedule) {
    schedule_ = schedule;
    generator_ = Generator(schedule.seed * 2 + (schedule.strategy == Schedule::pct ? 1 : 0));
    steps_ = 0;
    fingerprint_ = 0;
    steps_since_switch_ = 0;
    lowest_priority_ = initial_priorities - 1;
    constexpr uint64_t switch_masks[] = {1, 3, 15, 63};
    switch_mask_ = switch_masks[generator_.below(4)];
    changes_.clear();
    for (int i = 1; i < schedule.depth; ++i) {
      const uint64_t magnitude = uint64_t{4} << generator_.below(12);
      changes_.push_back(magnitude + generator_.below(magnitude));
    }
    std::sort(changes_.begin(), changes_.end());
    next_change_ = 0;
    for (ThreadRecord* thread : threads_) {
      thread->priority = initial_priorities | generator_.next();
    }
    priorities_changed_ = true;
  }

  static bool is_waiting(const ThreadRecord* thread, const void* waits_for) {
    return thread->state == ThreadRecord::blocked && thread->waits_for == waits_for;
  }

  void make_runnable(ThreadRecord* thread) {
    thread->state = ThreadRecord::runnable;
    thread->reason = ThreadRecord::nothing;
    thread->waits_for = nullptr;
    thread->deadline = never;
    ++runnable_count_;
    priorities_changed_ = true;
  }

  // Below every priority given so far.
  void demote(ThreadRecord* thread) {
    thread->priority = lowest_priority_--;
    steps_since_switch_ = 0;
    priorities_changed_ = true;
  }

  void advance(std::chrono::nanoseconds elapsed) {
    now_ += elapsed;
    if (now_ >= earliest_deadline_) [[unlikely]]
      fire_deadlines();
  }

  // earliest_deadline_ may be that of a thread that was woken before; it is never too late.
  void fire_deadlines() {
    earliest_deadline_ = never;
    for (ThreadRecord* thread : threads_) {
      if (thread->state != ThreadRecord::blocked) continue;
      if (thread->deadline <= now_) {
        make_runnable(thread);
        thread->timed_out = true;
      } else {
        earliest_deadline_ = std::min(earliest_deadline_, thread->deadline);
      }
    }
  }

  // Returns false when nobody waits for a time.
  bool jump_to_earliest_deadline() {
    earliest_deadline_ = never;
    for (const ThreadRecord* thread : threads_) {
      if (thread->state == ThreadRecord::blocked) {
        earliest_deadline_ = std::min(earliest_deadline_, thread->deadline);
      }
    }
    if (earliest_deadline_ == never) return false;
    now_ = std::max(now_, earliest_deadline_);
    fire_deadlines();
    return true;
  }

  ThreadRecord* next_after_block() {
    if (runnable_count_ == 0 && !jump_to_earliest_deadline()) {
      fail(nullptr, "deadlock: no thread can run");
    }
    return choose(nullptr);
  }

  // A runnable thread, but not `excluded`; the strategy's choice. One must exist.
  ThreadRecord* choose(const ThreadRecord* excluded) {
    if (!excluded && runnable_count_ > 1) excluded = quiescing_for_;
    ThreadRecord* best = nullptr;
    const bool excluded_counts = excluded && excluded->state == ThreadRecord::runnable;
    const uint64_t candidates = runnable_count_ - (excluded_counts ? 1 : 0);
    uint64_t chosen = schedule_.strategy == Schedule::random ? generator_.below(candidates) : 0;
    for (ThreadRecord* thread : threads_) {
      if (thread->state != ThreadRecord::runnable || thread == excluded) continue;
      if (schedule_.strategy == Schedule::random) {
        if (chosen-- == 0) return thread;
      } else if (!best || thread->priority > best->priority) {
        best = thread;
      }
    }
    return best;
  }

  void pass_baton(ThreadRecord* next) {
    const auto position = std::find(threads_.begin(), threads_.end(), next) - threads_.begin();
    fingerprint_ = (fingerprint_ ^ (steps_ << 12) ^ static_cast<uint64_t>(position + 1)) *
                   0x9E3779B97F4A7C15ULL;
    fingerprint_ ^= fingerprint_ >> 29;
    steps_since_switch_ = 0;
    next->baton.give();
  }

  void switch_to(ThreadRecord* caller, ThreadRecord* next) {
    if (next == caller) return;
    pass_baton(next);
    caller->baton.take();
  }

  Schedule schedule_;
  Generator generator_;
  std::vector<ThreadRecord*> threads_;  // in order of registration; those that have not ended
  uint64_t runnable_count_ = 0;
  uint64_t steps_ = 0;
  uint64_t fingerprint_ = 0;
  TimePoint now_{std::chrono::hours(1)};
  TimePoint earliest_deadline_ = never;
  ThreadRecord* quiescing_for_ = nullptr;  // inside begin(): everyone else runs until blocked

  uint64_t switch_mask_ = 1;  // random: switch when these bits of a draw are zero

  std::vector<uint64_t> changes_;  // pct: the steps at which the running thread falls, ascending
  size_t next_change_ = 0;
  uint64_t lowest_priority_ = initial_priorities - 1;
  uint32_t steps_since_switch_ = 0;
  bool priorities_changed_ = false;  // pct: the running thread may not be the highest any more

  static std::string describe(const ThreadRecord& thread) {
    if (thread.state == ThreadRecord::runnable) return "can run";
    char address[32];
    std::snprintf(address, sizeof(address), "%p", thread.waits_for);
    std::string text;
    switch (thread.reason) {
      case ThreadRecord::lock: {
        const Lock& lock = *static_cast<const Lock*>(thread.waits_for);
        text = std::string("waits for ") + lock.kind_ + " " + address;
        if (lock.owner_) text += " held by \"" + lock.owner_->name + "\"";
        return text;
      }
      case ThreadRecord::notification:
        text = std::string("waits for condition variable ") + address;
        break;
      case ThreadRecord::thread_end:
        return "joins thread \"" + static_cast<const ThreadRecord*>(thread.waits_for)->name + "\"";
      case ThreadRecord::time:
        return "sleeps";
      case ThreadRecord::nothing:
        break;
    }
    return thread.deadline == never ? text : text + ", with a deadline";
  }
};

void begin(Schedule schedule) { Scheduler::instance().begin(schedule); }
uint64_t steps() { return Scheduler::instance().steps(); }
uint64_t fingerprint() { return Scheduler::instance().fingerprint(); }
std::string describe() { return Scheduler::instance().describe(); }

void point() { Scheduler::instance().point(Scheduler::self()); }
void point_without_progress() { Scheduler::instance().point_without_progress(Scheduler::self()); }

bool one_in(uint32_t n) {
  Scheduler::self();
  return Scheduler::instance().one_in(n);
}

TimePoint virtual_now() {
  point();
  return Scheduler::instance().now();
}

void sleep_until(TimePoint deadline) {
  point();
  Scheduler& scheduler = Scheduler::instance();
  if (scheduler.now() < deadline) {
    scheduler.block(Scheduler::self(), ThreadRecord::time, nullptr, deadline);
  }
}

void Lock::acquire() {
  ThreadRecord* self = Scheduler::self();
  Scheduler& scheduler = Scheduler::instance();
  if (owner_ == self) scheduler.fail(self, "a thread locks what it already holds");
  while (owner_) {
    ++waiters_;
    scheduler.block(self, ThreadRecord::lock, this);
    --waiters_;
  }
  owner_ = self;
  ++self->locks_held;
}

void Lock::release() {
  ThreadRecord* self = Scheduler::self();
  Scheduler& scheduler = Scheduler::instance();
  if (owner_ != self) scheduler.fail(self, "a thread unlocks what it does not hold");
  owner_ = nullptr;
  --self->locks_held;
  if (waiters_ != 0) scheduler.wake_all(this);
}

void Lock::lock() {
  point();
  acquire();
}

bool Lock::try_lock() {
  point();
  if (owner_) return false;
  acquire();
  return true;
}

// The point comes after: what the caller does next may then be overtaken by the lock's next owner.
// `this` may be gone by then.
void Lock::unlock() {
  release();
  point();
}

bool WaitList::wait(Lock& held, const TimePoint* deadline) {
  point();  // between the caller's look at its condition and the wait: a wake-up that takes no lock
            // can be lost here
  Scheduler& scheduler = Scheduler::instance();
  if (scheduler.one_in(32)) {
    held.unlock();
    held.acquire();
    return true;
  }
  if (deadline && *deadline <= scheduler.now()) {
    held.unlock();
    held.acquire();
    return false;
  }
  held.release();
  const bool notified = scheduler.block(Scheduler::self(), ThreadRecord::notification, this,
                                        deadline ? *deadline : never);
  held.acquire();
  return notified;
}

void WaitList::notify(bool all) {
  point();
  if (all) {
    Scheduler::instance().wake_all(this);
  } else {
    Scheduler::instance().wake_one(this);
  }
  point();
}

ThreadRecord* register_thread(const std::string& name) {
  Scheduler::self();
  return Scheduler::instance().add(name);
}

void forget_thread(ThreadRecord* record) {
  Scheduler::instance().remove(record);
  delete record;
}

void enter_thread(ThreadRecord* record) {
  record->baton.take();
  current_record = record;
  // Registered first, so it runs last.
  Scheduler::leave_at_thread_exit(record);
}

void join_thread(ThreadRecord* record) {
  if (!record) return;
  point();
  while (record->state != ThreadRecord::finished) {
    Scheduler::instance().block(Scheduler::self(), ThreadRecord::thread_end, record);
  }
  delete record;
}

}  // namespace holdfast::controlled

#endif  // HOLDFAST_CONTROLLED
