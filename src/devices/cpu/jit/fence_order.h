// The order that fences make between threads, of one group or of several: what a thread did before
// a fence and a later atomic write comes before what another thread does after it has read that
// write, by an atomic operation, and has passed a fence of its own.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "devices/cpu/jit/shadow_memory.h"

namespace holdfast::jit {

// What lies before a fence of a thread: all that its group did before its last barrier, and all
// that the thread itself did.
struct Release {
  uint32_t group, epoch;
  uint16_t thread, fences;  // how many fences the thread had passed, with this one
};

// What each place that is written by atomic operations hands on, by address.
using Releases = std::unordered_map<uintptr_t, std::vector<Release>>;

// The fences of the threads of one group. Kernels without any pay for a look at `has_any`.
class FenceOrder {
 public:
  static constexpr uint32_t most_threads = 1024;

  // Another group starts.
  void begin();
  // `now` is the thread that passes the fence, and when.
  void fence(PastAccess now);
  bool has_any() const { return has_any_; }
  uint16_t fences_of(uint32_t thread) const { return has_any_ ? threads_[thread].fences : 0; }

  // The thread of `now` reads or writes `address` by an atomic operation.
  void read(PastAccess now, uintptr_t address, const Releases& releases);
  void write(PastAccess now, uintptr_t address, Releases& releases) const;

  // Whether fences put `earlier` before `now`.
  bool is_before(PastAccess earlier, PastAccess now) const;

 private:
  struct Thread {
    uint16_t fences = 0;
    uint32_t epoch = 0;          // of the last fence
    std::vector<Release> heard;  // since the last fence: in force from the next one on
  };
  struct Acquired {
    Release release;
    PastAccess by;  // who passed the fence, and when: those that come after know it, too
  };

  bool has_any_ = false;
  std::vector<Thread> threads_;
  std::vector<Acquired> acquired_;
};

}  // namespace holdfast::jit
