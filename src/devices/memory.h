// Storage and Buffer: the bytes, and one logical life of them.
//
//   array::Data   what the user's arrays share; its count decides donation
//   Buffer        one allocation: an identity that is never reused. Owners (array::Data, a user's
//                 handle) and command lists hold it.
//   Storage       the bytes, in one memory space. Recycling moves a Storage into a new Buffer.
//   Replicas      the same bytes in other spaces: a Buffer for each (exec/replicas.h)
//
// Buffers and Storages come from pools that are never unmapped: looking at a dead one is safe, and
// its identity tells.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include <holdfast/allocator.h>
#include <holdfast/label.h>
#include <holdfast/small_vector.h>

#include "base/ref.h"
#include "base/sync.h"
#include "devices/failure.h"

namespace holdfast::exec {

struct DeviceQueue;
class MemorySpace;
struct Replicas;

// "Used by list `serial` of `queue`."
struct Stamp {
  DeviceQueue* queue;
  uint64_t serial;
};

// What encoding and running a command looks at is in its first cache line.
struct alignas(64) Storage {
  MemorySpace* space = nullptr;
  // For the host where the space is the host's; elsewhere the device's name for it.
  void* address = nullptr;
  // Where the commands that run on the host's cores find the bytes; null where they cannot.
  char* bytes = nullptr;
  bool adopted = false;  // a user's pointer: never recycled, `deleter` runs at the end
  bool mapped = false;   // host memory: from mmap, else from aligned_alloc
  // Of exec::Residency: the set it is in, or -1; did the system refuse to lock it?
  int8_t residency_set = -1;
  bool residency_refused = false;

  // The last use of each queue that has not been seen to complete. Guarded by `lock`.
  sync::SpinLock lock{sync::Rank::storage};
  SmallVector<Stamp, 2> uses;

  size_t capacity = 0;
  std::function<void(void*)> deleter;
  Storage* next = nullptr;  // in a free list of the allocator or of a queue, guarded by its lock

  void stamp(DeviceQueue* queue, uint64_t serial);
  // Have the commands that use this storage been executed, leaving out those of `except`?
  bool is_idle(const DeviceQueue* except = nullptr);
  // The one queue whose commands still use it and may reuse it; null when there is none or there
  // are several.
  DeviceQueue* only_user();
};

// What encoding and running a command looks at is in its first cache line.
class alignas(64) Buffer {
 public:
  uint64_t identity() const { return identity_.load(std::memory_order_relaxed); }
  size_t size() const { return size_; }
  const char* op() const { return op_.load(std::memory_order_relaxed); }
  // The stream whose op it was made for, or -1: for the host.
  int stream() const { return stream_.load(std::memory_order_relaxed); }
  const label::Label& label() const { return label_; }
  Storage* storage() const { return storage_.load(std::memory_order_relaxed); }

  // Owners.
  void retain_owner() { counts_.fetch_add(one_owner, std::memory_order_relaxed); }
  // The last owner's release gives the storage to the queue that still uses it, if only one does.
  void release_owner() noexcept;
  // Runs `finalizer(handle)` when the buffer ends, before its storage is given back; the finalizer
  // owns one reference then, and gives it up with allocator::free or allocator::release.
  void release_owner_with(std::function<void(allocator::Buffer)> finalizer) noexcept;

  // Command lists.
  void retain_for_list() { counts_.fetch_add(1, std::memory_order_relaxed); }
  void release_from_list() noexcept;

  // The first failure of a command that writes this buffer sticks.
  void fail(const Ref<Failure>& failure) noexcept;
  Failure* failure() const { return failure_.load(std::memory_order_acquire); }

  // Its copies in other memory spaces; null: it never had any (exec/replicas.h).
  Replicas* replicas() const { return replicas_.load(std::memory_order_acquire); }
  // Sets them unless another thread has: what is set then.
  Replicas& set_replicas(std::unique_ptr<Replicas> replicas);
  std::unique_ptr<Replicas> take_replicas();

  uint32_t owner_count() const {
    return static_cast<uint32_t>(counts_.load(std::memory_order_relaxed) >> 32);
  }

 private:
  friend class Allocator;
  friend class BufferPool;
  friend class DeferredDeleters;
  struct Finalizer {
    std::function<void(allocator::Buffer)> run;
    Finalizer* next;
  };
  static constexpr uint64_t one_owner = uint64_t{1} << 32;

  void retire() noexcept;
  static void retire_deferred() noexcept;

  // Owners in the high half, command lists in the low one: one word, so that "the last owner went
  // while lists remain" is seen exactly once.
  sync::Atomic<uint64_t> counts_{0};
  std::atomic<uint64_t> identity_{0};  // 0: dead, in the pool
  size_t size_ = 0;
  // Atomic because whoever runs out of memory looks at all buffers; else owned by its holders.
  std::atomic<Storage*> storage_{nullptr};
  std::atomic<const char*> op_{""};
  std::atomic<int> stream_{-1};
  sync::Atomic<Failure*> failure_{nullptr};
  std::atomic<Replicas*> replicas_{nullptr};
  label::Label label_;
  sync::Atomic<Finalizer*> finalizers_{nullptr};
  // The record of the first one, so that letting go of a buffer needs no memory.
  Finalizer first_finalizer_{};
  sync::Atomic<bool> first_finalizer_used_{false};
  Buffer* next_ = nullptr;  // in the pool, or among those whose deleters are deferred
};

// While one lives on a thread, buffers that end there and have a deleter of the user's wait for
// `to_run`: a deleter may evaluate and wait, which completion must not.
class DeferredDeleters {
 public:
  DeferredDeleters();
  ~DeferredDeleters();
  DeferredDeleters(const DeferredDeleters&) = delete;
  DeferredDeleters& operator=(const DeferredDeleters&) = delete;
  // Runs what was deferred on the calling thread; null when there is nothing.
  using Run = void (*)();
  Run to_run() const;

 private:
  bool outer_;
};

inline Buffer* buffer_of(const allocator::Buffer& handle) {
  return static_cast<Buffer*>(const_cast<void*>(handle.ptr()));
}

}  // namespace holdfast::exec
