#include "devices/third_device.h"

#include <atomic>
#include <cstring>
#include <map>
#include <mutex>
#include <stdexcept>
#include <vector>

#include "base/fault.h"
#include "base/sync.h"
#include "devices/failure.h"
#include "kernels/backend.h"

namespace holdfast::testing {
namespace {

using namespace exec;

std::atomic<size_t> bytes_in{0}, bytes_out{0};

// Addresses are numbers that nothing can be read from.
class FarMemory final : public MemorySpace {
 public:
  const char* name() const override { return "third device"; }
  size_t size() const override { return size_t{4} << 30; }

  bool take(size_t capacity, Storage& storage) noexcept override {
    std::lock_guard guard(mutex_);
    next_ += 4096;
    storage.address = reinterpret_cast<void*>(next_);
    next_ += (capacity + 4095) / 4096 * 4096;
    blocks_[storage.address] = std::vector<char>(capacity);
    return true;
  }
  void release(Storage& storage) noexcept override {
    std::lock_guard guard(mutex_);
    blocks_.erase(storage.address);
  }
  void read(const Storage& source, size_t begin, void* target, size_t bytes) override {
    std::memcpy(target, &range(source, begin, bytes), bytes);
    bytes_out += bytes;
  }
  void write(Storage& target, size_t begin, const void* source, size_t bytes) override {
    std::memcpy(&range(target, begin, bytes), source, bytes);
    bytes_in += bytes;
  }
  char& range(const Storage& storage, size_t begin, size_t bytes) {
    std::lock_guard guard(mutex_);
    std::vector<char>& block = blocks_.at(storage.address);
    if (begin + bytes > block.size() || bytes == 0)
      throw std::out_of_range("a range outside of the third device's memory");
    return block[begin];
  }

 private:
  sync::Mutex mutex_;
  uintptr_t next_ = 4096;
  std::map<void*, std::vector<char>> blocks_;
};

FarMemory& far_memory() {
  static auto* memory = new FarMemory;
  return *memory;
}

struct FarQueue : DeviceQueue {
  using DeviceQueue::DeviceQueue;
  CommandList* first = nullptr;
  CommandList* last = nullptr;
};

// One thread that runs the lists of all queues, in order for each.
class ThirdDevice final : public Scheduler, public exec::Device {
 public:
  ThirdDevice() : Device(far_memory(), *this), thread_("third-device", [this] { work(); }) {
    backend = &kernels::Backend::none();
  }
  ~ThirdDevice() override { shut_down({}); }

  std::unique_ptr<DeviceQueue> create_queue() override {
    auto queue = std::make_unique<FarQueue>(*this);
    std::lock_guard lock(mutex_);
    queues_.push_back(queue.get());
    return queue;
  }
  void submit(CommandList& list, bool) noexcept override {
    std::lock_guard lock(mutex_);
    auto& queue = static_cast<FarQueue&>(*list.queue);
    list.next = nullptr;
    (queue.first ? queue.last->next : queue.first) = &list;
    queue.last = &list;
    changed_.notify_all();
  }
  void help(DeviceQueue&) noexcept override {}
  void kick(DeviceQueue&) noexcept override {}
  bool wait(DeviceQueue& queue, uint64_t serial,
            std::optional<sync::Clock::time_point> deadline) override {
    std::unique_lock lock(mutex_);
    auto is_completed = [&] { return queue.completed.load() >= serial; };
    while (!is_completed()) {
      // What its lists wait for may wait for a thread to run it.
      if (DeviceQueue* other = awaited(static_cast<FarQueue&>(queue))) {
        lock.unlock();
        // A thread that ends waits with a deadline, and must run no commands any more.
        deadline ? other->device.kick(*other) : other->device.help(*other);
        lock.lock();
        if (is_completed() || awaited(static_cast<FarQueue&>(queue)) != other) continue;
      }
      if (!deadline) {
        changed_.wait(lock);
      } else if (!changed_.wait_until(lock, *deadline, is_completed)) {
        return false;
      }
    }
    return true;
  }
  void shut_down(std::chrono::nanoseconds) noexcept override {
    {
      std::lock_guard lock(mutex_);
      if (std::exchange(stopping_, true)) return;
      changed_.notify_all();
    }
    thread_.join();
  }
  void completed_elsewhere() noexcept override {
    std::lock_guard lock(mutex_);
    changed_.notify_all();
  }
  bool runs_pipelines() const override { return false; }

 private:
  // The queue of another device that this one waits for, if any. With mutex_ held, as below.
  DeviceQueue* awaited(const FarQueue& queue) {
    if (!queue.first) return nullptr;
    for (const Stamp& wait : queue.first->waits) {
      if (!is_completed_or_awaited(wait)) return &wait.queue->device == this ? nullptr : wait.queue;
    }
    return nullptr;
  }
  bool may_start(const CommandList& list) {
    bool may = true;
    for (const Stamp& wait : list.waits) may &= is_completed_or_awaited(wait);
    return may;
  }

  void work() {
    std::unique_lock lock(mutex_);
    while (!stopping_) {
      FarQueue* ready = nullptr;
      for (FarQueue* queue : queues_) {
        if (queue->first && may_start(*queue->first)) ready = queue;
      }
      if (!ready) {
        changed_.wait(lock);
        continue;
      }
      CommandList& list = *ready->first;
      ready->first = list.next;
      const uint64_t serial = list.serial;
      lock.unlock();
      for (Command& command : list.commands) run(list, command);
      ready->executed.store(serial);
      CommandList::AfterCompletion after = list.finish(list);
      lock.lock();
      ready->completed.store(serial);
      changed_.notify_all();
      lock.unlock();
      if (is_awaited(*ready)) notify_others(*ready);
      if (after) after();
      lock.lock();
    }
  }

  static void run(CommandList& list, Command& command) {
    std::span<Binding> bindings(list.bindings.data() + command.first_binding,
                                command.binding_count);
    Ref<Failure> failure;
    for (const Binding& binding : bindings) {
      if (!binding.writes && binding.buffer->failure())
        failure = Ref<Failure>(binding.buffer->failure());
    }
    const bool is_inherited = static_cast<bool>(failure);
    try {
      if (!failure) run_command(bindings, command);
    } catch (const std::exception& error) {
      failure = Failure::make(Failure::Kind::execution, command.op, nullptr, error.what());
    }
    if (!failure) return;
    for (const Binding& binding : bindings) {
      if (binding.writes) binding.fail(failure);
    }
    if (!is_inherited) list.failed(list, command, failure);
  }

  static void run_command(std::span<Binding> bindings, const Command& command) {
    if (fault::hit(fault::Point::dispatch)) throw std::runtime_error("injected failure");
    auto place = [&](const Place& at) -> char* {
      const Storage& storage = *bindings[at.binding].storage;
      const auto offset = static_cast<size_t>(at.offset);
      if (storage.bytes) return storage.bytes + offset;
      return &far_memory().range(storage, offset, command.bytes);
    };
    if (command.kind == Command::Kind::copy) {
      std::memmove(place(command.target), place(command.source), command.bytes);
      if (bindings[command.source.binding].storage->bytes) bytes_in += command.bytes;
    } else if (command.kind == Command::Kind::fill) {
      char* target = place(command.target);
      for (size_t i = 0; i < command.bytes; i += command.pattern_size)
        std::memcpy(target + i, command.pattern, command.pattern_size);
    } else {
      throw std::logic_error("the third device runs copies and fills only");
    }
  }

  sync::Mutex mutex_;
  sync::CondVar changed_;
  // Guarded by mutex_.
  std::vector<FarQueue*> queues_;
  bool stopping_ = false;
  sync::Thread thread_;  // last: it uses the others
};

}  // namespace

std::unique_ptr<exec::Device> make_third_device() { return std::make_unique<ThirdDevice>(); }

Traffic third_device_traffic() { return {bytes_in.load(), bytes_out.load()}; }

}  // namespace holdfast::testing
