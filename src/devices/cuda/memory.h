// The memory of a GPU as a memory space.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "devices/cuda/gpu.h"
#include "devices/cuda/staging.h"
#include "devices/memory_space.h"

namespace holdfast::cuda {

// Storage below a MiB comes from slabs, each of which is cut into pieces of one size: taking memory
// from the driver costs as much as a hundred kernels, and giving it back waits for the GPU. What is
// kept for the next use is the allocator's decision (exec/allocator.h), not that of this class.
class GpuMemory final : public exec::MemorySpace {
 public:
  explicit GpuMemory(Gpu& gpu);

  const char* name() const override { return "gpu"; }
  size_t size() const override { return gpu_.memory_bytes(); }
  // Of a lost GPU there is always memory, which nothing can be done with: commands say by name what
  // has happened, where an allocation could only say that there is no memory.
  bool take(size_t capacity, exec::Storage& storage) noexcept override;
  void release(exec::Storage& storage) noexcept override;
  void read(const exec::Storage& source, size_t begin, void* target, size_t bytes) override;
  void write(exec::Storage& target, size_t begin, const void* source, size_t bytes) override;

  size_t slab_count() const { return slabs_.size(); }

 private:
  struct Slab {
    size_t piece;
    size_t count;
    std::vector<Address> free;
  };
  using Slabs = std::map<Address, Slab>;

  Address take_piece(size_t capacity);
  void release_piece(Address address);

  Gpu& gpu_;
  // As `take` and `release`, these are used by one thread at a time.
  Slabs slabs_;                                                 // by first address
  std::map<size_t, std::vector<Slabs::iterator>> with_pieces_;  // slabs with free pieces, by size
  template <class Copy>
  void copy(Copy copy);

  sync::Mutex mutex_;
  std::vector<std::unique_ptr<Staging>> spare_;  // that no copy uses; guarded by mutex_
};

}  // namespace holdfast::cuda
