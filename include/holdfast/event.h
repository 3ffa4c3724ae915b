// Events: a point in a stream's work that others can wait for.
#pragma once

#include <chrono>
#include <cstdint>

#include <holdfast/stream.h>

namespace holdfast {

namespace exec {
class Queue;
}

// "Everything up to list `serial` of `queue` has completed." Cheap to copy; a default-constructed
// event is invalid and counts as signaled.
class Event {
 public:
  Event() = default;
  Event(exec::Queue* queue, uint64_t serial) : queue_(queue), serial_(serial) {}

  bool valid() const { return queue_ != nullptr; }
  exec::Queue* queue() const { return queue_; }
  uint64_t serial() const { return serial_; }

  bool is_signaled() const;
  // Submits what the event needs, and waits.
  void wait() const;
  // False when the timeout passed first.
  bool wait_for(std::chrono::nanoseconds timeout) const;
  // Makes work submitted to `stream` from now on start after this event.
  void wait(Stream stream) const;

 private:
  exec::Queue* queue_ = nullptr;
  uint64_t serial_ = 0;
};

}  // namespace holdfast
