// Memory for small objects that come and go by the ten thousand (graph nodes, primitives): each
// thread keeps the blocks that were freed on it. Test builds leave them to the heap, which the
// sanitizers watch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>

#include "base/sync.h"

#ifndef HOLDFAST_CHECKS
#define HOLDFAST_CHECKS 0
#endif

namespace holdfast {

template <size_t Size>
class BlockPool {
 public:
  static void* take() {
    if (Block* block = free_) {
      free_ = block->next;
      --count_;
      // The next one has left the cache if it was freed long ago.
      const auto next = reinterpret_cast<uintptr_t>(free_);  // or 0: an address, not a pointer
      for (size_t at = 0; at < Size; at += 64) {
        __builtin_prefetch(reinterpret_cast<char*>(next + at), 1);
      }
      return block;
    }
    return ::operator new(Size);
  }

  static void give(void* memory) noexcept {
    if (count_ >= kept) {
      ::operator delete(memory);
      return;
    }
    if (!registered_) {
      registered_ = true;
      sync::at_thread_exit(&free_all, nullptr);
    }
    auto* block = static_cast<Block*>(memory);
    block->next = free_;
    free_ = block;
    ++count_;
  }

 private:
  struct Block {
    Block* next;
  };
  static_assert(Size >= sizeof(Block));
  static constexpr int kept = HOLDFAST_CHECKS ? 0 : 16384;

  static void free_all(void*) {
    while (Block* block = free_) {
      free_ = block->next;
      ::operator delete(block);
    }
    count_ = kept;  // what is freed later on this thread goes to the heap
  }

  static inline constinit thread_local Block* free_ = nullptr;
  static inline constinit thread_local int count_ = 0;
  static inline constinit thread_local bool registered_ = false;
};

// For std::allocate_shared.
template <typename T>
struct PoolAllocator {
  using value_type = T;
  PoolAllocator() = default;
  template <typename U>
  PoolAllocator(const PoolAllocator<U>&) noexcept {}

  // Objects of similar sizes share a pool.
  using Pool = BlockPool<(sizeof(T) + 31) / 32 * 32>;
  static_assert(alignof(T) <= alignof(std::max_align_t));
  T* allocate(size_t) { return static_cast<T*>(Pool::take()); }
  void deallocate(T* object, size_t) noexcept { Pool::give(object); }
  bool operator==(const PoolAllocator&) const = default;
};

}  // namespace holdfast
