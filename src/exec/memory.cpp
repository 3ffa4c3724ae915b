// The allocator and the memory counters as the public headers have them.
#include <algorithm>

#include <holdfast/allocator.h>
#include <holdfast/memory.h>
#include <holdfast/metal.h>

#include "exec/allocator.h"
#include "exec/layers/layer.h"
#include "exec/queue.h"
#include "exec/runtime.h"

namespace holdfast {

namespace {

// Counters are of all memory together.
size_t sum(size_t (exec::Allocator::*counter)()) {
  size_t total = 0;
  for (exec::Allocator* allocator : exec::Allocator::all()) total += (allocator->*counter)();
  return total;
}

// Limits are of the default device's memory.
exec::Allocator& limited() { return *exec::Runtime::memory_of(default_device()).allocator; }

}  // namespace

size_t get_active_memory() { return sum(&exec::Allocator::active); }
size_t get_peak_memory() { return sum(&exec::Allocator::peak); }
void reset_peak_memory() {
  for (exec::Allocator* allocator : exec::Allocator::all()) allocator->reset_peak();
}
size_t get_cache_memory() { return sum(&exec::Allocator::cached); }
void clear_cache() {
  for (exec::Allocator* allocator : exec::Allocator::all()) allocator->clear_cache();
}
size_t set_memory_limit(size_t limit) { return limited().set_memory_limit(limit); }
size_t get_memory_limit() { return limited().memory_limit(); }
size_t set_cache_limit(size_t limit) { return limited().set_cache_limit(limit); }
size_t set_wired_limit(size_t limit) { return limited().set_wired_limit(limit); }

namespace memory {

namespace {

Limits limits_of(exec::Allocator& allocator) {
  return {allocator.memory_limit(), allocator.cache_limit(), allocator.residency().limit()};
}

void set(exec::Allocator& allocator, const Limits& limits) {
  if (limits.wired) allocator.set_wired_limit(*limits.wired);  // first: the one that may throw
  if (limits.memory) allocator.set_memory_limit(*limits.memory);
  if (limits.cache) allocator.set_cache_limit(*limits.cache);
}

}  // namespace

Limits limits() { return limits_of(limited()); }

Scope::Scope(const Limits& wanted) : of_(limited()) {
  Limits now = limits_of(of_);
  if (wanted.memory) found_.memory = now.memory;
  if (wanted.cache) found_.cache = now.cache;
  if (wanted.wired) found_.wired = now.wired;
  set(of_, wanted);
}

Scope::~Scope() { set(of_, found_); }

}  // namespace memory

namespace metal {

namespace {
exec::Residency& residency() { return limited().residency(); }
}  // namespace

bool ResidencySets::enabled() const { return true; }
size_t ResidencySets::wired_size() const { return residency().wired_size(); }
size_t ResidencySets::refused_size() const { return residency().refused_size(); }
size_t ResidencySets::num_sets() const { return residency().num_sets(); }
size_t ResidencySets::max_bytes_per_set() const { return residency().max_bytes_per_set(); }
size_t ResidencySets::set_max_bytes_per_set(size_t bytes) {
  return residency().set_max_bytes_per_set(bytes);
}

ResidencySets& residency_sets() {
  static ResidencySets one;
  return one;
}

}  // namespace metal

namespace allocator {
namespace {

class Forwarding final : public Allocator {
 public:
  Buffer malloc(size_t size) override { return allocator::malloc(size); }
  void free(Buffer buffer) override { allocator::free(buffer); }
  size_t size(Buffer buffer) const override {
    if (!buffer.ptr()) return 0;
    const auto& allocation = *exec::buffer_of(buffer);
    const auto* storage = allocation.storage();
    return storage ? std::max(allocation.size(), storage->capacity) : allocation.size();
  }
  Buffer make_buffer(void* ptr, size_t size) override { return allocator::make_buffer(ptr, size); }
  void release(Buffer buffer) override { allocator::release(buffer); }
};

}  // namespace

Allocator& allocator() {
  static Allocator* forwarding = new Forwarding;
  return *forwarding;
}

void* Buffer::raw_ptr() const {
  if (!handle_) return nullptr;
  exec::layers::on_address(*static_cast<exec::Buffer*>(handle_));
  return exec::host_address(*static_cast<exec::Buffer*>(handle_), true);
}

Buffer malloc(size_t size) {
  // For an output of an op on a device, which works on memory of its own.
  exec::Queue* queue = exec::Queue::encoding();
  if (queue && !queue->device().memory.is_host()) return queue->allocate(size);
  return Buffer(exec::Allocator::get().allocate_idle(size, "malloc"));
}

void free(Buffer buffer) {
  if (buffer.ptr()) exec::buffer_of(buffer)->release_owner();
}

Buffer make_buffer(void* ptr, size_t size) {
  return Buffer(exec::Allocator::get().adopt(ptr, size, nullptr));
}

void release(Buffer buffer) { free(buffer); }

bool can_reuse_alien_buffer(void* ptr) { return ptr != nullptr; }

}  // namespace allocator
}  // namespace holdfast
