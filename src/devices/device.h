// Device: what the execution layer needs from hardware. A device runs command lists; it neither
// tracks hazards nor retains anything.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "base/sync.h"
#include "devices/command_list.h"
#include "devices/memory_space.h"
#include "devices/target.h"

namespace holdfast::kernels {
class Backend;
}

namespace holdfast::exec {

class Device;

// Thrown while an op is encoded: the device has no kernel for it.
struct NoKernel {};

// The device's side of a queue. Lists of one queue run in order.
struct DeviceQueue {
  explicit DeviceQueue(Device& of) : device(of) {}
  virtual ~DeviceQueue() = default;
  Device& device;
  void* owner = nullptr;  // the exec::Queue
  // The last list whose commands have all run: its memory is free for others.
  sync::Atomic<uint64_t> executed{0};
  // The last list that was finished as well (released): who waits for it may go on. Deleters of the
  // user's run after that: they may evaluate and wait themselves.
  sync::Atomic<uint64_t> completed{0};
  // Lists up to here that have not started fail with Cancelled.
  sync::Atomic<uint64_t> cancelled{0};
  // A list of another scheduler waits for one of this queue: the next completion notifies it
  // (Scheduler::notify_others).
  sync::Atomic<bool> is_awaited{false};
};

// What runs the lists of a device, or of several. It knows what those of its own queues wait for.
// For a list of another scheduler's queue it is notified.
class Scheduler {
 public:
  Scheduler();
  virtual ~Scheduler();
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  // A list of another scheduler's queue has completed. Any thread; must not call back.
  virtual void completed_elsewhere() noexcept = 0;

  // Has the list that a stamp names completed? If not, and it is one of another scheduler, this one
  // will be notified.
  bool is_completed_or_awaited(const Stamp& stamp);
  // After each change of `queue.completed`: does another scheduler await it? Then it is to be
  // notified, under no lock.
  static bool is_awaited(DeviceQueue& queue) noexcept;
  static void notify_others(DeviceQueue& queue) noexcept;
};

class Device {
 public:
  Device(MemorySpace& space, Scheduler& runs_lists) : memory(space), scheduler(runs_lists) {}
  virtual ~Device() = default;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  // What its commands work on.
  MemorySpace& memory;
  Scheduler& scheduler;

  virtual std::unique_ptr<DeviceQueue> create_queue() = 0;

  // Takes the list until it calls list.finish. With `wake` false the caller promises to wait for
  // the list (or to call `kick`) soon, and nobody is woken for it. Never throws.
  virtual void submit(CommandList& list, bool wake) noexcept = 0;
  // Runs what is ready of the queue on the calling thread; does not wait for anything.
  virtual void help(DeviceQueue& queue) noexcept = 0;
  // Makes sure that somebody runs what was submitted to the queue.
  virtual void kick(DeviceQueue& queue) noexcept = 0;
  // Waits until list `serial`, which was submitted, has completed; without a deadline the calling
  // thread helps (with one, only where there is no worker at all). False when the deadline came
  // first.
  virtual bool wait(DeviceQueue& queue, uint64_t serial,
                    std::optional<sync::Clock::time_point> deadline) = 0;
  // Stops the workers, waiting for at most `limit` for submitted work.
  virtual void shut_down(std::chrono::nanoseconds limit) noexcept = 0;

  // Does it run dispatch commands?
  virtual bool runs_pipelines() const { return true; }

  // What encodes the library's ops for this device (kernels/backend.h): set when the process
  // starts, before any queue exists.
  kernels::Backend* backend = nullptr;
  // What kernels for this device are compiled for, set as well; null: it runs none.
  Target* target = nullptr;
};

// Is the calling thread running commands? They may do what the host may not.
inline thread_local bool is_running_commands = false;

class RunningCommands {
 public:
  RunningCommands() : outer_(std::exchange(is_running_commands, true)) {}
  ~RunningCommands() { is_running_commands = outer_; }
  RunningCommands(const RunningCommands&) = delete;
  RunningCommands& operator=(const RunningCommands&) = delete;

 private:
  bool outer_;
};

inline bool is_executed(const Stamp& stamp) {
  return stamp.queue->executed.load(std::memory_order_acquire) >= stamp.serial;
}

}  // namespace holdfast::exec
