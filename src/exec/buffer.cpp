// The lives of buffers, and the stamps on their storage.
#include <new>

#include "base/environment.h"
#include "devices/device.h"
#include "devices/memory.h"
#include "exec/allocator.h"
#include "exec/buffer_pool.h"
#include "exec/layers/layer.h"
#include "exec/queue.h"
#include "exec/replicas.h"

namespace holdfast::exec {

void Storage::stamp(DeviceQueue* queue, uint64_t serial) {
  std::lock_guard guard(lock);
  for (Stamp& use : uses) {
    if (use.queue == queue) {
      use = {queue, serial};
      return;
    }
  }
  // Replace a stamp that no longer says anything before growing.
  for (Stamp& use : uses) {
    if (is_executed(use)) {
      use = {queue, serial};
      return;
    }
  }
  uses.push_back({queue, serial});
}

bool Storage::is_idle(const DeviceQueue* except) {
  std::lock_guard guard(lock);
  for (const Stamp& use : uses) {
    if (use.queue != except && !is_executed(use)) return false;
  }
  return true;
}

DeviceQueue* Storage::only_user() {
  std::lock_guard guard(lock);
  DeviceQueue* user = nullptr;
  for (const Stamp& use : uses) {
    if (is_executed(use)) continue;
    if (user) return nullptr;
    user = use.queue;
  }
  // A queue of another space, which copies it, has no use for it.
  if (user && &user->device.memory != space) return nullptr;
  return user;
}

void Buffer::release_owner() noexcept {
  if (BufferPool::get().is_shut_down()) return;
  // The reference becomes a list's one, so that the buffer outlives what follows.
  uint64_t before = counts_.fetch_sub(one_owner - 1, std::memory_order_acq_rel);
  bool was_last_owner = (before >> 32) == 1;
  bool lists_remain = static_cast<uint32_t>(before) != 0;
  bool is_adopted = storage()->adopted;
  if (was_last_owner && lists_remain && !is_adopted && !finalizers_.load() &&
      environment::settings().recycle) {
    // Only lists use it. If they are of one queue, that queue may reuse the bytes from now on.
    if (DeviceQueue* user = storage()->only_user()) {
      Storage* left = storage();
      storage_.store(nullptr, std::memory_order_relaxed);
      left->space->allocator->to_bin(left, user);
    }
  }
  release_from_list();
}

void Buffer::release_owner_with(std::function<void(allocator::Buffer)> finalizer) noexcept {
  if (BufferPool::get().is_shut_down()) return;
  Finalizer* node = &first_finalizer_;
  if (first_finalizer_used_.exchange(true)) {
    node = new (std::nothrow) Finalizer{};
    // A second deleter of one buffer, and no memory for its record: leaking is the one safe thing.
    if (!node) return;
  }
  node->run = std::move(finalizer);
  node->next = finalizers_.load();
  while (!finalizers_.compare_exchange_weak(node->next, node)) {
  }
  counts_.fetch_sub(one_owner - 1, std::memory_order_acq_rel);
  release_from_list();
}

void Buffer::release_from_list() noexcept {
  if (counts_.fetch_sub(1, std::memory_order_acq_rel) == 1) retire();
}

void Buffer::fail(const Ref<Failure>& failure) noexcept {
  Failure* expected = nullptr;
  failure->retain();
  if (!failure_.compare_exchange_strong(expected, failure.get())) {
    Ref<Failure> not_needed = Ref<Failure>::adopt(failure.get());
  }
}

Replicas& Buffer::set_replicas(std::unique_ptr<Replicas> replicas) {
  Replicas* expected = nullptr;
  if (replicas_.compare_exchange_strong(expected, replicas.get())) return *replicas.release();
  return *expected;
}

std::unique_ptr<Replicas> Buffer::take_replicas() {
  return std::unique_ptr<Replicas>(replicas_.exchange(nullptr));
}

namespace {

thread_local bool is_deferring = false;
thread_local Buffer* deferred_buffers = nullptr;

}  // namespace

DeferredDeleters::DeferredDeleters() : outer_(is_deferring) { is_deferring = true; }

DeferredDeleters::~DeferredDeleters() { is_deferring = outer_; }

DeferredDeleters::Run DeferredDeleters::to_run() const {
  return deferred_buffers ? &Buffer::retire_deferred : nullptr;
}

void Buffer::retire_deferred() noexcept {
  while (Buffer* buffer = deferred_buffers) {
    deferred_buffers = std::exchange(buffer->next_, nullptr);
    buffer->retire();
  }
}

void Buffer::retire() noexcept {
  bool has_deleter = finalizers_.load() || (storage() && storage()->adopted && storage()->deleter);
  if (is_deferring && has_deleter) {
    next_ = std::exchange(deferred_buffers, this);
    return;
  }
  if (Finalizer* finalizer = finalizers_.load()) {
    finalizers_.store(finalizer->next);
    counts_.store(one_owner, std::memory_order_relaxed);  // the finalizer's reference
    auto run = std::exchange(finalizer->run, nullptr);
    if (finalizer == &first_finalizer_)
      first_finalizer_used_.store(false);
    else
      delete finalizer;
    try {
      run(allocator::Buffer(this));
    } catch (...) {
      // A deleter that throws has nobody to tell.
    }
    return;
  }
  layers::on_retire(*this);
  if (replicas()) take_replicas();
  identity_.store(0, std::memory_order_relaxed);
  Ref<Failure> failure = Ref<Failure>::adopt(failure_.exchange(nullptr));
  label_.reset();
  Storage* storage = this->storage();
  storage_.store(nullptr, std::memory_order_relaxed);
  if (storage && storage->adopted) {
    auto deleter = std::move(storage->deleter);
    storage->deleter = nullptr;
    void* pointer = storage->address;
    {
      Allocator& allocator = *storage->space->allocator;
      std::lock_guard guard(allocator.mutex_);
      allocator.free_storage(storage, guard);
    }
    try {
      if (deleter) deleter(pointer);
    } catch (...) {
    }
  } else if (storage) {
    storage->space->allocator->give_back(storage);
  }
  BufferPool::get().end(this);
}

}  // namespace holdfast::exec
