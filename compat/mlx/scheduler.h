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

}  // namespace mlx::core::scheduler
