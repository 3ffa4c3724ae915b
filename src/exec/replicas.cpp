#include "exec/replicas.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <utility>

#include "base/fault.h"
#include "exec/allocator.h"
#include "exec/queue.h"

namespace holdfast::exec {
namespace {

bool is_in(const Buffer& buffer, const MemorySpace& space) {
  return buffer.storage() && buffer.storage()->space == &space;
}

// Made when a buffer needs a second space, kept for its life.
Replicas& replicas_of(Buffer& original) {
  if (Replicas* there = original.replicas()) return *there;
  return original.set_replicas(std::make_unique<Replicas>());
}

}  // namespace

Replica Replicas::find(Buffer& original, const MemorySpace& space) {
  Replicas* replicas = original.replicas();
  if (!replicas) {
    if (!is_in(original, space)) return {};
    return {BufferOwner::share(&original)};
  }
  std::lock_guard guard(replicas->lock);
  if (replicas->original_is_valid && is_in(original, space)) return {BufferOwner::share(&original)};
  for (const Replica& replica : replicas->valid) {
    if (is_in(*replica.buffer, space) && !replica.buffer->failure())
      return {BufferOwner::share(replica.buffer.get()), replica.copied_by};
  }
  return {};
}

Replica Replicas::any(Buffer& original) {
  Replicas* replicas = original.replicas();
  if (!replicas) return {BufferOwner::share(&original)};
  std::lock_guard guard(replicas->lock);
  if (replicas->original_is_valid) return {BufferOwner::share(&original)};
  const Replica& first = replicas->valid.front();
  return {BufferOwner::share(first.buffer.get()), first.copied_by};
}

void Replicas::prepare(Buffer& original) {
  Replicas& replicas = replicas_of(original);
  std::lock_guard guard(replicas.lock);
  replicas.valid.reserve(replicas.valid.size() + 1);
}

void Replicas::add(Buffer& original, Replica replica) {
  Replicas& replicas = replicas_of(original);
  const MemorySpace& space = space_of(*replica.buffer);
  std::lock_guard guard(replicas.lock);
  for (Replica& same : replicas.valid) {
    if (!is_in(*same.buffer, space)) continue;
    if (same.buffer->failure()) std::swap(same, replica);
    return;  // the caller drops the other one, without the lock
  }
  replicas.valid.push_back(std::move(replica));
}

void Replicas::keep_only(Buffer& original, Replica valid) {
  const bool is_original = valid.buffer.get() == &original;
  if (is_original && !original.replicas()) return;
  Replicas& replicas = replicas_of(original);
  SmallVector<Replica, 2> dropped;
  std::lock_guard guard(replicas.lock);
  replicas.original_is_valid = is_original;
  dropped = std::move(replicas.valid);
  if (!is_original) replicas.valid.push_back(std::move(valid));
}

namespace {

// All work on the storage that was submitted or encoded so far.
void wait_for_uses(Storage& storage) {
  SmallVector<Stamp, 2> uses;
  {
    std::lock_guard guard(storage.lock);
    uses = storage.uses;
  }
  for (const Stamp& use : uses) {
    if (!is_executed(use)) static_cast<Queue*>(use.queue->owner)->wait(use.serial);
  }
}

// What a space throws; injected failures as well.
void read_storage(const Storage& from, size_t begin, void* target, size_t bytes) {
  if (!from.space->is_host() && fault::hit(fault::Point::migration))
    throw std::runtime_error("injected failure of a copy to the host");
  from.space->read(from, begin, target, bytes);
}

BufferOwner copy_to_host(Buffer& original) {
  Replica source = Replicas::any(original);
  Storage& from = *source.buffer->storage();
  wait_for_uses(from);
  if (Failure* failure = source.buffer->failure()) failure->raise();
  BufferOwner copy =
      BufferOwner::adopt(Allocator::get().allocate_idle(original.size(), "copy to the host"));
  read_storage(from, 0, copy->storage()->bytes, original.size());
  Replicas::add(original, {BufferOwner::share(copy.get())});
  // Another thread's, if that was first: all see one.
  Replica kept = Replicas::find(original, host_memory());
  return kept.buffer ? std::move(kept.buffer) : std::move(copy);
}

}  // namespace

void* host_address_of_copies(Buffer& original, bool writes) {
  if (Queue* encoding = Queue::encoding()) return encoding->host_address_in_op(original);
  Replica on_host = Replicas::find(original, host_memory());
  if (on_host.copied_by.queue) {
    static_cast<Queue*>(on_host.copied_by.queue->owner)->wait(on_host.copied_by.serial);
  }
  if (!on_host.buffer || on_host.buffer->failure()) on_host = {copy_to_host(original)};
  void* address = on_host.buffer->storage()->address;
  if (writes) Replicas::keep_only(original, {std::move(on_host.buffer)});
  return address;
}

void read_bytes(Buffer& original, size_t begin, void* target, size_t bytes) {
  if (Queue::encoding() || (!original.replicas() && space_of(original).is_host())) {
    std::memcpy(target, static_cast<char*>(host_address(original, false)) + begin, bytes);
    return;
  }
  Replica on_host = Replicas::find(original, host_memory());
  Replica source = on_host.buffer ? std::move(on_host) : Replicas::any(original);
  Storage& from = *source.buffer->storage();
  if (!from.space->is_host()) {
    wait_for_uses(from);
  } else if (source.copied_by.queue) {
    static_cast<Queue*>(source.copied_by.queue->owner)->wait(source.copied_by.serial);
  }
  if (Failure* failure = source.buffer->failure()) failure->raise();
  read_storage(from, begin, target, bytes);
}

}  // namespace holdfast::exec
