// MLX's scheduler as programs use it. Streams have no threads of their own here: what is enqueued
// becomes a command of the stream's queue.
#pragma once

#include <functional>
#include <utility>

#include <holdfast/event.h>
#include <holdfast/stream.h>

#include "mlx/core.h"

namespace mlx::core::scheduler {

// Runs `f` on the stream, after what was put on it before. An exception of `f` is thrown by
// `synchronize(stream)`.
void enqueue_function(Stream stream, std::function<void()> f);
template <typename F>
void enqueue(Stream stream, F&& f) {
  enqueue_function(stream, std::function<void()>(std::forward<F>(f)));
}

// Functions that were enqueued and have not ended, and what programs have told of.
int n_active_tasks();
void notify_new_task(const Stream& stream);
void notify_task_completion(const Stream& stream);
// Returns when one of them has ended; at once if there are none.
void wait_for_one();
// Waits for the stream's work, and throws the first error of it that nobody has seen.
void check_error(const Stream& stream);

}  // namespace mlx::core::scheduler
