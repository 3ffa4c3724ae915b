// Buffers as handles, for code that fills an array's memory by hand.
#pragma once

#include <cstddef>

namespace holdfast::allocator {

// A handle to one allocation. Copying it copies the handle, not the ownership: pair `malloc` with
// `free`, or hand the buffer to an array.
class Buffer {
 public:
  explicit Buffer(void* handle) : handle_(handle) {}
  // The handle itself.
  void* ptr() { return handle_; }
  const void* ptr() const { return handle_; }
  // The bytes, for the host.
  void* raw_ptr() const;

 private:
  void* handle_;
};

class Allocator {
 public:
  Allocator() = default;
  virtual ~Allocator() = default;
  Allocator(const Allocator&) = delete;
  Allocator& operator=(const Allocator&) = delete;
  virtual Buffer malloc(size_t size) = 0;
  virtual void free(Buffer buffer) = 0;
  virtual size_t size(Buffer buffer) const = 0;
  virtual Buffer make_buffer(void*, size_t) { return Buffer{nullptr}; }
  virtual void release(Buffer) {}
};

Allocator& allocator();

// Host memory whose last use has completed. Throws OutOfMemory beyond the limit; malloc(0) is
// legal.
Buffer malloc(size_t size);
void free(Buffer buffer);
// Wraps a pointer that stays the caller's; `release` gives up the wrapper and leaves the pointer.
Buffer make_buffer(void* ptr, size_t size);
void release(Buffer buffer);
bool can_reuse_alien_buffer(void* ptr);

}  // namespace holdfast::allocator
