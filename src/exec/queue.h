// Queue: the execution layer's side of a stream. It holds the open command list, its hazards, and
// the storage that only its own work still uses.
//
// Any thread may encode: it locks the queue, encodes whole ops as transactions, and unlocks. Nobody
// waits while holding the lock, and nobody holds two queues' locks.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <holdfast/event.h>
#include <holdfast/stream.h>

#include "base/sync.h"
#include "devices/device.h"
#include "exec/allocator.h"
#include "exec/hazards.h"
#include "exec/layers/layer.h"
#include "exec/replicas.h"
#include "exec/ring.h"

namespace holdfast::exec {

class Queue {
 public:
  Queue(holdfast::Device device, int index, Device& runs_on);

  Stream stream() const { return stream_; }
  Device& device() const { return device_; }
  DeviceQueue& device_queue() { return *device_queue_; }

  // An op being encoded: locks the queue; `commit` keeps what was encoded, leaving the scope
  // without it takes everything back (what the op bound stays retained; the list is closed).
  class Transaction {
   public:
    Transaction(Queue& queue, const char* op, const label::Label& label,
                std::span<const Event> wait_for);
    ~Transaction();
    Transaction(const Transaction&) = delete;
    Transaction& operator=(const Transaction&) = delete;
    // The event that is signaled when the op's commands have completed; invalid when it encoded
    // none.
    Event commit();
    // Keeps what the op was with the list (NotedOp): the commands that it has encoded so far,
    // copies of its inputs, are no part of it.
    void begin_note() { first_noted_ = queue_.open_->commands.size(); }
    // Commands that are all plain data are replayed as they are, whatever `op` says: a call of the
    // op may run other code, and round differently.
    void describe(NotedOp op);
    // What was bound since the op's last command counts for each of its commands, as far as
    // failures go (Command::first_of_op).
    void cover_commands();
    Queue& queue() const { return queue_; }
    bool has_commands() const { return queue_.open_->commands.size() > commands_; }
    // Has the op encoded a native command so far?
    bool has_native() const;

   private:
    friend class Queue;
    Queue& queue_;
    std::unique_lock<sync::Mutex> lock_;
    Queue* const outer_;  // that this thread encodes for
    bool committed_ = false;
    size_t commands_, bindings_, edges_, first_noted_;
    int64_t work_;
    std::optional<NotedOp> noted_;
  };

  // Submits the open list if it is `serial` or if no serial is named. See Device::submit for
  // `wake`.
  void flush(std::optional<uint64_t> serial = {}, bool wake = true);
  void kick() { device_.kick(*device_queue_); }
  // Lists that were submitted in the middle of an evaluation and are too small to wake anyone for:
  // the evaluating thread runs them itself, or wakes a worker when it will not wait for them.
  void settle_small_lists(bool run_here) {
    if (!has_small_lists_.load(std::memory_order_relaxed)) return;
    has_small_lists_.store(false, std::memory_order_relaxed);
    run_here ? device_.help(*device_queue_) : device_.kick(*device_queue_);
  }
  bool wait(uint64_t serial, std::optional<sync::Clock::time_point> deadline = {});
  bool is_completed(uint64_t serial) const {
    bool completed = device_queue_->completed.load(std::memory_order_acquire) >= serial;
    if (completed) layers::on_observe(*device_queue_, serial);
    return completed;
  }
  // Need nobody be made to wait for it any more? Layers are told of all waits, not only of those
  // that are in time, and the host is told nothing.
  bool is_past(uint64_t serial) const {
    return device_queue_->completed.load(std::memory_order_acquire) >= serial &&
           !layers::want(Layer::encoding);
  }
  // Makes the next list start after `event`.
  void wait_for(const Event& event);
  // Everything submitted so far, waited for. Throws the first error that nobody has seen.
  bool synchronize(std::optional<sync::Clock::time_point> deadline = {});
  // The same without throwing.
  bool drain(std::optional<sync::Clock::time_point> deadline = {});
  void cancel();
  // What the open list waits for, when nothing was encoded behind it.
  std::vector<Stamp> unused_waits();

  // The ablation: bind without retaining (HOLDFAST_RETAIN=0, or for one arm of a benchmark).
  void set_retaining(bool retain);

  // A failure nobody may be waiting for. Never throws.
  void remember(const Ref<Failure>& failure) noexcept;
  // What nobody has seen so far is nobody's business any more: the queue changes hands.
  void forget_failures() noexcept;

  // For Encoder, inside a transaction.
  allocator::Buffer allocate(size_t bytes);
  // Gives the index of the binding in the next command. `start`: see Binding.
  uint32_t bind(Buffer* buffer, int64_t begin, int64_t end, int64_t start, bool writes,
                Elements elements = Elements::unknown);
  // The queue that the calling thread encodes an op for; null outside.
  static Queue* encoding() { return encoding_; }
  // Where the host finds a buffer's bytes when the op's commands run; see host_address.
  void* host_address_in_op(Buffer& buffer) const;
  // The bytes of a buffer that the host has, and the memory of this queue's device has not; null
  // for any other one.
  const void* bytes_of_host_only(Buffer& original) const;
  // The event of the copy that a buffer has here, if it may still be on its way.
  Event copied_here(Buffer& buffer) {
    return buffer.replicas() ? event_of_replica_here(buffer) : Event();
  }
  // Makes the buffer valid in the memory of this queue's device, by a command if need be.
  void bring_here(Buffer* buffer);
  // The buffer that commands of the op that is being encoded bind for this one, which was brought
  // here or is written.
  const Buffer& buffer_here(Buffer& original) const;
  // A buffer here with the bytes of another one, which may be in any space.
  allocator::Buffer copy_here(Buffer* buffer);
  // Bound since the last command.
  size_t pending_bindings() { return open().bindings.size() - first_pending_binding_; }
  void wait_for_input(const Event& event);
  // The op that is being encoded: a literal.
  const char* op() const { return op_; }
  void* parameters(size_t size, size_t alignment) {
    parameter_bytes_ = static_cast<uint32_t>(size);
    void* place = open().arena.allocate(size, alignment);
    // Layers look for addresses in it.
    if (layers::want(Layer::encoding)) std::memset(place, 0, size);
    return place;
  }
  // The queue of the host that encodes ops of this stream for which its device has no kernels. Its
  // lists are part of the stream: it fails and is cancelled with this one.
  Queue& host_queue();
  // The queue that this one is the host queue of; else itself.
  Queue& of_stream() { return served_ ? *served_ : *this; }

  // The list owns the pipeline from now on.
  void retain(const Pipeline& pipeline);
  // A new command, which the caller fills before it calls end_command; nothing may be bound between
  // the two. `destroy`: ends `body` when the list ends, and at once where there is no memory for
  // the command.
  Command& begin_command(void* body = nullptr, void (*destroy)(void*) = nullptr);
  // Gives it the bindings since the previous command, and the edges that follow from them.
  void end_command();

  Bin bin;

 private:
  CommandList& open();
  void submit_open(bool wake);
  bool is_ordered_after(const Event& event) const;
  void add_waits(std::span<const Event> events);
  static CommandList::AfterCompletion finish(CommandList& list);
  void take_back(Transaction& transaction);
  // Completes the last command of the list.
  void take_bindings(uint32_t first_binding, uint32_t binding_count);
  Event event_of_replica_here(Buffer& buffer);
  void retain(Buffer* buffer, Storage* storage);
  // Gives the storage's slot in the hazard table.
  uint32_t retain_inline(Buffer* buffer, Storage* storage);
  // Buffers in this queue's space, for the op that is being encoded.
  Buffer* readable_here(Buffer* original);
  Buffer* writable_here(Buffer* original);
  // What an earlier command of the op writes; null: nothing.
  Buffer* written_here(const Buffer* original) const;
  bool is_ordered_after(const Stamp& stamp) const;
  void add_copy(Buffer* from, Buffer* to);
  void end_migrations(bool committed);

  const Stream stream_;
  Device& device_;
  MemorySpace& memory_;  // the device's
  std::unique_ptr<DeviceQueue> device_queue_;

  sync::Mutex mutex_{sync::Rank::queue};
  // The last list that the device has; changed with mutex_ held.
  sync::Atomic<uint64_t> submitted_{0};
  // Guarded by mutex_.
  CommandList* open_ = nullptr;
  HazardTable hazards_;
  uint64_t next_serial_ = 1;
  uint32_t first_pending_binding_ = 0;  // of the open list: bound, but not yet taken by a command
  uint32_t parameter_bytes_ = 0;        // of the last call of `parameters`
  const char* op_ = "";
  label::Label label_;
  bool retain_;
  // Of the op that is being encoded: copies that its commands make, by original, and originals that
  // they write (exec/replicas.h). Both count once the op is committed.
  struct Migration {
    BufferOwner original, copy;
    bool is_shared;  // becomes a replica
  };
  std::vector<Migration> migrations_;
  struct Written {
    BufferOwner original, here;
  };
  std::vector<Written> written_;

  std::atomic<Queue*> host_queue_{nullptr};
  Queue* served_ = nullptr;  // set before the first use
  static thread_local Queue* encoding_;

  sync::Atomic<bool> has_small_lists_{false};

  Ring ring_;

  // Lists that can be used again, and failures: their own lock, since completion takes it.
  sync::SpinLock spare_lock_;
  CommandList* spare_ = nullptr;
  int spare_count_ = 0;
  std::vector<Ref<Failure>> unseen_;  // capacity is reserved: completion allocates nothing
};

// The bin and the stream's index of the queue that owns `device_queue`.
Bin* bin_of(DeviceQueue* device_queue);
int stream_of(DeviceQueue* device_queue);

}  // namespace holdfast::exec
