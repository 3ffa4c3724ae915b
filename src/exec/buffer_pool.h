// BufferPool: the buffers of the process, whatever memory they are in.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/sync.h"
#include "devices/memory.h"

namespace holdfast::exec {

class BufferPool {
 public:
  static BufferPool& get();
  // Objects are made by the slab, so that one that died can still be looked at.
  static constexpr int slab_objects = 256;

  // A buffer without a life, to be started or put back.
  Buffer* take();
  void put(Buffer* buffer) noexcept;
  // Gives a buffer of the pool its life, with one owner.
  Buffer* start(Buffer* buffer, Storage* storage, size_t bytes, const char* op,
                const label::Label& label, int stream);
  // Its life is over.
  void end(Buffer* buffer) noexcept;

  // Of the next buffer: identities grow.
  uint64_t next_identity() const { return next_identity_.load(std::memory_order_relaxed); }
  // Who holds memory of the space, by op and by stream, for messages.
  std::string holders(const MemorySpace& space);

  // Live buffers, for tests: nothing may be left behind.
  size_t live() const { return live_.load(); }
  // For tests: buffers that were made, living or not. A thread that ends gives back those it kept.
  size_t made();
  // For tests: how often a buffer was looked for with the lock held.
  size_t locked_searches() const { return locked_searches_.load(std::memory_order_relaxed); }

  // After exit began nothing is given back: destructors that run later take no lock.
  void shut_down() { shut_down_.store(true); }
  bool is_shut_down() const { return shut_down_.load(std::memory_order_relaxed); }

 private:
  BufferPool() = default;
  void return_spare(int keep) noexcept;

  sync::Mutex mutex_{sync::Rank::buffer_pool};
  // Guarded by mutex_.
  Buffer* free_ = nullptr;
  std::vector<std::unique_ptr<Buffer[]>> slabs_;

  sync::Atomic<size_t> live_{0};
  std::atomic<size_t> locked_searches_{0};
  std::atomic<uint64_t> next_identity_{1};
  std::atomic<bool> shut_down_{false};
};

}  // namespace holdfast::exec
