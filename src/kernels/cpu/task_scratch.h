// Memory for one task after the other, freed when the range of tasks ends.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>

namespace holdfast::kernels::cpu {

// Aligned to 64 bytes; null for no bytes. Throws std::bad_alloc.
class TaskScratch {
 public:
  explicit TaskScratch(size_t bytes) {
    constexpr size_t alignment = 64;
    if (bytes == 0) return;
    memory_.reset(std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment));
    if (memory_ == nullptr) throw std::bad_alloc();
  }
  void* get() const { return memory_.get(); }

 private:
  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };
  std::unique_ptr<void, Free> memory_;
};

}  // namespace holdfast::kernels::cpu
