#include "exec/allocator.h"

#include <bit>
#include <cstdlib>
#include <cstring>
#include <new>

#include "base/environment.h"
#include "base/fault.h"
#include "base/process.h"
#include "devices/device.h"
#include "exec/buffer_pool.h"
#include "exec/layers/layer.h"
#include "exec/queue.h"
#include "exec/start.h"

namespace holdfast::exec {

namespace {

constexpr size_t huge_page = size_t{2} << 20;

size_t capacity_for(size_t bytes) {
  size_t capacity = SizeClasses::bytes(SizeClasses::of(bytes));
  // mmap works in pages.
  return capacity >= huge_page ? (capacity + 4095) & ~size_t{4095} : capacity;
}

}  // namespace

namespace {

sync::SpinLock allocators_lock;
std::vector<Allocator*> allocators;  // guarded by allocators_lock

}  // namespace

Allocator& Allocator::get() {
  static Allocator* allocator = (start::before_first_buffer(), &add(host_memory()));
  return *allocator;
}

Allocator& Allocator::add(MemorySpace& space) {
  if (!space.is_host()) get();  // the host's is the first
  auto* allocator = new Allocator(space);
  space.allocator = allocator;
  std::lock_guard guard(allocators_lock);
  allocators.push_back(allocator);
  return *allocator;
}

std::vector<Allocator*> Allocator::all() {
  get();
  std::lock_guard guard(allocators_lock);
  return allocators;
}

// Memory of a device is always resident: there the sets are bookkeeping.
Allocator::Allocator(MemorySpace& space)
    : space_(space),
      residency_(space.is_host() ? Residency::system_locks() : Residency::no_locks()) {
  size_t memory = space.size();
  memory_limit_.store(memory - memory / 5);
  cache_limit_.store(memory - memory / 5);
}

void Allocator::register_bin(Bin* bin) {
  std::lock_guard guard(mutex_);
  bins_.push_back(bin);
}

void Allocator::add_active(size_t bytes) {
  size_t now = active_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  size_t peak = peak_.load(std::memory_order_relaxed);
  while (now > peak && !peak_.compare_exchange_weak(peak, now, std::memory_order_relaxed)) {
  }
}

Storage* Allocator::new_storage(sync::Held) {
  if (!free_storages_) {
    // By the slab, never deleted: a dead one can still be looked at.
    constexpr int count = 256;
    Storage* slab = new Storage[count];
    for (int i = 0; i < count; ++i) {
      slab[i].next = free_storages_;
      free_storages_ = &slab[i];
    }
  }
  Storage* storage = free_storages_;
  free_storages_ = storage->next;
  storage->next = nullptr;
  storage->space = &space_;
  return storage;
}

void Allocator::free_storage(Storage* storage, sync::Held) noexcept {
  {
    std::lock_guard guard(storage->lock);
    storage->uses.clear();
  }
  storage->address = storage->bytes = nullptr;
  storage->capacity = 0;
  storage->adopted = storage->mapped = false;
  storage->next = free_storages_;
  free_storages_ = storage;
}

Storage* Allocator::from_cache(size_t bytes, sync::Held) {
  if (active_.load() + bytes > memory_limit_.load()) return nullptr;
  Storage* storage = cache_.take(bytes);
  if (!storage) return nullptr;
  cached_.fetch_sub(storage->capacity, std::memory_order_relaxed);
  add_active(storage->capacity);
  return storage;
}

Storage* Allocator::from_system(size_t bytes, const char* op, sync::Held held) {
  if (bytes > (size_t{1} << 60)) throw_out_of_memory(bytes, op);
  size_t capacity = capacity_for(bytes);
  replace_smaller(capacity, held);
  if (!make_room(capacity, held)) {
    layers::on_limit({LimitReached::Kind::memory, op, bytes, total_, memory_limit_.load()});
    throw_out_of_memory(bytes, op);
  }
  Storage* storage = new_storage(held);
  if (!space_.take(capacity, *storage)) {
    free_storage(storage, held);
    throw_out_of_memory(bytes, op);
  }
  storage->capacity = capacity;
  total_ += capacity;
  add_active(capacity);
  residency_.insert(*storage, held, op);
  return storage;
}

// Sizes that grow, as those of a sequence, leave behind memory that is too small for all that
// follows. Where the cache would make the process hold more than an eighth above what it needed
// at once, smaller storage makes room for larger; never the other way round, so that a program
// which repeats itself finds each of its sizes after a few rounds. Small storage is not worth the
// search.
void Allocator::replace_smaller(size_t capacity, sync::Held held) noexcept {
  constexpr size_t small = 4096;
  needed_ = std::max(needed_, active_.load() + capacity);
  if (capacity < small) return;
  auto fits = [&] { return total_ + capacity <= needed_ + needed_ / 8; };
  if (fits()) return;
  harvest(held);
  while (!fits()) {
    Storage* smaller = cache_.take_smaller(capacity);
    if (!smaller) return;
    cached_.fetch_sub(smaller->capacity);
    to_system(smaller, held);
  }
}

// Shrinks the cache so that `bytes` more fit the limit.
bool Allocator::make_room(size_t bytes, sync::Held held) {
  size_t limit = memory_limit_.load(std::memory_order_relaxed);
  auto fits = [&] { return total_ + bytes <= limit; };
  if (fits()) return true;
  harvest(held);
  cache_.drain([&](Storage*) { return !fits(); },
               [&](Storage* storage) {
                 cached_.fetch_sub(storage->capacity);
                 to_system(storage, held);
               });
  return fits();
}

// Moves what the queues no longer use from their bins to the cache.
void Allocator::harvest(sync::Held held) noexcept {
  for (Bin* bin : bins_) {
    Storage* idle = nullptr;
    {
      std::lock_guard guard(bin->lock);
      bin->classes.drain([](Storage* storage) { return storage->is_idle(); },
                         [&](Storage* storage) {
                           storage->next = idle;
                           idle = storage;
                         });
    }
    while (idle) {
      Storage* storage = idle;
      idle = idle->next;
      storage->next = nullptr;
      cached_.fetch_sub(storage->capacity, std::memory_order_relaxed);
      to_cache_or_system(storage, held);
    }
  }
}

void Allocator::to_system(Storage* storage, sync::Held held) noexcept {
  residency_.erase(*storage, held);
  total_ -= storage->capacity;
  space_.release(*storage);
  free_storage(storage, held);
}

// The storage is idle and no longer counted as active.
void Allocator::to_cache_or_system(Storage* storage, sync::Held held) noexcept {
#if HOLDFAST_CHECKS
  // Whoever reads memory that is gone gets nonsense that is easy to recognise.
  if (storage->bytes)
    std::memset(storage->bytes, 0xcb, std::min(storage->capacity, size_t{64} << 10));
#endif
  if (cached_.load() + storage->capacity <= cache_limit_.load()) {
    cached_.fetch_add(storage->capacity);
    cache_.push(storage);
    return;
  }
  to_system(storage, held);
}

void Allocator::to_bin(Storage* storage, DeviceQueue* user) noexcept {
  active_.fetch_sub(storage->capacity, std::memory_order_relaxed);
  cached_.fetch_add(storage->capacity, std::memory_order_relaxed);
  Bin* bin = bin_of(user);
  std::lock_guard guard(bin->lock);
  bin->classes.push(storage);
}

void Allocator::give_back(Storage* storage) noexcept {
  if (DeviceQueue* user = storage->only_user()) {
    to_bin(storage, user);
    return;
  }
  // Idle; or several queues use it, which cannot be: their lists hold the buffer.
  std::lock_guard guard(mutex_);
  active_.fetch_sub(storage->capacity, std::memory_order_relaxed);
  to_cache_or_system(storage, guard);
}

// --- buffers ---

// Calls `find` for the storage of a new buffer; the buffer goes back when there is none.
template <class FindStorage>
Buffer* Allocator::allocate(size_t bytes, const char* op, const label::Label& label, int stream,
                            FindStorage find) {
  if (fault::hit(fault::Point::allocation)) throw_out_of_memory(bytes, op);
  Buffer* buffer = BufferPool::get().take();
  Storage* storage;
  try {
    storage = find();
  } catch (...) {
    BufferPool::get().put(buffer);
    throw;
  }
  return BufferPool::get().start(buffer, storage, bytes, op, label, stream);
}

Buffer* Allocator::allocate_idle(size_t bytes, const char* op) {
  process::check_usable();
  return allocate(bytes, op, label::current(), -1, [&] {
    std::lock_guard guard(mutex_);
    if (Storage* storage = from_cache(bytes, guard)) return storage;
    harvest(guard);
    if (Storage* storage = from_cache(bytes, guard)) return storage;
    return from_system(bytes, op, guard);
  });
}

Buffer* Allocator::allocate_for_queue(size_t bytes, const char* op, const label::Label& label,
                                      Bin& bin, DeviceQueue* queue) {
  return allocate(bytes, op, label, stream_of(queue), [&] {
    // What the queue itself used before, without the allocator's lock.
    if (Storage* storage = from_bin(bytes, bin)) return storage;
    std::lock_guard guard(mutex_);
    locked_searches_.fetch_add(1, std::memory_order_relaxed);
    if (Storage* storage = from_cache(bytes, guard)) return storage;
    if (total_ + bytes > memory_limit_.load()) {
      harvest(guard);
      if (Storage* storage = from_cache(bytes, guard)) return storage;
    }
    return from_system(bytes, op, guard);
  });
}

Storage* Allocator::from_bin(size_t bytes, Bin& bin) {
  if (!environment::settings().recycle) return nullptr;
  Storage* storage;
  {
    std::lock_guard guard(bin.lock);
    storage = bin.classes.take(bytes);
  }
  if (!storage) return nullptr;
  add_active(storage->capacity);
  cached_.fetch_sub(storage->capacity, std::memory_order_relaxed);
  return storage;
}

Buffer* Allocator::adopt(void* pointer, size_t bytes, std::function<void(void*)> deleter) {
  process::check_usable();
  Buffer* buffer = BufferPool::get().take();
  Storage* storage;
  try {
    std::lock_guard guard(mutex_);
    storage = new_storage(guard);
  } catch (...) {
    BufferPool::get().put(buffer);
    throw;
  }
  storage->address = pointer;
  storage->bytes = static_cast<char*>(pointer);
  storage->capacity = bytes;
  storage->adopted = true;
  storage->deleter = std::move(deleter);
  return BufferPool::get().start(buffer, storage, bytes, "adopted", label::current(), -1);
}

void Allocator::throw_out_of_memory(size_t bytes, const char* op) {
  const std::string memory = space_.is_host() ? "memory" : space_.name() + std::string(" memory");
  throw OutOfMemory(std::string("[") + op + "] cannot allocate " + std::to_string(bytes) +
                    " bytes: active " + memory + " " + std::to_string(active_.load()) + ", cache " +
                    std::to_string(cached_.load()) + ", limit " +
                    std::to_string(memory_limit_.load()) +
                    " bytes; free arrays, or raise the limit with set_memory_limit. " +
                    BufferPool::get().holders(space_));
}

size_t Allocator::active() {
  std::lock_guard guard(mutex_);
  harvest(guard);
  return active_.load();
}

size_t Allocator::peak() { return peak_.load(); }

void Allocator::reset_peak() {
  std::lock_guard guard(mutex_);
  harvest(guard);
  peak_.store(active_.load());
}

size_t Allocator::cached() {
  std::lock_guard guard(mutex_);
  harvest(guard);
  return cached_.load();
}

size_t Allocator::total() {
  std::lock_guard guard(mutex_);
  return total_;
}

size_t Allocator::set_memory_limit(size_t limit) {
  std::lock_guard guard(mutex_);
  size_t previous = memory_limit_.exchange(limit);
  make_room(0, guard);
  return previous;
}

size_t Allocator::set_wired_limit(size_t limit) {
  size_t memory = space_.size();
  if (limit > memory) {
    throw std::invalid_argument(std::string("[set_wired_limit] expected at most the ") +
                                (space_.is_host() ? "machine" : space_.name()) + "'s " +
                                std::to_string(memory) + " bytes, got " + std::to_string(limit));
  }
  std::lock_guard guard(mutex_);
  return residency_.set_limit(limit, guard);
}

size_t Allocator::set_cache_limit(size_t limit) {
  std::lock_guard guard(mutex_);
  size_t previous = cache_limit_.exchange(limit);
  cache_.drain([&](Storage*) { return cached_.load() > limit; },
               [&](Storage* storage) {
                 cached_.fetch_sub(storage->capacity);
                 to_system(storage, guard);
               });
  return previous;
}

void Allocator::clear_cache() {
  std::unique_lock guard(mutex_);
  harvest(guard);
  needed_ = 0;
  guard.unlock();
  set_cache_limit(set_cache_limit(0));
}

}  // namespace holdfast::exec
