// The order that fences make between threads, of one group or of several: what a thread did before
// a fence and a later atomic write comes before what another thread does after it has read that
// write, by an atomic operation, and has passed a fence of its own.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "devices/cpu/jit/shadow_memory.h"

namespace holdfast::jit {

// What lies before a fence of a thread: all that its group did before its last barrier, all that
// its simdgroup did before the simdgroup's last one, and all that the thread itself did.
struct Release {
  uint32_t group, epoch;
  uint16_t thread, simd_stamp;
  uint16_t fences;  // how many fences the thread had passed, with this one

  bool covers(PastAccess earlier) const;
};

class ReleaseLog;
// What a log said at some time: its first entries.
struct Heard {
  const ReleaseLog* log;
  uint32_t entries;
};

// What is handed on by a place that atomic operations write, since the last plain atomic store:
// what others add to a store they hand on together. Entries are only added, so that those who hear
// it need no copy: with a thousand threads at one counter, copies would be a thousand times as
// much as the entries.
class ReleaseLog {
 public:
  Heard all() const { return {this, entries_}; }
  void add(const Release& release);
  void add(const Heard& other);
  // Whether something of `entries` is a release that covers `earlier`; what they hand on of other
  // logs goes to `more`.
  bool covers(PastAccess earlier, uint32_t entries, std::vector<Heard>& more) const;

 private:
  template <class T>
  struct Entry {
    uint32_t number;
    T what;
  };
  uint32_t entries_ = 0;
  std::unordered_map<uint32_t, std::vector<Entry<Release>>> releases_;  // by group
  std::vector<Entry<Heard>> handed_on_;
};

// All logs of a dispatch: they refer to each other.
using ReleaseLogs = std::vector<std::unique_ptr<ReleaseLog>>;
// What each place hands on now, by address.
using Releases = std::unordered_map<uintptr_t, ReleaseLog*>;

// The fences of the threads of one group. Kernels without any pay for a look at `has_any`.
class FenceOrder {
 public:
  static constexpr uint32_t most_threads = 1024;

  explicit FenceOrder(ReleaseLogs& logs) : logs_(logs) {}

  // Another group starts.
  void begin();
  // `now` is the thread that passes the fence, and when.
  void fence(PastAccess now);
  bool has_any() const { return has_any_; }
  uint16_t fences_of(uint32_t thread) const { return has_any_ ? threads_[thread].fences : 0; }

  // The thread of `now` reads or writes `address` by an atomic operation. `is_store`: it puts a
  // value there whatever was there before, so that nobody hears any more what others handed on.
  void read(PastAccess now, uintptr_t address, const Releases& releases);
  void write(PastAccess now, uintptr_t address, Releases& releases, bool is_store);

  // Whether fences put `earlier` before `now`.
  bool is_before(PastAccess earlier, PastAccess now) const;

 private:
  struct Thread {
    uint16_t fences = 0;
    uint16_t simd_stamp = 0;   // of the last fence
    uint32_t epoch = 0;        // likewise
    std::vector<Heard> heard;  // since the last fence: in force from the next one on
  };
  struct Acquired {
    Heard heard;
    PastAccess by;  // who passed the fence, and when: those that come after know it, too
  };

  ReleaseLogs& logs_;
  bool has_any_ = false;
  std::vector<Thread> threads_;
  std::vector<Acquired> acquired_;
};

}  // namespace holdfast::jit
