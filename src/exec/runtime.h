// Runtime: the devices, the queues and the threads' default streams; its start, its end, and forks.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include <holdfast/stream.h>

#include "base/sync.h"
#include "devices/cpu/cpu_device.h"
#include "exec/queue.h"

namespace holdfast::exec {

// Starts at first use, is never destroyed. At exit it refuses new work, drains for at most 5 s and
// joins its threads.
class Runtime {
 public:
  // Throws std::runtime_error in a child process that was forked after the start, and after exit
  // began.
  static Runtime& get();
  // Has the runtime been started (and may its queues be asked)?
  static bool is_running();

  // The queue of a stream; std::invalid_argument when there is no such stream.
  Queue& queue(const Stream& stream);
  // A queue that nobody has: from the pool, or a new one.
  Queue& acquire(holdfast::Device device);
  // Drains the queue and puts it into the pool. Its index stays valid.
  void give_back(Queue& queue);
  std::vector<Stream> streams();
  // Waits for everything that was submitted so far, on all queues. Errors stay with their arrays.
  void drain();
  // Queues that exist, for tests: they do not grow with the number of threads that ever lived.
  size_t queue_count();

  CpuDevice& cpu_device() { return *cpu_; }
  // Runs the work of Device::gpu from now on, in place of the CPU's cores: before it has any queue.
  void install_gpu(std::unique_ptr<Device> gpu);
  // The same for a GPU that costs time to start: made when it is first asked for. Null from `make`:
  // there is none; what it throws goes to who asked, each time.
  void install_gpu_later(std::unique_ptr<Device> (*make)()) { make_gpu_.store(make); }
  // What runs the work of a device as programs name it.
  Device& device(const holdfast::Device& named) {
    if (named != holdfast::Device::gpu) return *cpu_;
    if (make_gpu_.load(std::memory_order_acquire)) [[unlikely]]
      make_gpu();
    return gpu_ ? *gpu_ : *cpu_;
  }
  // The memory that a device works on. Starts nothing for the CPU's.
  static MemorySpace& memory_of(const holdfast::Device& named);

 private:
  Runtime();
  static void at_exit();
  void make_gpu();

  std::unique_ptr<CpuDevice> cpu_;
  std::atomic<std::unique_ptr<Device> (*)()> make_gpu_{nullptr};  // null: made, or there is none
  std::mutex making_;
  std::unique_ptr<Device> gpu_;  // null: the CPU's cores, under a GPU's rules
  sync::Mutex mutex_{sync::Rank::runtime};
  // Guarded by mutex_. A queue lives as long as the process; `table_` is its place by index.
  std::vector<std::unique_ptr<Queue>> queues_;
  std::vector<Queue*> pool_;
  // Look-up without the lock: blocks of pointers that are never moved.
  static constexpr int block = 256, blocks = 4096;
  std::atomic<std::atomic<Queue*>*> table_[blocks] = {};
};

// What kernels for the stream are compiled for: where its device has no kernels, the host runs
// them.
inline Target& target_of(const Stream& stream) {
  Runtime& runtime = Runtime::get();
  Target* target = runtime.queue(stream).device().target;
  return target ? *target : *runtime.cpu_device().target;
}

// Each thread's default streams and device override.
struct ThreadStreams {
  std::optional<Stream> defaults[2];           // by device type
  std::vector<Queue*> owned;                   // made for this thread; given back when it ends
  std::vector<std::pair<int, Stream>> locals;  // ThreadLocalStream index → this thread's stream
  std::optional<holdfast::Device> device;      // set by StreamContext

  static ThreadStreams& get();
  void give_back();
};

}  // namespace holdfast::exec
