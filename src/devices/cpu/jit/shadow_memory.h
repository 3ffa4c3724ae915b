// What is remembered about each place of memory while a dispatch is checked: who wrote it last, and
// who has read it since.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "base/sync.h"
#include "devices/cpu/jit/kernel_abi.h"

namespace holdfast::jit {

// An access of a thread, and how many barriers were behind it. Most of what a dispatch costs in
// memory: 16 bytes for each 4 that it writes, 48 once others read them. Two words, which are handed
// on by value: they are made in registers, and going through memory would stall each access.
class PastAccess {
 public:
  PastAccess() = default;
  // `site`: which AccessSite, by a number that the checker gives it.
  // `epoch`: barriers that the group had passed; it begins again after a million of them, so that
  // two accesses that are exactly so far apart look as if there were none between them.
  // `simd_stamp`: those that the simdgroup had passed; `fences`: those of the thread.
  PastAccess(uint32_t site, bool is_atomic, uint32_t group, uint32_t thread, uint32_t epoch,
             uint16_t simd_stamp, uint16_t fences)
      : who_(site | uint64_t{group} << 32),
        when_(thread | uint64_t{is_atomic} << atomic_shift |
              uint64_t{epoch & epoch_limit} << epoch_shift | uint64_t{simd_stamp} << stamp_shift |
              uint64_t{fences} << fences_shift) {}

  // Of the last write to a place: somebody has written there, perhaps by an atomic operation.
  void set_written() { when_ |= uint64_t{1} << written_shift; }

  uint32_t site() const { return static_cast<uint32_t>(who_); }  // 0: there was no access
  uint32_t group() const { return static_cast<uint32_t>(who_ >> 32); }
  uint32_t thread() const { return when_ & thread_mask; }  // in the group
  uint32_t simdgroup() const { return thread() / simdgroup_width; }
  uint32_t epoch() const { return when_ >> epoch_shift & epoch_limit; }
  uint16_t fences() const { return static_cast<uint16_t>(when_ >> fences_shift); }
  bool is_atomic() const { return (when_ >> atomic_shift & 1) != 0; }
  bool is_written() const { return (when_ >> written_shift & 1) != 0; }

  bool is_same_thread(PastAccess other) const {
    return group() == other.group() && thread() == other.thread();
  }
  // Whether a barrier, or the thread itself, puts it before `later`.
  bool is_before(PastAccess later) const {
    if (group() != later.group()) return false;
    const uint64_t differ = when_ ^ later.when_;
    if ((differ & thread_mask) == 0 || (differ >> epoch_shift & epoch_limit) != 0) return true;
    return (differ & thread_mask) < simdgroup_width && (differ >> stamp_shift & 0xffff) != 0;
  }

 private:
  static constexpr int atomic_shift = 10, written_shift = 11, epoch_shift = 12, stamp_shift = 32,
                       fences_shift = 48;
  static constexpr uint64_t thread_mask = (1 << atomic_shift) - 1;
  static constexpr uint32_t epoch_limit = (1 << (stamp_shift - epoch_shift)) - 1;

  uint64_t who_ = 0, when_ = 0;
};
static_assert(sizeof(PastAccess) == 16);

// Of one stretch of memory. Several OS threads may visit it at once when it was said to be shared.
class ShadowMemory {
 public:
  // Reads and atomic operations since the last write. Two are enough: of threads that may not both
  // be ordered with a later access.
  struct Others {
    PastAccess first, second;
  };

  class Cell {
   public:
    Cell(PastAccess& write, Others* others) : write_(write), others_(others) {}

    bool is_written() const { return write_.is_written(); }
    // What another group left of threadgroup memory is nothing.
    void belong_to(uint32_t group) {
      if (write_.group() == group) return;
      write_ = PastAccess(0, false, group, 0, 0, 0, 0);
      if (others_) *others_ = {};
    }

    // The access that `now` races with; null when there is none. `is_before(earlier, now)` may know
    // more about their order than PastAccess does.
    template <class IsBefore>
    const PastAccess* conflict(PastAccess now, bool is_plain_write, IsBefore is_before) const {
      auto races = [&](const PastAccess& other) {
        return other.site() != 0 && !other.is_before(now) && !is_before(other, now);
      };
      if (races(write_)) return &write_;
      if (!others_) return nullptr;
      for (const PastAccess* other : {&others_->first, &others_->second}) {
        // Reads do not race with reads, nor atomic operations with each other.
        const bool may_race = is_plain_write || other->is_atomic() != now.is_atomic();
        if (may_race && races(*other)) return other;
      }
      return nullptr;
    }
    // `others` must be there unless it is a plain write.
    void add(PastAccess now, bool writes) {
      if (!writes || now.is_atomic()) return add_other(now, writes);
      // Whoever raced with those before races with this one, too, or has been reported.
      write_ = now;
      write_.set_written();
      if (others_) *others_ = {};
    }

   private:
    void add_other(PastAccess now, bool writes);

    PastAccess& write_;
    Others* const others_;
  };

  // Of [begin, begin + bytes).
  ShadowMemory(const void* begin, uint64_t bytes, bool is_shared);
  ~ShadowMemory();

  bool holds(const char* address, uint64_t bytes) const {
    const uint64_t offset = reinterpret_cast<uintptr_t>(address) - begin_;
    return offset <= bytes_ && bytes <= bytes_ - offset;
  }

  // Calls `visit(Cell&, address)` for the cells of [address, address + bytes), which it must hold:
  // one for each four bytes, or for each byte of pages in which something smaller was accessed.
  // `with_others`: visit will add what is no plain write. Visits of one page exclude each other,
  // and must not throw. May throw std::bad_alloc before it visits a page.
  template <class Visit>
  void visit(const char* address, uint64_t bytes, bool with_others, Visit visit) {
    auto at = reinterpret_cast<uintptr_t>(address);
    const uintptr_t end = at + bytes;
    while (at < end) {
      const uintptr_t stop = std::min(end, (at / page_bytes + 1) * page_bytes);
      Page& page = page_of(at);
      const bool is_fine = ((at | stop) & 3) != 0;
      std::unique_lock lock(page.lock, std::defer_lock);
      if (is_shared_) lock.lock();
      while (!page.fits(is_fine, with_others)) {
        if (is_shared_) lock.unlock();
        grow(page, is_fine, with_others);
        if (is_shared_) lock.lock();
      }
      for (; at < stop; at += page.step) {
        const uintptr_t index = at % page_bytes / page.step;
        Cell cell(page.writes[index], page.others ? &page.others[index] : nullptr);
        visit(cell, reinterpret_cast<const char*>(at));
      }
    }
  }

 private:
  static constexpr uintptr_t page_bytes = 1024;
  struct Page {
    sync::SpinLock lock;  // guards what follows
    uintptr_t step = 4;   // bytes of a cell
    std::unique_ptr<PastAccess[]> writes;
    std::unique_ptr<Others[]> others;  // null: there were none yet

    bool fits(bool is_fine, bool with_others) const {
      return (step == 1 || !is_fine) && (others || !with_others);
    }
  };
  Page& page_of(uintptr_t address) {
    std::atomic<Page*>& place = pages_[address / page_bytes - begin_ / page_bytes];
    Page* page = place.load(std::memory_order_acquire);
    return page ? *page : make_page(place);
  }
  Page& make_page(std::atomic<Page*>& place);
  void grow(Page& page, bool is_fine, bool with_others);

  const uintptr_t begin_;
  const uint64_t bytes_;
  const bool is_shared_;
  sync::Mutex mutex_;  // of those who make pages, or make them larger
  // No sync::Atomic: who makes a page does not matter, and each access looks here.
  std::vector<std::atomic<Page*>> pages_;
};

}  // namespace holdfast::jit
