// What is remembered about each place of memory while a dispatch is checked: who wrote it last, and
// who has read it since.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <vector>

#include "base/sync.h"
#include "devices/cpu/jit/kernel_abi.h"

namespace holdfast::jit {

// An access of a thread, and how many barriers were behind it. Most of what a dispatch costs in
// memory: 16 bytes for each 4 that it writes, 32 more once they are read, and for each way in which
// atomic operations use them. Two words, which are handed on by value: they are made in registers,
// and going through memory would stall each access.
class PastAccess {
 public:
  PastAccess() = default;
  // `site`: which AccessSite, by a number that the checker gives it.
  // `epoch`: barriers that the group had passed; it begins again after a million of them, so that
  // two accesses that are exactly so far apart look as if there were none between them.
  // `simd_stamp`: those that the simdgroup had passed; `fences`: those of the thread.
  PastAccess(uint32_t site, uint32_t group, uint32_t thread, uint32_t epoch, uint16_t simd_stamp,
             uint16_t fences)
      : who_(site | uint64_t{group} << 32),
        when_(thread | uint64_t{epoch & epoch_limit} << epoch_shift |
              uint64_t{simd_stamp} << stamp_shift | uint64_t{fences} << fences_shift) {}

  // Of the last write to a place: somebody has written there, perhaps by an atomic operation.
  void set_written() { when_ |= uint64_t{1} << written_shift; }

  uint32_t site() const { return static_cast<uint32_t>(who_); }  // 0: there was no access
  uint32_t group() const { return static_cast<uint32_t>(who_ >> 32); }
  uint32_t thread() const { return when_ & thread_mask; }  // in the group
  uint32_t simdgroup() const { return thread() / simdgroup_width; }
  uint32_t epoch() const { return when_ >> epoch_shift & epoch_limit; }
  uint16_t simd_stamp() const { return static_cast<uint16_t>(when_ >> stamp_shift); }
  uint16_t fences() const { return static_cast<uint16_t>(when_ >> fences_shift); }
  bool is_written() const { return (when_ >> written_shift & 1) != 0; }

  bool is_empty() const { return (who_ | when_) == 0; }
  bool is_same_thread(PastAccess other) const {
    return group() == other.group() && ((when_ ^ other.when_) & thread_mask) == 0;
  }
  // Whether a barrier, or the thread itself, puts it before `later`.
  bool is_before(PastAccess later) const {
    if (group() != later.group()) return false;
    const uint64_t differ = when_ ^ later.when_;
    if ((differ & thread_mask) == 0 || (differ >> epoch_shift & epoch_limit) != 0) return true;
    return (differ & thread_mask) < simdgroup_width && (differ >> stamp_shift & 0xffff) != 0;
  }

 private:
  static constexpr int written_shift = 11, epoch_shift = 12, stamp_shift = 32, fences_shift = 48;
  static constexpr uint64_t thread_mask = (1 << 10) - 1;
  static constexpr uint32_t epoch_limit = (1 << (stamp_shift - epoch_shift)) - 1;

  uint64_t who_ = 0, when_ = 0;
};
static_assert(sizeof(PastAccess) == 16);

// Memory that is given back all at once: in large pieces, since most of what it costs is that the
// system finds pages for it.
class ShadowArena {
 public:
  // So many, each as it is made by default; may throw std::bad_alloc.
  template <class T>
  T* take(size_t count) {
    T* const place = reinterpret_cast<T*>(take_bytes(count * sizeof(T)));
    std::uninitialized_value_construct_n(place, count);
    return place;
  }

 private:
  struct Release {
    size_t alignment;
    void operator()(char* piece) const { ::operator delete(piece, std::align_val_t{alignment}); }
  };
  char* take_bytes(size_t bytes);

  std::vector<std::unique_ptr<char, Release>> pieces_;
  size_t taken_ = 0;  // the bytes of all pieces
  char* next_ = nullptr;
  size_t left_ = 0;
};

// Of one stretch of memory. Several OS threads may visit it at once when it was said to be shared.
class ShadowMemory {
 public:
  // How a place is used. Each but a plain write is remembered apart from the others until the next
  // plain write: a thread that reads and counts at one place races with others in two ways.
  enum Use : uint8_t { read, atomic_read, atomic_write, plain_write };

  // Accesses of one use. Two are enough: of threads that may not both be ordered with a later
  // access.
  struct Others {
    PastAccess first, second;
    void add(PastAccess now) {
      if (first.site() == 0 || first.is_same_thread(now)) {
        first = now;
      } else {
        add_another(now);
      }
    }

   private:
    void add_another(PastAccess now);
  };
  struct Atomics {
    Others reads, writes;
  };

  class Cell {
   public:
    // What there was none of yet is null.
    Cell(PastAccess& write, Others* reads, Atomics* atomics)
        : write_(write), reads_(reads), atomics_(atomics) {}

    bool is_written() const { return write_.is_written(); }
    // What another group left of threadgroup memory is nothing.
    void belong_to(uint32_t group) {
      if (write_.group() == group) return;
      write_ = PastAccess(0, group, 0, 0, 0, 0);
      forget_others();
    }

    // Nobody but the thread of `now` has been here, and no atomic operation.
    bool is_own(PastAccess now) const {
      auto is_own = [now](PastAccess one) { return one.is_empty() || one.is_same_thread(now); };
      return is_own(write_) && !atomics_ &&
             (!reads_ || (is_own(reads_->first) && reads_->second.is_empty()));
    }
    // The access that `now` races with; its site is 0 when there is none. `is_before(earlier, now)`
    // may know more about their order than PastAccess does.
    template <class IsBefore>
    PastAccess conflict(PastAccess now, Use use, IsBefore is_before) const {
      auto races = [&](PastAccess other) {
        return other.site() != 0 && !other.is_before(now) && !is_before(other, now);
      };
      if (races(write_)) return write_;
      // Reads do not race with reads, nor atomic operations with each other.
      if (reads_ && (use == plain_write || use == atomic_write)) {
        if (races(reads_->first)) return reads_->first;
        if (races(reads_->second)) return reads_->second;
      }
      if (!atomics_) return {};
      if (use == plain_write || use == read) {
        if (races(atomics_->writes.first)) return atomics_->writes.first;
        if (races(atomics_->writes.second)) return atomics_->writes.second;
      }
      if (use == plain_write) {
        if (races(atomics_->reads.first)) return atomics_->reads.first;
        if (races(atomics_->reads.second)) return atomics_->reads.second;
      }
      return {};
    }
    // What the use is remembered in must be there.
    void add(PastAccess now, Use use) {
      switch (use) {
        case read:
          return reads_->add(now);
        case atomic_read:
          return atomics_->reads.add(now);
        case atomic_write:
          write_.set_written();
          return atomics_->writes.add(now);
        case plain_write:
          // Whoever raced with those before races with this one, too, or has been reported.
          now.set_written();
          write_ = now;
          forget_others();
      }
    }

   private:
    void forget_others() {
      if (reads_) *reads_ = {};
      if (atomics_) *atomics_ = {};
    }

    PastAccess& write_;
    Others* const reads_;
    Atomics* const atomics_;
  };

  // Of [begin, begin + bytes).
  ShadowMemory(const void* begin, uint64_t bytes, bool is_shared);
  ~ShadowMemory();

  bool holds(const char* address, uint64_t bytes) const {
    const uint64_t offset = reinterpret_cast<uintptr_t>(address) - begin_;
    return offset <= bytes_ && bytes <= bytes_ - offset;
  }

  // Notes a plain access where only its own thread has been before, so that there is nothing to
  // find: what nearly all are. False when it is not so, or not simple: then all of it must be
  // visited, and what was noted already does no harm. `must_be_written`: it is a read of what is
  // undefined.
  bool add_own(const char* address, uint64_t bytes, PastAccess now, Use use, bool must_be_written) {
    const auto begin = reinterpret_cast<uintptr_t>(address);
    const uintptr_t in_page = begin % page_bytes;
    Page* page = pages_[begin / page_bytes - begin_ / page_bytes].load(std::memory_order_acquire);
    if (!page || ((begin | bytes) & 3) != 0 || bytes > page_bytes - in_page) return false;
    if (is_shared_) page->lock.lock();
    const Form form = page->form;
    bool is_own = form.shift == 2 && form.has(use);
    for (uintptr_t i = in_page / 4; is_own && i < (in_page + bytes) / 4; ++i) {
      Cell cell = form.cell(i);
      is_own = cell.is_own(now) && (cell.is_written() || !must_be_written);
      if (is_own) cell.add(now, use);
    }
    if (is_shared_) page->lock.unlock();
    return is_own;
  }

  // Calls `visit(Cell, address)` for the cells of [address, address + bytes), which it must hold:
  // one for each four bytes, or for each byte of pages in which something smaller was accessed.
  // `use`: what visit will add. Visits of one page exclude each other, and must not throw. May
  // throw std::bad_alloc before it visits a page.
  template <class Visit>
  void visit(const char* address, uint64_t bytes, Use use, Visit visit) {
    auto at = reinterpret_cast<uintptr_t>(address);
    const uintptr_t end = at + bytes;
    while (at < end) {
      const uintptr_t stop = std::min(end, (at / page_bytes + 1) * page_bytes);
      Page& page = page_of(at);
      const bool is_fine = ((at | stop) & 3) != 0;
      if (is_shared_) page.lock.lock();
      while (!page.form.fits(is_fine, use)) {
        if (is_shared_) page.lock.unlock();
        grow(page, is_fine, use);
        if (is_shared_) page.lock.lock();
      }
      const Form form = page.form;
      const int shift = form.shift;
      for (; at < stop; at += uintptr_t{1} << shift)
        visit(form.cell(at % page_bytes >> shift), reinterpret_cast<const char*>(at));
      if (is_shared_) page.lock.unlock();
    }
  }

 private:
  static constexpr uintptr_t page_bytes = 1024;
  // Where the cells of a page are; memory is the arena's.
  struct Form {
    int shift = 2;  // a cell is so many bytes: two to the power of this
    PastAccess* writes = nullptr;
    Others* reads = nullptr;     // null: there were none yet
    Atomics* atomics = nullptr;  // likewise

    Cell cell(uintptr_t i) const {
      return Cell(writes[i], reads ? reads + i : nullptr, atomics ? atomics + i : nullptr);
    }
    bool has(Use use) const { return use == plain_write || (use == read ? !!reads : !!atomics); }
    bool fits(bool is_fine, Use use) const { return (shift == 0 || !is_fine) && has(use); }
  };
  struct Page {
    sync::SpinLock lock{sync::Rank::shadow_page};
    Form form;  // guarded by lock
  };
  Page& page_of(uintptr_t address) {
    std::atomic<Page*>& place = pages_[address / page_bytes - begin_ / page_bytes];
    Page* page = place.load(std::memory_order_acquire);
    return page ? *page : make_page(place);
  }
  Page& make_page(std::atomic<Page*>& place);
  void grow(Page& page, bool is_fine, Use use);

  const uintptr_t begin_;
  const uint64_t bytes_;
  const bool is_shared_;
  sync::Mutex mutex_{sync::Rank::shadow_memory};  // of those who make pages, or make them larger
  ShadowArena arena_;                             // guarded by mutex_
  // No sync::Atomic: who makes a page does not matter, and each access looks here.
  std::vector<std::atomic<Page*>> pages_;
};

}  // namespace holdfast::jit
