#include "faults/failing_new.h"

#include <cstddef>
#include <cstdlib>
#include <new>

namespace holdfast::testing::failing_new {
namespace {

struct State {
  uint64_t remaining = 0;  // calls until the failing one; 0: not armed
  bool persistent = false;
  bool has_failed = false;
};
thread_local State state;

bool fails() {
  if (state.remaining == 0) return false;
  if (state.remaining > 1) {
    --state.remaining;
    return false;
  }
  if (!state.persistent) state.remaining = 0;
  state.has_failed = true;
  return true;
}

}  // namespace

void* allocate(size_t size, size_t alignment) {
  if (fails()) throw std::bad_alloc();
  void* memory =
      alignment <= alignof(std::max_align_t)
          ? std::malloc(size ? size : 1)
          : std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
  if (!memory) throw std::bad_alloc();
  return memory;
}

void arm(uint64_t k, bool persistent) { state = {k, persistent, false}; }

void pause() { state.remaining = 0; }

bool disarm() {
  bool has_failed = state.has_failed;
  state = {};
  return has_failed;
}

}  // namespace holdfast::testing::failing_new

void* operator new(size_t size) { return holdfast::testing::failing_new::allocate(size, 1); }
void* operator new[](size_t size) { return holdfast::testing::failing_new::allocate(size, 1); }
void* operator new(size_t size, std::align_val_t alignment) {
  return holdfast::testing::failing_new::allocate(size, static_cast<size_t>(alignment));
}
void* operator new[](size_t size, std::align_val_t alignment) {
  return holdfast::testing::failing_new::allocate(size, static_cast<size_t>(alignment));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t, std::align_val_t) noexcept { std::free(memory); }
