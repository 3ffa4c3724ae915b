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
// memory: 16 bytes for each 4 that it writes, 48 once others read them.
struct PastAccess {
  uint32_t site = 0;  // which AccessSite, by a number that the checker gives it; 0: none
  uint32_t group = 0;
  uint16_t simd_stamp = 0;   // barriers that the simdgroup had passed
  uint16_t fences = 0;       // that the thread had passed
  uint32_t thread : 10 = 0;  // in the group
  uint32_t is_atomic : 1 = 0;
  uint32_t is_written : 1 = 0;  // of Cell::write: somebody has written the cell
  // Barriers that the group had passed. It begins again after a million of them: two accesses that
  // are exactly so far apart look as if there were none between them.
  uint32_t epoch : 20 = 0;

  uint32_t simdgroup() const { return thread / simdgroup_width; }
  bool is_same_thread(const PastAccess& other) const {
    return group == other.group && thread == other.thread;
  }
  // Whether a barrier, or the thread itself, puts it before `later`.
  bool is_before(const PastAccess& later) const {
    if (group != later.group) return false;
    if (thread == later.thread || epoch != later.epoch) return true;
    return simdgroup() == later.simdgroup() && simd_stamp != later.simd_stamp;
  }
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

    bool is_written() const { return write_.is_written != 0; }
    // What another group left of threadgroup memory is nothing.
    void belong_to(uint32_t group) {
      if (write_.group == group) return;
      write_ = {};
      write_.group = group;
      if (others_) *others_ = {};
    }

    // The access that `now` races with; null when there is none. `is_before(earlier, now)` may know
    // more about their order than PastAccess does.
    template <class IsBefore>
    const PastAccess* conflict(const PastAccess& now, bool is_plain_write,
                               IsBefore is_before) const {
      auto races = [&](const PastAccess& other) {
        return other.site != 0 && !other.is_before(now) && !is_before(other, now);
      };
      if (races(write_)) return &write_;
      if (!others_) return nullptr;
      for (const PastAccess* other : {&others_->first, &others_->second}) {
        // Reads do not race with reads, nor atomic operations with each other.
        const bool may_race = is_plain_write || other->is_atomic != now.is_atomic;
        if (may_race && races(*other)) return other;
      }
      return nullptr;
    }
    // `others` must be there unless it is a plain write.
    void add(const PastAccess& now, bool writes);

   private:
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
