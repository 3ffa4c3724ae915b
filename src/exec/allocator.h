// Allocator: storage by size class, a cache with a limit, the memory limit, and the counters.
//
// Who gets what: `allocate_for_host` hands out storage whose last use has been executed;
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
#include "devices/memory.h"
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
  static Allocator& get();
  // Objects are made by the slab, so that one that died can still be looked at.
  static constexpr int slab_objects = 256;

  // A new buffer with one owner, for the host to write at once. Throws OutOfMemory.
  Buffer* allocate_for_host(size_t bytes, const char* op);
  // A new buffer with one owner for commands of the queue that owns `bin`.
  Buffer* allocate_for_queue(size_t bytes, const char* op, const label::Label& label, Bin& bin,
                             DeviceQueue* queue);
  Buffer* adopt(void* pointer, size_t bytes, std::function<void(void*)> deleter);

  // A bin to look into when the cache has nothing; bins live as long as the process.
  void register_bin(Bin* bin);

  // Of the next buffer: identities grow.
  uint64_t next_identity() const { return next_identity_.load(std::memory_order_relaxed); }

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

  // Live buffers, for tests: nothing may be left behind.
  size_t live_buffers() const { return live_buffers_.load(); }
  // For tests: how often a buffer or the storage of one was looked for with the lock held. A loop
  // that repeats itself does without it.
  size_t locked_searches() const { return locked_searches_.load(std::memory_order_relaxed); }
  // For tests: buffers that were made, living or not. A thread that ends gives back those it kept.
  size_t made_buffers();
  // After exit began nothing is given back: destructors that run later take no lock.
  void shut_down() { shut_down_.store(true); }
  bool is_shut_down() const { return shut_down_.load(std::memory_order_relaxed); }

 private:
  friend class Buffer;
  Allocator();

  Buffer* take_buffer();
  void put_buffer(Buffer* buffer) noexcept;
  void return_spare_buffers(int keep) noexcept;
  Buffer* start(Buffer* buffer, Storage* storage, size_t bytes, const char* op,
                const label::Label& label, int stream);
  template <class FindStorage>
  Buffer* allocate(size_t bytes, const char* op, const label::Label& label, int stream,
                   FindStorage find);
  Storage* from_bin(size_t bytes, Bin& bin);
  void free_buffer(Buffer* buffer) noexcept;
  Storage* from_system(size_t bytes, const char* op);
  void replace_smaller(size_t capacity) noexcept;
  Storage* from_cache(size_t bytes);
  // Takes a storage that nobody owns any more: to its queue's bin, the cache or the system.
  void give_back(Storage* storage) noexcept;
  void to_bin(Storage* storage, DeviceQueue* user) noexcept;
  void to_cache_or_system(Storage* storage) noexcept;
  void to_system(Storage* storage) noexcept;
  void harvest() noexcept;
  bool make_room(size_t bytes);
  Storage* new_storage();
  void free_storage(Storage* storage) noexcept;
  void add_active(size_t bytes);
  // What an OutOfMemory says: the sums, and who holds the memory, by op and by stream. With mutex_
  // held.
  std::string breakdown(size_t bytes, const char* op);

  sync::Mutex mutex_{sync::Rank::allocator};
  // All guarded by mutex_.
  SizeClasses cache_;
  size_t total_ = 0;   // taken from the system: what the limit is kept for, exactly
  size_t needed_ = 0;  // the most that was active when more was taken, since the last clear_cache
  Residency residency_;
  std::vector<Bin*> bins_;
  Storage* free_storages_ = nullptr;
  Buffer* free_buffers_ = nullptr;
  std::vector<std::unique_ptr<Buffer[]>> buffer_slabs_;

  sync::Atomic<size_t> active_{0};
  sync::Atomic<size_t> peak_{0};
  sync::Atomic<size_t> cached_{0};
  sync::Atomic<size_t> memory_limit_{0};
  sync::Atomic<size_t> cache_limit_{0};
  sync::Atomic<size_t> live_buffers_{0};
  std::atomic<size_t> locked_searches_{0};
  std::atomic<uint64_t> next_identity_{1};
  std::atomic<bool> shut_down_{false};
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
