// Allocator: the storage of one memory space by size class, a cache with a limit, the memory limit,
// and the counters.
//
// Who gets what: `allocate_idle` hands out storage whose last use has been executed;
// `allocate_for_queue` may hand out storage that the queue's own commands still use. Storage
// dropped while one queue still uses it waits in that queue's bin. A bin is part of the cache: for
// its queue at once, for everybody when the commands have been executed (`harvest`).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/sync.h"
#include "devices/memory_space.h"
#include "exec/residency.h"

namespace holdfast::exec {

// Storage by size class: 16 classes per power of two, so that at most 1/16 is wasted.
class SizeClasses {
 public:
  static constexpr int count = 64 * 16;
  static int of(size_t bytes);
  static size_t bytes(int size_class);

  void push(Storage* storage);
  // The largest storage that is smaller than `bytes`; null when there is none.
  Storage* take_smaller(size_t bytes);
  // A storage of at least `bytes` and at most about 1.5 times that; null when there is none.
  Storage* take(size_t bytes);
  // Moves every storage for which `accept` holds to `target`.
  template <class Accept, class Target>
  void drain(Accept accept, Target target);
  bool empty() const { return size_ == 0; }

 private:
  Storage* take_first(int size_class);

  Storage* heads_[count] = {};
  uint64_t used_[count / 64] = {};  // bit: the class has an entry
  size_t size_ = 0;
};

// Storage that only one queue's commands still use. Locked after the allocator's mutex or alone.
struct Bin {
  sync::SpinLock lock{sync::Rank::bin};
  SizeClasses classes;
};

class Allocator {
 public:
  // Of the host's memory.
  static Allocator& get();
  // Of a new space, which lives as long as the process.
  static Allocator& add(MemorySpace& space);
  // Of every space, the host's first.
  static std::vector<Allocator*> all();

  MemorySpace& space() const { return space_; }

  // A new buffer with one owner whose storage no command uses: on the host, to be written at once.
  // Throws OutOfMemory.
  Buffer* allocate_idle(size_t bytes, const char* op);
  // A new buffer with one owner for commands of the queue that owns `bin`.
  Buffer* allocate_for_queue(size_t bytes, const char* op, const label::Label& label, Bin& bin,
                             DeviceQueue* queue);
  // Host memory that is not ours.
  Buffer* adopt(void* pointer, size_t bytes, std::function<void(void*)> deleter);

  // A bin to look into when the cache has nothing; bins live as long as the process.
  void register_bin(Bin* bin);

  size_t active();
  size_t peak();
  void reset_peak();
  size_t cached();
  size_t memory_limit() const { return memory_limit_.load(); }
  size_t cache_limit() const { return cache_limit_.load(); }
  // Cached memory above a lower limit is given back at once.
  size_t set_memory_limit(size_t limit);
  size_t set_cache_limit(size_t limit);
  size_t set_wired_limit(size_t limit);
  void clear_cache();
  Residency& residency() { return residency_; }
  // Taken from the system: active and cached memory together.
  size_t total();

  // For tests: how often storage was looked for with the lock held. A loop that repeats itself does
  // without it.
  size_t locked_searches() const { return locked_searches_.load(std::memory_order_relaxed); }

 private:
  friend class Buffer;
  explicit Allocator(MemorySpace& space);

  template <class FindStorage>
  Buffer* allocate(size_t bytes, const char* op, const label::Label& label, int stream,
                   FindStorage find);
  Storage* from_bin(size_t bytes, Bin& bin);
  Storage* from_system(size_t bytes, const char* op, sync::Held);
  void replace_smaller(size_t capacity, sync::Held) noexcept;
  Storage* from_cache(size_t bytes, sync::Held);
  // Takes a storage that nobody owns any more: to its queue's bin, the cache or the system.
  void give_back(Storage* storage) noexcept;
  void to_bin(Storage* storage, DeviceQueue* user) noexcept;
  void to_cache_or_system(Storage* storage, sync::Held) noexcept;
  void to_system(Storage* storage, sync::Held) noexcept;
  void harvest(sync::Held) noexcept;
  bool make_room(size_t bytes, sync::Held);
  Storage* new_storage(sync::Held);
  void free_storage(Storage* storage, sync::Held) noexcept;
  void add_active(size_t bytes);
  // The sums, and who holds the memory, by op and by stream.
  [[noreturn]] void throw_out_of_memory(size_t bytes, const char* op);

  MemorySpace& space_;
  sync::Mutex mutex_{sync::Rank::allocator};
  // All guarded by mutex_.
  SizeClasses cache_;
  size_t total_ = 0;   // taken from the system: what the limit is kept for, exactly
  size_t needed_ = 0;  // the most that was active when more was taken, since the last clear_cache
  Residency residency_;
  std::vector<Bin*> bins_;
  Storage* free_storages_ = nullptr;

  sync::Atomic<size_t> active_{0};
  sync::Atomic<size_t> peak_{0};
  sync::Atomic<size_t> cached_{0};
  sync::Atomic<size_t> memory_limit_{0};
  sync::Atomic<size_t> cache_limit_{0};
  std::atomic<size_t> locked_searches_{0};
};

// --- templates ---

template <class Accept, class Target>
void SizeClasses::drain(Accept accept, Target target) {
  for (int word = 0; word < count / 64; ++word) {
    for (uint64_t bits = used_[word]; bits; bits &= bits - 1) {
      int c = word * 64 + __builtin_ctzll(bits);
      for (Storage** link = &heads_[c]; *link;) {
        Storage* storage = *link;
        if (!accept(storage)) {
          link = &storage->next;
          continue;
        }
        *link = storage->next;
        storage->next = nullptr;
        --size_;
        target(storage);
      }
      if (!heads_[c]) used_[word] &= ~(uint64_t{1} << (c % 64));
    }
  }
}

}  // namespace holdfast::exec
