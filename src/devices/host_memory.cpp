#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "base/machine.h"
#include "devices/memory_space.h"

namespace holdfast::exec {
namespace {

constexpr size_t huge_page = size_t{2} << 20;

void* map_huge(size_t capacity) {
  // Over-map by one huge page and trim, so that the kernel can use huge pages from the start.
  size_t length = capacity + huge_page;
  void* base = mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (base == MAP_FAILED) return nullptr;
  uintptr_t start = reinterpret_cast<uintptr_t>(base);
  uintptr_t aligned = (start + huge_page - 1) & ~(huge_page - 1);
  if (aligned > start) munmap(base, aligned - start);
  if (size_t tail = start + length - (aligned + capacity)) {
    munmap(reinterpret_cast<void*>(aligned + capacity), tail);
  }
  void* address = reinterpret_cast<void*>(aligned);
  madvise(address, capacity, MADV_HUGEPAGE);
  return address;
}

class HostMemory final : public MemorySpace {
 public:
  const char* name() const override { return "host"; }
  bool is_host() const override { return true; }
  size_t size() const override { return machine::memory_bytes(); }

  bool take(size_t capacity, Storage& storage) noexcept override {
    storage.mapped = capacity >= huge_page;
    storage.address = storage.mapped ? map_huge(capacity) : std::aligned_alloc(64, capacity);
    storage.bytes = static_cast<char*>(storage.address);
    return storage.address != nullptr;
  }

  void release(Storage& storage) noexcept override {
    storage.mapped ? void(munmap(storage.address, storage.capacity)) : std::free(storage.address);
  }

  void read(const Storage& source, size_t begin, void* target, size_t bytes) override {
    if (bytes > 0) std::memcpy(target, source.bytes + begin, bytes);
  }
  void write(Storage& target, size_t begin, const void* source, size_t bytes) override {
    if (bytes > 0) std::memcpy(target.bytes + begin, source, bytes);
  }
};

}  // namespace

MemorySpace& host_memory() {
  static MemorySpace* memory = new HostMemory;
  return *memory;
}

}  // namespace holdfast::exec
