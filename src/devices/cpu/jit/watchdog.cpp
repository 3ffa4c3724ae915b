#include "devices/cpu/jit/watchdog.h"

#include <algorithm>
#include <chrono>
#include <mutex>
#include <system_error>
#include <utility>

#include "base/environment.h"

namespace holdfast::jit::watchdog {
namespace {

using Seconds = std::chrono::duration<double>;

// After this many looks without a running kernel the thread goes to sleep.
constexpr int idle_looks = 20;
constexpr Seconds shortest_tick{0.001}, longest_tick{0.05};

// Lives as long as the process, and so does its thread, which touches nothing else.
class Watchdog {
 public:
  Slot* take_slot() {
    std::lock_guard lock(mutex_);
    for (Slot* slot = slots_; slot; slot = slot->next) {
      if (!std::exchange(slot->is_taken, true)) return slot;
    }
    auto* slot = new Slot;
    slot->is_taken = true;
    slot->next = slots_;
    slots_ = slot;
    return slot;
  }

  void give_back(Slot* slot) {
    std::lock_guard lock(mutex_);
    slot->is_taken = false;
  }

  // A Watch entered its slot before it asks, under the slot's lock; the thread clears `is_awake_`
  // before it takes the slots' locks for a last look. So one of the two sees the other.
  void wake_if_asleep() {
    if (!is_awake_.load(std::memory_order_acquire)) wake();
  }

 private:
  __attribute__((noinline)) void wake() {
    std::lock_guard lock(mutex_);
    if (is_awake_.exchange(true)) return;
    if (!thread_.joinable()) {
      try {
        thread_ = sync::Thread("hf-watchdog", [this] { look_around(); });
      } catch (const std::system_error&) {
        // No thread to be had: kernels run unwatched. `is_awake_` stays set, so nobody asks again.
        return;
      }
    }
    woken_.notify_one();
  }

  [[noreturn]] void look_around() {
    std::unique_lock lock(mutex_);
    int idle = 0;
    for (;;) {
      Seconds limit{environment::settings().kernel_timeout};
      Seconds tick =
          limit.count() > 0 ? std::clamp(limit / 16, shortest_tick, longest_tick) : longest_tick;
      woken_.wait_for(lock, tick, [] { return false; });
      idle = look(lock) ? 0 : idle + 1;
      if (idle < idle_looks) continue;
      is_awake_.store(false);
      if (look(lock)) {
        is_awake_.store(true);
      } else {
        woken_.wait(lock, [this] { return is_awake_.load(); });
      }
      idle = 0;
    }
  }

  // True when some kernel runs.
  bool look(sync::Held) {
    sync::Clock::time_point now = sync::now();
    bool is_any_running = false;
    for (Slot* slot = slots_; slot; slot = slot->next) {
      std::lock_guard lock(slot->lock);
      const DispatchArguments* arguments = slot->running;
      if (!arguments) continue;
      is_any_running = true;
      Verdict verdict = is_late(*arguments, now) ? Verdict::timed_out : Verdict::none;
      if (arguments->queue_cancelled &&
          arguments->queue_cancelled->load(std::memory_order_relaxed) >= arguments->list) {
        verdict = Verdict::cancelled;
      }
      if (verdict != Verdict::none)
        __atomic_store_n(&slot->stop, static_cast<uint32_t>(verdict), __ATOMIC_RELAXED);
    }
    return is_any_running;
  }

  sync::Mutex mutex_{
      sync::Rank::watchdog};  // slots are entered under it; taken before a slot's lock
  sync::CondVar woken_;
  sync::Atomic<bool> is_awake_{false};
  sync::Thread thread_;
  Slot* slots_ = nullptr;
};

Watchdog& the_watchdog() {
  static auto* watchdog = new Watchdog;
  return *watchdog;
}

}  // namespace

bool is_late(const DispatchArguments& arguments, sync::Clock::time_point now) {
  const Seconds limit{environment::settings().kernel_timeout};
  return limit.count() > 0 && now - arguments.started >= limit;
}

Slot* take_slot() { return the_watchdog().take_slot(); }
void give_back(Slot* slot) { the_watchdog().give_back(slot); }

Watch::Watch(Slot& slot, const DispatchArguments& arguments) : slot_(slot) {
  {
    std::lock_guard lock(slot.lock);
    __atomic_store_n(&slot.stop, uint32_t{0}, __ATOMIC_RELAXED);
    slot.running = &arguments;
  }
  the_watchdog().wake_if_asleep();
}

Watch::~Watch() {
  std::lock_guard lock(slot_.lock);
  slot_.running = nullptr;
}

}  // namespace holdfast::jit::watchdog
