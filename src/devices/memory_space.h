// MemorySpace: the memory of a device. Storage lives in one space; a buffer that another device
// needs is copied (exec/replicas.h).
#pragma once

#include <cstddef>

#include "devices/memory.h"

namespace holdfast::exec {

class Allocator;

class MemorySpace {
 public:
  virtual ~MemorySpace() = default;
  MemorySpace() = default;
  MemorySpace(const MemorySpace&) = delete;
  MemorySpace& operator=(const MemorySpace&) = delete;

  virtual const char* name() const = 0;  // a literal: "host", "gpu"
  // Is it the memory of the process, where any thread may use Storage::address?
  virtual bool is_host() const { return false; }
  // Bytes that can be taken in all.
  virtual size_t size() const = 0;

  // Takes `capacity` bytes, aligned to 64, and says in `storage` where they are. False when there
  // are no more. The caller (the allocator) sees to it that no two of `take` and `release` run at
  // once.
  virtual bool take(size_t capacity, Storage& storage) noexcept = 0;
  virtual void release(Storage& storage) noexcept = 0;

  // Copies bytes from and to host memory at once: nothing that is in flight may use them. Throw
  // what went wrong. Any thread.
  virtual void read(const Storage& source, size_t begin, void* target, size_t bytes) = 0;
  virtual void write(Storage& target, size_t begin, const void* source, size_t bytes) = 0;

  // Made with Allocator::add; never destroyed.
  Allocator* allocator = nullptr;
};

// The memory of the process.
MemorySpace& host_memory();

inline MemorySpace& space_of(const Buffer& buffer) { return *buffer.storage()->space; }

}  // namespace holdfast::exec
