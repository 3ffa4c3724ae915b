// Residency: memory that is wired, which on the CPU device means pages that are locked.
//
// Storage is packed into sets, as Metal's residency sets: at most `max_sets`, each up to a size
// while there are fewer than that many. Every queue has every set attached, from its start on: a
// set is state of a queue, never a command in it, so that nothing is attached twice however often
// work is captured or replayed. What the wired limit or the system leaves no room for waits, and is
// wired when room comes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <unordered_set>

#include "base/sync.h"
#include "devices/memory.h"

namespace holdfast::exec {

class Residency {
 public:
  static constexpr size_t max_sets = 32;  // Metal's
  static constexpr size_t default_bytes_per_set = size_t{4} << 30;

  // How pages are locked: mlock and munlock, or stand-ins of a test. True when it worked.
  struct Locks {
    bool (*lock)(const void* address, size_t bytes);
    bool (*unlock)(const void* address, size_t bytes);
  };
  static Locks system_locks();
  // Of memory that needs none.
  static Locks no_locks();
  explicit Residency(Locks locks = system_locks()) : locks_(locks) {}

  // Under a lock of the caller, the allocator: no two of these run at once.

  // A storage was taken from the system, for `op`: it is wired, or waits. Never throws.
  void insert(Storage& storage, sync::Held, const char* op = "") noexcept;
  // It goes back to the system. Others may be wired in its place.
  void erase(Storage& storage, sync::Held) noexcept;
  // Returns the previous limit. Raising it wires what waits; lowering it lets go of as much as is
  // above it.
  size_t set_limit(size_t limit, sync::Held) noexcept;

  // Any thread.
  size_t limit() const { return limit_.load(std::memory_order_relaxed); }
  // Bytes that are locked. Never above the limit.
  size_t wired_size() const { return wired_.load(std::memory_order_relaxed); }
  // Bytes that the system refused to lock so far and that wait.
  size_t refused_size() const { return refused_.load(std::memory_order_relaxed); }
  // Sets that have something in them.
  size_t num_sets() const { return set_count_.load(std::memory_order_relaxed); }
  size_t max_bytes_per_set() const { return bytes_per_set_.load(std::memory_order_relaxed); }
  // For what is wired from now on; what is in a set stays there. Returns the previous value.
  size_t set_max_bytes_per_set(size_t bytes);
  // The ablation, for tests: as many sets as there are storages, up to what is kept of them.
  void ignore_max_sets() { set_bound_ = sets_.size(); }

 private:
  struct Set {
    size_t bytes = 0, members = 0;
  };
  bool wire(Storage& storage);
  void unwire(Storage& storage) noexcept;
  void wire_waiting() noexcept;
  size_t choose_set(size_t bytes) const;
  bool lock_pages(const Storage& storage);
  void unlock_pages(const Storage& storage) noexcept;

  const Locks locks_;
  std::array<Set, 127> sets_{};
  // Sets that may be used.
  size_t set_bound_ = max_sets;
  std::unordered_set<Storage*> members_, waiting_;
  // Small storages share pages, and a page has one lock: how many storages want it. Only pages at
  // the ends of a storage can be shared.
  std::unordered_map<uintptr_t, uint32_t> shared_pages_;
  bool has_warned_ = false;

  sync::Atomic<size_t> limit_{0}, wired_{0}, refused_{0}, set_count_{0};
  sync::Atomic<size_t> bytes_per_set_{default_bytes_per_set};
};

}  // namespace holdfast::exec
