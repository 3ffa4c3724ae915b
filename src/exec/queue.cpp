#include "exec/queue.h"

#include <algorithm>
#include <new>

#include "base/environment.h"
#include "base/fault.h"
#include "exec/layers/layer.h"
#include "exec/runtime.h"
#include "exec/unhandled_failures.h"

namespace holdfast::exec {
namespace {

constexpr int spare_lists = 8;
constexpr size_t unseen_failures = 32;
// A list that moves fewer bytes than this is not worth waking a worker for while its owner still
// encodes.
constexpr int64_t worth_waking = int64_t{1} << 20;

bool has_work(const CommandList& list) {
  return !list.commands.empty() || !list.waits.empty() || !list.retained.empty();
}

}  // namespace

Queue::Queue(holdfast::Device device, int index, Device& runs_on)
    : stream_(index, device),
      device_(runs_on),
      memory_(runs_on.memory),
      device_queue_(runs_on.create_queue()),
      retain_(environment::settings().retain) {
  unseen_.reserve(unseen_failures);
  device_queue_->owner = this;
  device_.memory.allocator->register_bin(&bin);
}

Bin* bin_of(DeviceQueue* device_queue) { return &static_cast<Queue*>(device_queue->owner)->bin; }

int stream_of(DeviceQueue* device_queue) {
  return static_cast<Queue*>(device_queue->owner)->stream().index;
}

// --- transactions ---

Queue::Transaction::Transaction(Queue& queue, const char* op, const label::Label& label,
                                std::span<const Event> wait_for)
    : queue_(queue), lock_(queue.mutex_), outer_(encoding_) {
  queue_.op_ = op;
  queue_.label_ = label;
  layers::on_begin();
  if (!wait_for.empty()) queue_.add_waits(wait_for);
  CommandList& list = queue_.open();
  commands_ = first_noted_ = list.commands.size();
  bindings_ = list.bindings.size();
  edges_ = list.edges.size();
  work_ = list.work;
  encoding_ = &queue_;
}

Event Queue::Transaction::commit() {
  CommandList& list = queue_.open();
  layers::on_encode(list);
  committed_ = true;
  // What was bound for no command is retained, but no business of the next op's first command.
  queue_.first_pending_binding_ = static_cast<uint32_t>(list.bindings.size());
  queue_.end_migrations(true);
  if (list.commands.size() == commands_) return {};
  ++list.ops;
  if (noted_ && list.commands.size() > first_noted_) {
    noted_->first_command = static_cast<uint32_t>(first_noted_);
    noted_->command_count = static_cast<uint32_t>(list.commands.size() - first_noted_);
    list.notes.push_back(std::move(*noted_));
  }
  Event event(&queue_, list.serial);
  const environment::Settings& settings = environment::settings();
  if (list.ops >= settings.max_ops_per_buffer ||
      list.work >= static_cast<int64_t>(settings.max_bytes_per_buffer) ||
      layers::wants_commit(list)) {
    bool is_large = list.work >= worth_waking;
    if (!is_large) queue_.has_small_lists_.store(true, std::memory_order_relaxed);
    queue_.submit_open(is_large);
  }
  return event;
}

void Queue::Transaction::describe(NotedOp op) {
  if (!has_native()) op.replay = NotedOp::Replay::commands;
  noted_ = std::move(op);
}

void Queue::Transaction::cover_commands() {
  CommandList& list = queue_.open();
  uint32_t first = queue_.first_pending_binding_;
  for (size_t i = commands_; i < list.commands.size(); ++i) {
    Command& command = list.commands[i];
    command.first_of_op = first;
    command.count_of_op = static_cast<uint32_t>(list.bindings.size()) - first;
  }
}

bool Queue::Transaction::has_native() const {
  const std::vector<Command>& commands = queue_.open_->commands;
  return std::any_of(commands.begin() + static_cast<std::ptrdiff_t>(commands_), commands.end(),
                     [](const Command& c) { return c.kind == Command::Kind::native; });
}

thread_local Queue* Queue::encoding_ = nullptr;

Queue::Transaction::~Transaction() {
  encoding_ = outer_;
  if (committed_) return;
  queue_.end_migrations(false);
  queue_.take_back(*this);
}

// Nothing that the op encoded will run. The hazards know its commands, so the list is closed: the
// next one starts with an empty table. The parameters of its commands may own arrays: they end with
// the list, under no lock.
void Queue::take_back(Transaction& transaction) {
  CommandList& list = *open_;
  list.commands.resize(transaction.commands_);
  list.bindings.resize(transaction.bindings_);
  list.edges.resize(transaction.edges_);
  list.work = transaction.work_;
  first_pending_binding_ = static_cast<uint32_t>(list.bindings.size());
  submit_open(true);
}

// --- the open list ---

CommandList& Queue::open() {
  if (open_) return *open_;
  {
    std::lock_guard guard(spare_lock_);
    if (spare_) {
      open_ = spare_;
      spare_ = spare_->next;
      --spare_count_;
    }
  }
  if (!open_) open_ = new CommandList;
  open_->next = nullptr;
  open_->queue = device_queue_.get();
  open_->serial = next_serial_++;
  open_->finish = &Queue::finish;
  open_->failed = [](CommandList& list, const Command& command, const Ref<Failure>& failure) {
    Queue& queue = *static_cast<Queue*>(list.owner);
    try {
      if (!failure->is_cancellation()) {
        std::string report = queue.ring_.report(list, command, *failure);
        if (!report.empty()) unhandled_failures::add(failure, std::move(report));
      }
    } catch (const std::bad_alloc&) {
      // Without a report then: the failure itself counts.
    }
    queue.of_stream().remember(failure);
  };
  open_->owner = this;
  first_pending_binding_ = 0;
  return *open_;
}

void Queue::submit_open(bool wake) {
  CommandList* list = std::exchange(open_, nullptr);
  const uint64_t serial = list->serial;
  hazards_.clear();
  layers::on_commit(*list);
  ring_.add(*list, retain_);
  device_.submit(*list, wake);
  submitted_.store(serial, std::memory_order_release);
}

void Queue::flush(std::optional<uint64_t> serial, bool wake) {
  if (!serial || submitted_.load(std::memory_order_acquire) < *serial) {
    std::lock_guard guard(mutex_);
    bool wanted = open_ && (serial ? open_->serial <= *serial : has_work(*open_));
    if (wanted) {
      submit_open(wake);
      return;
    }
  }
  // Somebody else may have submitted it with the promise to wait for it.
  if (wake) kick();
}

// Called by the thread that ran the list, under no lock, before anyone who waits for it goes on.
CommandList::AfterCompletion Queue::finish(CommandList& list) {
  Queue& queue = *static_cast<Queue*>(list.owner);
  layers::on_complete(list);
  CommandList::AfterCompletion after_completion;
  {
    DeferredDeleters deferred;
    for (Buffer* buffer : list.retained) buffer->release_from_list();
    list.retained.clear();
    list.pipelines.clear();
    list.clear();
    after_completion = deferred.to_run();
  }
  {
    std::lock_guard guard(queue.spare_lock_);
    if (queue.spare_count_ < spare_lists) {
      list.next = queue.spare_;
      queue.spare_ = &list;
      ++queue.spare_count_;
      return after_completion;
    }
  }
  delete &list;
  return after_completion;
}

// With mutex_ held: does everything that is encoded now run after the event?
bool Queue::is_ordered_after(const Event& event) const {
  if (!event.valid() || event.queue() == this || event.queue()->is_past(event.serial()))
    return true;
  if (!open_) return false;
  DeviceQueue* other = event.queue()->device_queue_.get();
  return std::any_of(open_->waits.begin(), open_->waits.end(), [&](const Stamp& wait) {
    return wait.queue == other && wait.serial >= event.serial();
  });
}

void Queue::add_waits(std::span<const Event> events) {
  auto is_known = [&](const Event& event) { return is_ordered_after(event); };
  if (std::all_of(events.begin(), events.end(), is_known)) return;
  if (fault::hit(fault::Point::event)) {
    throw std::runtime_error(std::string("[") + op_ + "] injected failure of an event");
  }
  // What is in the list may be what the other queue waits for: it must be able to go first. The new
  // list is asked about every event again: it knows nothing of what the last one waited for.
  if (open_ && !open_->commands.empty()) submit_open(true);
  for (const Event& event : events) {
    if (is_known(event)) continue;
    open().waits.push_back({event.queue()->device_queue_.get(), event.serial()});
  }
}

void Queue::wait_for(const Event& event) {
  if (!event.valid() || event.queue() == this || event.queue()->is_past(event.serial())) return;
  event.queue()->flush(event.serial());
  std::lock_guard guard(mutex_);
  add_waits(std::span(&event, 1));
}

bool Queue::wait(uint64_t serial, std::optional<sync::Clock::time_point> deadline) {
  if (is_completed(serial)) return true;
  flush(serial, deadline.has_value());
  return device_.wait(*device_queue_, serial, deadline) && is_completed(serial);
}

bool Queue::drain(std::optional<sync::Clock::time_point> deadline) {
  if (Queue* host = host_queue_.load(); host && !host->drain(deadline)) return false;
  uint64_t last;
  {
    std::lock_guard guard(mutex_);
    if (open_ && has_work(*open_)) submit_open(deadline.has_value());
    last = open_ ? open_->serial - 1 : next_serial_ - 1;
  }
  return wait(last, deadline);
}

bool Queue::synchronize(std::optional<sync::Clock::time_point> deadline) {
  if (!drain(deadline)) return false;
  Ref<Failure> first;
  {
    std::lock_guard guard(spare_lock_);
    for (Ref<Failure>& failure : unseen_) {
      // Only one thread is told.
      if (!first && !failure->seen.exchange(true)) first = failure;
    }
    std::erase_if(unseen_, [](const Ref<Failure>& failure) { return failure->seen.load(); });
  }
  if (first) first->raise();
  return true;
}

void Queue::cancel() {
  uint64_t last;
  {
    std::lock_guard guard(mutex_);
    if (open_ && !open_->commands.empty()) submit_open(true);
    last = open_ ? open_->serial - 1 : next_serial_ - 1;
  }
  device_queue_->cancelled.store(last);
  if (Queue* host = host_queue_.load()) host->cancel();
}

std::vector<Stamp> Queue::unused_waits() {
  std::lock_guard guard(mutex_);
  if (!open_ || !open_->commands.empty()) return {};
  return {open_->waits.begin(), open_->waits.end()};
}

void Queue::set_retaining(bool retain) {
  flush();
  std::lock_guard guard(mutex_);
  retain_ = retain;
}

void Queue::forget_failures() noexcept {
  std::lock_guard guard(spare_lock_);
  unseen_.clear();
}

void Queue::remember(const Ref<Failure>& failure) noexcept {
  std::lock_guard guard(spare_lock_);
  std::erase_if(unseen_, [](const Ref<Failure>& old) { return old->seen.load(); });
  if (unseen_.size() < unseen_failures) unseen_.push_back(failure);
}

// --- encoding ---

allocator::Buffer Queue::allocate(size_t bytes) {
  return allocator::Buffer(
      device_.memory.allocator->allocate_for_queue(bytes, op_, label_, bin, device_queue_.get()));
}

[[gnu::always_inline]] inline uint32_t Queue::retain_inline(Buffer* buffer, Storage* storage) {
  HazardTable::Entry& entry = hazards_.find(storage);
  const uint32_t slot = hazards_.slot_of(entry);
  bool is_retained = entry.retained == buffer;
  if (!retain_ || is_retained) return slot;
  CommandList& list = *open_;
  list.retained.push_back(buffer);
  buffer->retain_for_list();
  storage->stamp(device_queue_.get(), list.serial);
  entry.retained = buffer;
  return slot;
}

void Queue::retain(Buffer* buffer, Storage* storage) { retain_inline(buffer, storage); }

uint32_t Queue::bind(Buffer* buffer, int64_t begin, int64_t end, int64_t start, bool writes,
                     Elements elements) {
  CommandList& list = *open_;  // a transaction has opened it
  Buffer* here = buffer;
  if (buffer->storage()->space != &memory_ || buffer->replicas()) [[unlikely]]
    here = writes ? writable_here(buffer) : readable_here(buffer);
  Storage* storage = here->storage();
  const uint32_t slot = retain_inline(here, storage);
  const auto index = static_cast<uint32_t>(list.bindings.size()) - first_pending_binding_;
  list.bindings.push_back(
      {here, here->identity(), storage, begin, end, writes, elements, slot, start});
  if (writes && here != buffer) [[unlikely]] {
    retain(buffer, buffer->storage());
    list.bindings.back().original = buffer;
  }
  return index;
}

void Queue::retain(const Pipeline& pipeline) {
  if (!retain_) return;
  std::vector<Ref<const Pipeline>>& pipelines = open().pipelines;
  // A model's few kernels take turns: looking back a little finds most of them.
  constexpr size_t look_back = 8;
  size_t first = pipelines.size() > look_back ? pipelines.size() - look_back : 0;
  for (size_t i = pipelines.size(); i-- > first;) {
    if (pipelines[i] == &pipeline) return;
  }
  pipelines.push_back(Ref<const Pipeline>(&pipeline));
}

void Queue::wait_for_input(const Event& event) {
  if (is_ordered_after(event)) return;
  throw std::logic_error(std::string("[") + op_ +
                         "] binds an array of another stream that is not one of its inputs");
}

Command& Queue::begin_command(void* body, void (*destroy)(void*)) {
  CommandList& list = *open_;
  if (destroy) {
    try {
      list.destructors.push_back({destroy, body});
    } catch (...) {
      destroy(body);
      throw;
    }
  }
  return list.commands.emplace_back();
}

void Queue::end_command() {
  CommandList& list = *open_;
  list.commands.back().parameter_bytes = parameter_bytes_;
  const uint32_t first = first_pending_binding_;
  first_pending_binding_ = static_cast<uint32_t>(list.bindings.size());
  take_bindings(first, first_pending_binding_ - first);
}

void Queue::take_bindings(uint32_t first_binding, uint32_t binding_count) {
  CommandList& list = *open_;
  Command& command = list.commands.back();
  const auto index = static_cast<uint32_t>(list.commands.size() - 1);
  command.op = op_;
  command.label = label_;
  command.first_binding = first_binding;
  command.binding_count = binding_count;
  command.first_edge = static_cast<uint32_t>(list.edges.size());
  // Reads first: what a command writes in place depends on what it reads.
  for (bool writes : {false, true}) {
    for (size_t i = first_binding; i < first_binding + binding_count; ++i) {
      const Binding& binding = list.bindings[i];
      if (binding.writes != writes) continue;
      hazards_.access(hazards_.entry_of(binding), binding, index, list.edges, command.first_edge);
    }
  }
  command.edge_count = static_cast<uint32_t>(list.edges.size()) - command.first_edge;
  list.work += command.work;
  layers::on_command(list);
}

}  // namespace holdfast::exec
