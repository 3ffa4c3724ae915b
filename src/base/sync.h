// Threads, locks, condition variables and atomics. Everything in exec and in the CPU device that
// waits, wakes or is shared between threads uses these types and never the standard ones, so that
// one compile-time policy decides who runs:
//  - native: the standard library, at no cost;
//  - HOLDFAST_CONTROLLED: each operation is a scheduling point of base/controlled.h, and schedules
//    replay from a seed.
// The two policies have the same interface; under both, HOLDFAST_CHECKS checks the order of locks
// (base/lock_order.h). Mutex, SpinLock and Atomic are constant-initialised:
// static ones need no order.
#pragma once

#include <cxxabi.h>
#include <pthread.h>
#include <sched.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <source_location>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>

#include "base/controlled.h"
#include "base/lock_order.h"

namespace holdfast::sync {

using Clock = std::chrono::steady_clock;

// The time that deadlines are measured in: the steady clock, or the scheduler's virtual time. Never
// call Clock::now().
inline Clock::time_point now() {
#if HOLDFAST_CONTROLLED
  return controlled::virtual_now();
#else
  return Clock::now();
#endif
}

// A place where the scheduler under test may switch, for code whose shared state is not in sync
// objects.
inline void yield_point() {
#if HOLDFAST_CONTROLLED
  controlled::point();
#endif
}

// For the body of a loop that waits for another thread: relaxes the core, or lets another thread
// run.
inline void pause() {
#if HOLDFAST_CONTROLLED
  controlled::point_without_progress();
#elif defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield" ::: "memory");
#endif
}

template <class Rep, class Period>
void sleep_for(std::chrono::duration<Rep, Period> duration) {
#if HOLDFAST_CONTROLLED
  controlled::sleep_until(now() + std::chrono::ceil<Clock::duration>(duration));
#else
  std::this_thread::sleep_for(duration);
#endif
}

// Runs `callback(argument)` once, when the calling thread ends: in reverse order of registration,
// and in one order with the destructors of thread_local objects (those constructed earlier are
// still alive). A callback may register another one. On the main thread it runs in exit(), before
// atexit handlers and static destructors. Under control the thread is still scheduled: callbacks
// may use every sync object.
inline void at_thread_exit(void (*callback)(void*), void* argument) {
  abi::__cxa_thread_atexit(callback, argument, &holdfast_dso_handle);
}

// Locks are declared with their rank (base/lock_order.h), but for leaves. try_lock may be called in
// any order: it does not wait.
class Mutex : private Ranked {
 public:
  using Where = std::source_location;
  constexpr Mutex(Where where = Where::current()) noexcept : Mutex(Rank::leaf, where) {}
  constexpr explicit Mutex(Rank rank, Where where = Where::current()) noexcept
      : Ranked(rank, where) {}

  void lock() {
    check_order();
    mutex_.lock();
    note_taken();
  }
  bool try_lock() {
    if (!mutex_.try_lock()) return false;
    note_taken();
    return true;
  }
  void unlock() {
    note_released();
    mutex_.unlock();
  }

 private:
  friend class CondVar;
#if HOLDFAST_CONTROLLED
  controlled::Lock mutex_{"mutex"};
#else
  std::mutex mutex_;
#endif
};

// One byte, for critical sections of a few instructions that neither allocate, wait nor call out.
class SpinLock : private Ranked {
 public:
  using Where = std::source_location;
  constexpr SpinLock(Where where = Where::current()) noexcept : SpinLock(Rank::leaf, where) {}
  constexpr explicit SpinLock(Rank rank, Where where = Where::current()) noexcept
      : Ranked(rank, where) {}

  void lock() noexcept {
    check_order();
    take();
    note_taken();
  }
  bool try_lock() noexcept {
    if (!try_take()) return false;
    note_taken();
    return true;
  }
  void unlock() noexcept {
    note_released();
    release();
  }

 private:
#if HOLDFAST_CONTROLLED
  void take() noexcept { lock_.lock(); }
  bool try_take() noexcept { return lock_.try_lock(); }
  void release() noexcept { lock_.unlock(); }
  controlled::Lock lock_{"spin lock"};
#else
  // After about a microsecond the owner has probably lost its core: give it ours.
  static constexpr int spins_before_yield = 64;

  void take() noexcept {
    if (held_.exchange(true, std::memory_order_acquire)) take_contended();
  }
  bool try_take() noexcept {
    return !held_.load(std::memory_order_relaxed) &&
           !held_.exchange(true, std::memory_order_acquire);
  }
  void release() noexcept { held_.store(false, std::memory_order_release); }

  __attribute__((noinline)) void take_contended() noexcept {
    int spins = 0;
    do {
      while (held_.load(std::memory_order_relaxed)) {
        if (++spins < spins_before_yield) {
          pause();
        } else {
          sched_yield();
        }
      }
    } while (held_.exchange(true, std::memory_order_acquire));
  }

  std::atomic<bool> held_{false};
#endif
};
static_assert(HOLDFAST_CHECKS || HOLDFAST_CONTROLLED || sizeof(SpinLock) == 1);

// Waits may wake without a reason: use a predicate, or loop.
class CondVar {
 public:
#if HOLDFAST_CONTROLLED
  constexpr CondVar() noexcept = default;
  void wait(std::unique_lock<Mutex>& lock) {
    Released released(*lock.mutex());
    waiters_.wait(lock.mutex()->mutex_, nullptr);
  }
  void notify_one() noexcept { waiters_.notify(/*all=*/false); }
  void notify_all() noexcept { waiters_.notify(/*all=*/true); }
#else
  CondVar() noexcept = default;
  void wait(std::unique_lock<Mutex>& lock) {
    Released released(*lock.mutex());
    Adopted native(lock);
    condition_.wait(native.lock);
  }
  void notify_one() noexcept { condition_.notify_one(); }
  void notify_all() noexcept { condition_.notify_all(); }
#endif
  CondVar(const CondVar&) = delete;
  CondVar& operator=(const CondVar&) = delete;

  template <class Predicate>
  void wait(std::unique_lock<Mutex>& lock, Predicate predicate) {
    while (!predicate()) wait(lock);
  }

  // Waits until the predicate holds or sync::now() reaches the deadline. Returns the predicate's
  // last value.
  template <class Predicate>
  bool wait_until(std::unique_lock<Mutex>& lock, Clock::time_point deadline, Predicate predicate) {
    while (!predicate()) {
      if (!wait_once_until(lock, deadline)) return predicate();
    }
    return true;
  }

  template <class Rep, class Period, class Predicate>
  bool wait_for(std::unique_lock<Mutex>& lock, std::chrono::duration<Rep, Period> duration,
                Predicate predicate) {
    return wait_until(lock, now() + std::chrono::ceil<Clock::duration>(duration),
                      std::move(predicate));
  }

 private:
  // While the thread waits it does not hold the mutex, which it takes again afterwards.
  struct Released {
    explicit Released(const Mutex& m) : mutex(m) {
      mutex.note_released();
      mutex.check_order();
    }
    ~Released() { mutex.note_taken(); }
    const Mutex& mutex;
  };

#if HOLDFAST_CONTROLLED
  bool wait_once_until(std::unique_lock<Mutex>& lock, Clock::time_point deadline) {
    Released released(*lock.mutex());
    return waiters_.wait(lock.mutex()->mutex_, &deadline);
  }
  controlled::WaitList waiters_;
#else
  // Lends a held Mutex to std::condition_variable, which is faster than condition_variable_any.
  struct Adopted {
    explicit Adopted(std::unique_lock<Mutex>& held) : lock(held.mutex()->mutex_, std::adopt_lock) {}
    ~Adopted() { lock.release(); }
    std::unique_lock<std::mutex> lock;
  };
  bool wait_once_until(std::unique_lock<Mutex>& lock, Clock::time_point deadline) {
    Released released(*lock.mutex());
    Adopted native(lock);
    return condition_.wait_until(native.lock, deadline) == std::cv_status::no_timeout;
  }
  std::condition_variable condition_;
#endif
};

// std::atomic with the operations that we use. Under control each operation is sequentially
// consistent and a scheduling point comes before it, and after it where it publishes something:
// what follows a decrement can then be overtaken.
template <class T>
class Atomic final {
 public:
  using Difference = std::conditional_t<std::is_pointer_v<T>, std::ptrdiff_t, T>;
  using Order = std::memory_order;

  constexpr Atomic() noexcept = default;
  constexpr Atomic(T value) noexcept : value_(value) {}
  Atomic(const Atomic&) = delete;
  Atomic& operator=(const Atomic&) = delete;

  T load(Order order = std::memory_order_seq_cst) const noexcept {
    yield_point();
    return value_.load(order);
  }
  void store(T value, Order order = std::memory_order_seq_cst) noexcept {
    Publication scope;
    value_.store(value, order);
  }
  T exchange(T value, Order order = std::memory_order_seq_cst) noexcept {
    Publication scope;
    return value_.exchange(value, order);
  }
  T fetch_add(Difference value, Order order = std::memory_order_seq_cst) noexcept {
    Publication scope;
    return value_.fetch_add(value, order);
  }
  T fetch_sub(Difference value, Order order = std::memory_order_seq_cst) noexcept {
    Publication scope;
    return value_.fetch_sub(value, order);
  }
  T fetch_or(T value, Order order = std::memory_order_seq_cst) noexcept {
    Publication scope;
    return value_.fetch_or(value, order);
  }
  T fetch_and(T value, Order order = std::memory_order_seq_cst) noexcept {
    Publication scope;
    return value_.fetch_and(value, order);
  }
  bool compare_exchange_strong(T& expected, T desired,
                               Order order = std::memory_order_seq_cst) noexcept {
    Publication scope;
    return value_.compare_exchange_strong(expected, desired, order);
  }
  bool compare_exchange_strong(T& expected, T desired, Order success, Order failure) noexcept {
    Publication scope;
    return value_.compare_exchange_strong(expected, desired, success, failure);
  }
  bool compare_exchange_weak(T& expected, T desired,
                             Order order = std::memory_order_seq_cst) noexcept {
    Publication scope;
    if (fails_spuriously(expected)) return false;
    return value_.compare_exchange_weak(expected, desired, order);
  }
  bool compare_exchange_weak(T& expected, T desired, Order success, Order failure) noexcept {
    Publication scope;
    if (fails_spuriously(expected)) return false;
    return value_.compare_exchange_weak(expected, desired, success, failure);
  }

 private:
  // The destructor does not touch the atomic, which another thread may have destroyed by then.
  struct Publication {
#if HOLDFAST_CONTROLLED
    Publication() noexcept { controlled::point(); }
    ~Publication() { controlled::point(); }
#else
    Publication() noexcept {}
#endif
    Publication(const Publication&) = delete;
    Publication& operator=(const Publication&) = delete;
  };

  bool fails_spuriously([[maybe_unused]] T& expected) noexcept {
#if HOLDFAST_CONTROLLED
    if (controlled::one_in(32)) {
      expected = value_.load();
      return true;
    }
#endif
    return false;
  }

  std::atomic<T> value_;
};

// A thread with a name (shown by debuggers, the first 15 characters of it). Must be joined before
// it is destroyed or assigned to. Throws std::system_error when the system has no thread to give.
class Thread {
 public:
  Thread() noexcept = default;

  template <class Function>
  Thread(std::string name, Function&& function) {
#if HOLDFAST_CONTROLLED
    record_ = controlled::register_thread(name);
    try {
      thread_ = std::thread([record = record_, short_name = name.substr(0, 15),
                             run = std::forward<Function>(function)]() mutable {
        controlled::enter_thread(record);
        pthread_setname_np(pthread_self(), short_name.c_str());
        run();
      });
    } catch (...) {
      controlled::forget_thread(std::exchange(record_, nullptr));
      throw;
    }
    controlled::point();
#else
    thread_ = std::thread(
        [short_name = name.substr(0, 15), run = std::forward<Function>(function)]() mutable {
          pthread_setname_np(pthread_self(), short_name.c_str());
          run();
        });
#endif
  }

#if HOLDFAST_CONTROLLED
  Thread(Thread&& other) noexcept
      : record_(std::exchange(other.record_, nullptr)), thread_(std::move(other.thread_)) {}
  Thread& operator=(Thread&& other) noexcept {
    thread_ = std::move(other.thread_);
    record_ = std::exchange(other.record_, nullptr);
    return *this;
  }
#else
  Thread(Thread&&) noexcept = default;
  Thread& operator=(Thread&&) noexcept = default;
#endif

  bool joinable() const noexcept { return thread_.joinable(); }

  void join() {
#if HOLDFAST_CONTROLLED
    controlled::join_thread(std::exchange(record_, nullptr));
#endif
    thread_.join();
  }

 private:
#if HOLDFAST_CONTROLLED
  controlled::ThreadRecord* record_ = nullptr;
#endif
  std::thread thread_;
};

}  // namespace holdfast::sync
