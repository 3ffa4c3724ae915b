// Stops kernels that run too long, or whose queue was cancelled.
#pragma once

#include <cstdint>

#include "devices/cpu/jit/dispatch.h"

namespace holdfast::jit::watchdog {

enum class Verdict : uint8_t { none, timed_out, cancelled };

// The place of one thread: which dispatch it runs groups of. Generated code polls `stop`.
struct Slot {
  uint32_t stop = 0;  // a Verdict; written by the watchdog under `lock`, read atomically
  sync::SpinLock lock;
  const DispatchArguments* running = nullptr;  // guarded by `lock`
  Slot* next = nullptr;
  bool is_taken = false;

  Verdict verdict() const { return static_cast<Verdict>(__atomic_load_n(&stop, __ATOMIC_RELAXED)); }
};

// Has the dispatch run longer than HOLDFAST_KERNEL_TIMEOUT?
bool is_late(const DispatchArguments& arguments, sync::Clock::time_point now);

// A slot for the calling thread, until it is given back. Slots are never freed.
Slot* take_slot();
void give_back(Slot* slot);

// While it exists the watchdog looks at the slot: a few nanoseconds. A thread that sleeps while
// nothing runs does the looking; it is started by the first Watch.
class Watch {
 public:
  Watch(Slot& slot, const DispatchArguments& arguments);
  ~Watch();
  Watch(const Watch&) = delete;

 private:
  Slot& slot_;
};

}  // namespace holdfast::jit::watchdog
