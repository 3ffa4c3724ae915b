// The allocator and the memory counters as the public headers have them, and labels.
#include <holdfast/allocator.h>
#include <holdfast/label.h>
#include <holdfast/memory.h>

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
size_t set_wired_limit(size_t) { return 0; }

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

namespace label {
namespace {

Label& mine() {
  static thread_local Label label;
  return label;
}

}  // namespace

Scope::Scope(std::string name) : previous_(mine()) {
  if (previous_) name = *previous_ + "/" + name;
  mine() = std::make_shared<const std::string>(std::move(name));
}

Scope::~Scope() { mine() = previous_; }

const Label& current() { return mine(); }

}  // namespace label
}  // namespace holdfast
