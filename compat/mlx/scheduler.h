// MLX's scheduler as programs use it. Streams have no threads of their own here: what is enqueued
// becomes a command of the stream's queue.
#pragma once

#include <functional>
#include <shared_mutex>
#include <utility>

#include <holdfast/event.h>
#include <holdfast/stream.h>

#include "mlx/core.h"
#include "mlx/io/load.h"

namespace mlx::core::scheduler {

// Runs `f` on the stream, after what was put on it before. An exception of `f` is thrown by
// `synchronize(stream)`. The event of the work is signaled once `f` has run.
Event enqueue_function(Stream stream, std::function<void()> f);
template <typename F>
void enqueue(Stream stream, F&& f) {
  enqueue_function(stream, std::function<void()>(std::forward<F>(f)));
}
// The same, once the event is signaled. What is put on the stream later comes after it, too.
template <typename F>
void wait_event(Stream stream, const Event& event, F&& f) {
  event.wait(stream);
  enqueue(stream, std::forward<F>(f));
}
// The same; `event` is signaled once `f` has run. Copies of it that were made before are not.
template <typename F>
void signal_event(Stream stream, Event& event, F&& f) {
  event = enqueue_function(stream, std::function<void()>(std::forward<F>(f)));
}

// Functions that were enqueued and have not ended, and what programs have told of.
int n_active_tasks();
void notify_new_task(const Stream& stream);
void notify_task_completion(const Stream& stream);
// Returns when one of them has ended; at once if there are none.
void wait_for_one();
// Waits for the stream's work, and throws the first error of it that nobody has seen.
void check_error(const Stream& stream);

// The functions above as members of an object.
struct Scheduler {
  template <typename F>
  void enqueue(Stream stream, F&& f) {
    scheduler::enqueue(stream, std::forward<F>(f));
  }
  template <typename F>
  void wait_event(Stream stream, const Event& event, F&& f) {
    scheduler::wait_event(stream, event, std::forward<F>(f));
  }
  template <typename F>
  void signal_event(Stream stream, Event& event, F&& f) {
    scheduler::signal_event(stream, event, std::forward<F>(f));
  }
  int n_active_tasks() const { return scheduler::n_active_tasks(); }
  void notify_new_task(const Stream& stream) { scheduler::notify_new_task(stream); }
  void notify_task_completion(const Stream& stream) { scheduler::notify_task_completion(stream); }
  void wait_for_one() { scheduler::wait_for_one(); }
  void check_error(const Stream& stream) { scheduler::check_error(stream); }
};
inline Scheduler& scheduler() {
  static Scheduler one;
  return one;
}

}  // namespace mlx::core::scheduler
