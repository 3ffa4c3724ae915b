// The allocator and the memory counters as the public headers have them.
#include <holdfast/allocator.h>
#include <holdfast/memory.h>
#include <holdfast/metal.h>

#include "exec/allocator.h"
#include "exec/layers/layer.h"

namespace holdfast {

size_t get_active_memory() { return exec::Allocator::get().active(); }
size_t get_peak_memory() { return exec::Allocator::get().peak(); }
void reset_peak_memory() { exec::Allocator::get().reset_peak(); }
size_t get_cache_memory() { return exec::Allocator::get().cached(); }
size_t set_memory_limit(size_t limit) { return exec::Allocator::get().set_memory_limit(limit); }
size_t get_memory_limit() { return exec::Allocator::get().memory_limit(); }
size_t set_cache_limit(size_t limit) { return exec::Allocator::get().set_cache_limit(limit); }
void clear_cache() { exec::Allocator::get().clear_cache(); }
size_t set_wired_limit(size_t limit) { return exec::Allocator::get().set_wired_limit(limit); }

namespace memory {

Limits limits() {
  exec::Allocator& allocator = exec::Allocator::get();
  return {allocator.memory_limit(), allocator.cache_limit(), allocator.residency().limit()};
}

namespace {

void set(const Limits& limits) {
  if (limits.wired) set_wired_limit(*limits.wired);  // first: the one that may throw
  if (limits.memory) set_memory_limit(*limits.memory);
  if (limits.cache) set_cache_limit(*limits.cache);
}

}  // namespace

Scope::Scope(const Limits& wanted) {
  Limits now = limits();
  if (wanted.memory) found_.memory = now.memory;
  if (wanted.cache) found_.cache = now.cache;
  if (wanted.wired) found_.wired = now.wired;
  set(wanted);
}

Scope::~Scope() { set(found_); }

}  // namespace memory

namespace metal {

// The one residency of the process.
namespace {
exec::Residency& residency() { return exec::Allocator::get().residency(); }
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
    return buffer.ptr() ? exec::buffer_of(buffer)->size() : 0;
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
  exec::Storage* storage = static_cast<exec::Buffer*>(handle_)->storage();
  return storage ? storage->address : nullptr;
}

Buffer malloc(size_t size) {
  return Buffer(exec::Allocator::get().allocate_for_host(size, "malloc"));
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
