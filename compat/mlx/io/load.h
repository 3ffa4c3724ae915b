// Readers and writers, and threads for who writes one.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <queue>
#include <thread>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <holdfast/io.h>

#include "mlx/core.h"

namespace holdfast::io {

class ThreadPool {
 public:
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  // Calls `f` with copies of the arguments on one of the threads. The future has what it returns or
  // throws.
  template <class F, class... Args>
  auto enqueue(F&& f, Args&&... args) {
    using Result = std::invoke_result_t<std::decay_t<F>, std::decay_t<Args>...>;
    auto task = std::make_shared<std::packaged_task<Result()>>(
        [f = std::forward<F>(f),
         values = std::make_tuple(std::forward<Args>(args)...)]() mutable -> Result {
          return std::apply(std::move(f), std::move(values));
        });
    add([task] { (*task)(); });
    return task->get_future();
  }

 private:
  void add(std::function<void()> task);
  void run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_;  // guarded by mutex_
  bool is_ending_ = false;                   // guarded by mutex_
  std::vector<std::thread> threads_;
};

// For programs alone: the library reads files in commands.
ThreadPool& thread_pool();

}  // namespace holdfast::io
