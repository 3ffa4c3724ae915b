// Queue: what its commands work on is brought into the memory of its device.
#include <algorithm>
#include <stdexcept>
#include <string>

#include "exec/file_origins.h"
#include "exec/queue.h"
#include "exec/runtime.h"

namespace holdfast::exec {

bool Queue::is_ordered_after(const Stamp& stamp) const {
  if (!stamp.queue || stamp.queue == device_queue_.get()) return true;
  if (is_executed(stamp)) {
    layers::on_observe(*stamp.queue, stamp.serial);
    return true;
  }
  return open_ && std::any_of(open_->waits.begin(), open_->waits.end(), [&](const Stamp& wait) {
           return wait.queue == stamp.queue && wait.serial >= stamp.serial;
         });
}

// A command in front of the one whose bindings are being collected.
void Queue::add_copy(Buffer* from, Buffer* to) {
  CommandList& list = open();
  retain(from, from->storage());
  retain(to, to->storage());
  const auto bytes = static_cast<int64_t>(from->size());
  auto binding = [&](Buffer* buffer, bool writes) {
    return Binding{buffer, buffer->identity(), buffer->storage(), 0, bytes, writes};
  };
  const uint32_t first = first_pending_binding_;
  list.bindings.insert(list.bindings.begin() + first, {binding(from, false), binding(to, true)});
  first_pending_binding_ += 2;
  Command& command = list.commands.emplace_back();
  command.kind = Command::Kind::copy;
  command.detail = memory_.is_host() ? "copy to the host" : "copy to the device";
  command.source = {0, 0};
  command.target = {1, 0};
  command.bytes = from->size();
  command.work = 2 * bytes;
  take_bindings(first, 2);
  FileOrigins::get().note_copy(*from, *to);
}

Buffer* Queue::written_here(const Buffer* original) const {
  for (const Written& written : written_) {
    if (written.original.get() == original) return written.here.get();
  }
  return nullptr;
}

Buffer* Queue::readable_here(Buffer* original) {
  if (Buffer* written = written_here(original)) return written;
  for (const Migration& migration : migrations_) {
    if (migration.original.get() == original) return migration.copy.get();
  }
  Replica there = Replicas::find(*original, memory_);
  if (there.buffer && is_ordered_after(there.copied_by)) {
    // The original, or kept for this op: another thread may write the array on the host.
    Buffer* buffer = there.buffer.get();
    if (buffer != original) {
      migrations_.push_back({BufferOwner::share(original), std::move(there.buffer), false});
    }
    return buffer;
  }
  Replica source = Replicas::any(*original);
  const bool is_in_flight_elsewhere = static_cast<bool>(there.buffer);
  Replicas::prepare(*original);  // once the op is committed nothing may fail
  BufferOwner copy = BufferOwner::adopt(memory_.allocator->allocate_for_queue(
      original->size(), op_, label_, bin, device_queue_.get()));
  Buffer* buffer = copy.get();
  migrations_.push_back({BufferOwner::share(original), std::move(copy), !is_in_flight_elsewhere});
  add_copy(source.buffer.get(), buffer);
  return buffer;
}

Buffer* Queue::writable_here(Buffer* original) {
  if (Buffer* written = written_here(original)) return written;
  Buffer* here = original;
  if (original->storage()->space != &memory_) {
    here = readable_here(original);
  } else if (Replicas::find(*original, memory_).buffer.get() != original) {
    // Written elsewhere since: commands may write parts of it only.
    add_copy(Replicas::any(*original).buffer.get(), original);
  }
  if (here != original) Replicas::prepare(*original);
  written_.push_back({BufferOwner::share(original), BufferOwner::share(here)});
  return here;
}

void Queue::end_migrations(bool committed) {
  if (migrations_.empty() && written_.empty()) return;
  if (committed) {
    const Stamp here{device_queue_.get(), open().serial};
    for (Migration& migration : migrations_) {
      if (migration.is_shared)
        Replicas::add(*migration.original, {BufferOwner::share(migration.copy.get()), here});
    }
    for (Written& written : written_) {
      Replicas::keep_only(*written.original, {std::move(written.here), here});
    }
  }
  migrations_.clear();
  written_.clear();
}

const void* Queue::bytes_of_host_only(Buffer& original) const {
  const Storage* storage = original.storage();
  if (memory_.is_host() || !storage || !storage->space->is_host() || original.failure())
    return nullptr;
  const bool is_used_here =
      written_here(&original) ||
      std::any_of(migrations_.begin(), migrations_.end(), [&](const Migration& migration) {
        return migration.original.get() == &original;
      });
  if (is_used_here || Replicas::find(original, memory_).buffer) return nullptr;
  return Replicas::find(original, *storage->space).buffer.get() == &original ? storage->address
                                                                             : nullptr;
}

Event Queue::event_of_replica_here(Buffer& buffer) {
  const Stamp copied_by = Replicas::find(buffer, memory_).copied_by;
  if (!copied_by.queue || copied_by.queue == device_queue_.get() || is_executed(copied_by))
    return {};
  return {static_cast<Queue*>(copied_by.queue->owner), copied_by.serial};
}

void Queue::bring_here(Buffer* buffer) {
  if (buffer->storage()->space != &memory_ || buffer->replicas()) readable_here(buffer);
}

const Buffer& Queue::buffer_here(Buffer& original) const {
  for (size_t i = written_.size(); i-- > 0;) {
    if (written_[i].original.get() == &original) return *written_[i].here;
  }
  for (const Migration& migration : migrations_) {
    if (migration.original.get() == &original) return *migration.copy;
  }
  return original;
}

allocator::Buffer Queue::copy_here(Buffer* buffer) {
  BufferOwner copy = BufferOwner::adopt(
      memory_.allocator->allocate_for_queue(buffer->size(), op_, label_, bin, device_queue_.get()));
  add_copy(buffer, copy.get());
  copy->retain_owner();
  return allocator::Buffer(copy.get());
}

void* Queue::host_address_in_op(Buffer& buffer) const {
  for (const Migration& migration : migrations_) {
    Storage* storage = migration.copy->storage();
    if (migration.original.get() == &buffer && storage->space->is_host()) return storage->address;
  }
  Replica on_host = Replicas::find(buffer, host_memory());
  if (on_host.buffer) return on_host.buffer->storage()->address;
  throw std::logic_error(std::string("[") + op_ +
                         "] asks for the address of an array that only the " +
                         space_of(buffer).name() +
                         " has; its bytes are there when commands run, so bind the array to one "
                         "(Encoder, or a kernel), or give the op eval_cpu alone");
}

Queue& Queue::host_queue() {
  if (memory_.is_host()) return *this;
  Queue* there = host_queue_.load(std::memory_order_acquire);
  if (there) return *there;
  Runtime& runtime = Runtime::get();
  Queue& made = runtime.acquire(holdfast::Device::cpu);
  made.served_ = this;
  if (host_queue_.compare_exchange_strong(there, &made)) return made;
  made.served_ = nullptr;
  runtime.give_back(made);
  return *there;
}

}  // namespace holdfast::exec
