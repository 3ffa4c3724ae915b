// What is remembered about each place of memory while a dispatch is checked: who wrote it last, and
// who has read it since.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>

#include "devices/cpu/jit/kernel_abi.h"

namespace holdfast::jit {

// An access of a thread, and how many barriers were behind it.
struct PastAccess {
  const AccessSite* site = nullptr;  // null: there was none
  uint32_t group = 0;
  uint32_t epoch = 0;       // barriers that the group had passed
  uint16_t thread = 0;      // in the group
  uint16_t simd_stamp = 0;  // barriers that the simdgroup had passed
  uint16_t fences = 0;      // that the thread had passed

  // Whether a barrier, or the thread itself, puts it before `later`.
  bool is_before(const PastAccess& later) const;
};

class ShadowMemory {
 public:
  struct Cell {
    PastAccess write;
    // Reads and atomic operations since. Two are enough: of threads that may not both be ordered
    // with a later access.
    PastAccess others[2];
    uint32_t written_in = 0;  // number of the group + 1 that wrote it last
    uint32_t owner = 0;       // the same, of threadgroup memory: to which group the cell belongs

    // The access that `now` races with; null when there is none. `is_before(earlier, now)` may know
    // more about their order than PastAccess does.
    template <class IsBefore>
    const PastAccess* conflict(const PastAccess& now, uint8_t kind, IsBefore is_before) const {
      auto races = [&](const PastAccess& other) {
        return other.site && !other.is_before(now) && !is_before(other, now);
      };
      if (races(write)) return &write;
      const bool is_plain_write =
          (kind & (AccessSite::writes | AccessSite::atomic)) == AccessSite::writes;
      for (const PastAccess& other : others) {
        // Reads do not race with reads, nor atomic operations with each other.
        const bool may_race =
            is_plain_write || (other.site && ((other.site->kind ^ kind) & AccessSite::atomic) != 0);
        if (may_race && races(other)) return &other;
      }
      return nullptr;
    }
    void add(const PastAccess& now, uint8_t kind);
  };

  // Calls `visit(Cell&, address)` for the cells of [address, address + bytes): one for each four
  // bytes, or for each byte of pages in which something smaller was accessed.
  template <class Visit>
  void visit(const char* address, uint64_t bytes, Visit visit) {
    auto at = reinterpret_cast<uintptr_t>(address);
    const uintptr_t end = at + bytes;
    while (at < end) {
      Page& page = page_of(at, ((at | end) & 3) != 0);
      const uintptr_t stop =
          at / page_bytes == (end - 1) / page_bytes ? end : (at / page_bytes + 1) * page_bytes;
      for (; at < stop; at += page.step) {
        visit(page.cells[at % page_bytes / page.step], reinterpret_cast<const char*>(at));
      }
    }
  }

 private:
  static constexpr uintptr_t page_bytes = 1024;
  struct Page {
    std::unique_ptr<Cell[]> cells;
    uintptr_t step = 4;  // bytes of a cell
  };
  Page& page_of(uintptr_t address, bool is_fine);

  std::unordered_map<uintptr_t, Page> pages_;
  // Pages used lately, by their number.
  struct Recent {
    uintptr_t number = 0;
    Page* page = nullptr;
  };
  Recent recent_[256];
};

}  // namespace holdfast::jit
