// Replicas: one array's bytes in several memory spaces.
//
// An array holds one buffer, its original. Where a device works on memory of another space, a
// command in front of its own copies the bytes to a buffer there, a replica, which is kept: the
// next use finds it. What is written is valid in one space only, and replicas elsewhere are
// released. So each space has at most one buffer of an array, and these are all equal.
//
//   bound as an input     valid in the device's space, copied if it was not
//   bound as an output    valid in the device's space only
//   read by the host      valid on the host as well
//   written by the host   valid on the host only
#pragma once

#include <utility>

#include <holdfast/small_vector.h>

#include "base/sync.h"
#include "devices/memory_space.h"

namespace holdfast::exec {

// An owner's reference to a buffer.
class BufferOwner {
 public:
  BufferOwner() = default;
  // Takes over a reference.
  static BufferOwner adopt(Buffer* buffer) {
    BufferOwner owner;
    owner.buffer_ = buffer;
    return owner;
  }
  static BufferOwner share(Buffer* buffer) {
    buffer->retain_owner();
    return adopt(buffer);
  }
  BufferOwner(BufferOwner&& other) noexcept : buffer_(std::exchange(other.buffer_, nullptr)) {}
  BufferOwner& operator=(BufferOwner&& other) noexcept {
    std::swap(buffer_, other.buffer_);
    return *this;
  }
  ~BufferOwner() {
    if (buffer_) buffer_->release_owner();
  }
  Buffer* get() const { return buffer_; }
  Buffer& operator*() const { return *buffer_; }
  Buffer* operator->() const { return buffer_; }
  explicit operator bool() const { return buffer_ != nullptr; }

 private:
  Buffer* buffer_ = nullptr;
};

struct Replica {
  BufferOwner buffer;
  // The list that copies it; no queue: it has been copied.
  Stamp copied_by{};
};

struct Replicas {
  sync::SpinLock lock{sync::Rank::replicas};
  // Guarded by lock.
  bool original_is_valid = true;
  SmallVector<Replica, 2> valid;

  // The functions below take an original; any thread.

  // The buffer that is valid in the space: no buffer where there is none, or where copying it
  // failed.
  static Replica find(Buffer& original, const MemorySpace& space);
  // One that is valid somewhere, the original if it is.
  static Replica any(Buffer& original);
  // Memory for one more replica: `add` and `keep_only` take none then.
  static void prepare(Buffer& original);
  // Adds a replica, unless the space has one by now.
  static void add(Buffer& original, Replica replica);
  // Only `valid` is so any more: the original, or a replica.
  static void keep_only(Buffer& original, Replica valid);
};

// The address of a buffer's bytes for the host, which are copied there if need be, after the work
// in flight that uses them; null for a buffer that has lost its storage. With `writes`, only the
// host's are valid afterwards. Throws what went wrong, and OutOfMemory; while the calling thread
// encodes an op, std::logic_error for bytes that are on a device only.
void* host_address_of_copies(Buffer& original, bool writes);
inline void* host_address(Buffer& original, bool writes) {
  Storage* storage = original.storage();
  if (!storage) return nullptr;
  if (storage->space->is_host() && !original.replicas()) [[likely]]
    return storage->address;
  return host_address_of_copies(original, writes);
}

// Reads a few bytes, outside of an op's encoding: elsewhere than on the host it copies these alone.
void read_bytes(Buffer& original, size_t begin, void* target, size_t bytes);

}  // namespace holdfast::exec
