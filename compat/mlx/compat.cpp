// What MLX's interface has beyond headers. On the public interface of the library alone.
#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>

#include <holdfast/ops.h>
#include <holdfast/primitive.h>
#include <holdfast/transforms.h>

#include "mlx/backend/cpu/encoder.h"
#include "mlx/io/load.h"
#include "mlx/ops.h"
#include "mlx/scheduler.h"

namespace mlx::core {

array astype(array a, Dtype dtype, bool force_copy, StreamOrDevice s) {
  bool same = a.dtype() == dtype;
  array converted = ::holdfast::astype(std::move(a), dtype, s);
  return force_copy && same ? copy(converted, s) : converted;
}

cpu::CommandEncoder& cpu::get_command_encoder(Stream stream) {
  // One per thread: it is only the stream's name, the work goes to the library's encoder.
  thread_local std::unique_ptr<CommandEncoder> encoder;
  encoder = std::make_unique<CommandEncoder>(stream);
  return *encoder;
}

namespace {

// A function as an op without inputs: its one command calls it.
class Callback final : public UnaryPrimitive {
 public:
  Callback(Stream stream, std::function<void()> function)
      : UnaryPrimitive(stream), function_(std::move(function)) {}
  void eval_cpu(const std::vector<array>&, array& output) override { encode(output); }
  void eval_gpu(const std::vector<array>&, array& output) override { encode(output); }
  const char* name() const override { return "scheduler::enqueue"; }

 private:
  void encode(array& output) {
    Encoder& encoder = Encoder::of(stream());
    encoder.allocate(output);
    encoder.output(output);
    encoder.host_callback("scheduler::enqueue", function_);
  }
  std::function<void()> function_;
};

// The tasks of all streams. Never destroyed: streams may end after it would be.
struct Tasks {
  std::mutex mutex;
  std::condition_variable changed;
  int active = 0;
  uint64_t ended = 0;

  static Tasks& get() {
    static Tasks& tasks = *new Tasks;
    return tasks;
  }
};

// Ends once: when its function has run, or is dropped without that.
class Task {
 public:
  explicit Task(Stream stream) : stream_(stream) { scheduler::notify_new_task(stream_); }
  Task(const Task&) = delete;
  Task& operator=(const Task&) = delete;
  ~Task() { end(); }
  void end() {
    if (!has_ended_.exchange(true)) scheduler::notify_task_completion(stream_);
  }

 private:
  Stream stream_;
  std::atomic<bool> has_ended_ = false;
};

}  // namespace

Event scheduler::enqueue_function(Stream stream, std::function<void()> f) {
  auto body = [f = std::move(f), task = std::make_shared<Task>(stream)] {
    struct Guard {
      Task& task;
      ~Guard() { task.end(); }
    } guard{*task};
    f();
  };
  array called({1}, uint8, std::make_shared<Callback>(stream, std::move(body)), {});
  async_eval(called);
  return called.event();
}

int scheduler::n_active_tasks() {
  std::lock_guard lock(Tasks::get().mutex);
  return Tasks::get().active;
}

void scheduler::notify_new_task(const Stream&) {
  std::lock_guard lock(Tasks::get().mutex);
  ++Tasks::get().active;
}

void scheduler::notify_task_completion(const Stream&) {
  Tasks& tasks = Tasks::get();
  std::lock_guard lock(tasks.mutex);
  --tasks.active;
  ++tasks.ended;
  tasks.changed.notify_all();
}

void scheduler::wait_for_one() {
  Tasks& tasks = Tasks::get();
  std::unique_lock lock(tasks.mutex);
  uint64_t before = tasks.ended;
  tasks.changed.wait(lock, [&] { return tasks.active == 0 || tasks.ended != before; });
}

void scheduler::check_error(const Stream& stream) { synchronize(stream); }

}  // namespace mlx::core

namespace holdfast::io {

namespace {
constexpr int pool_threads = 4;
}

// Its threads end with the process, after what was given to them.
ThreadPool& thread_pool() {
  static ThreadPool pool(pool_threads);
  return pool;
}

ThreadPool::ThreadPool(int threads) {
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { run(); });
}

ThreadPool::~ThreadPool() {
  {
    std::lock_guard lock(mutex_);
    is_ending_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) {
    // A task has called exit(): it does not return.
    const bool is_this = thread.get_id() == std::this_thread::get_id();
    is_this ? thread.detach() : thread.join();
  }
}

void ThreadPool::add(std::function<void()> task) {
  {
    std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
  }
  changed_.notify_one();
}

void ThreadPool::run() {
  while (true) {
    std::function<void()> task;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return is_ending_ || !tasks_.empty(); });
      if (tasks_.empty()) return;
      task = std::move(tasks_.front());
      tasks_.pop_front();
    }
    task();
  }
}

}  // namespace holdfast::io
