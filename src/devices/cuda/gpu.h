// Gpu: one GPU of this process: its context, what it can do, and whether it has been lost.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <string>

#include "base/ref.h"
#include "base/sync.h"
#include "devices/cuda/driver.h"
#include "devices/failure.h"

namespace holdfast::cuda {

// Lives as long as the process, or the test that made it.
class Gpu {
 public:
  // Throws std::runtime_error where the GPU cannot be used, or is too old.
  Gpu(Driver& driver, int index);
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;

  Driver& driver() const { return driver_; }
  const std::string& name() const { return name_; }
  uint32_t architecture() const { return architecture_; }  // 90: sm_90
  size_t memory_bytes() const { return memory_bytes_; }
  Context context() const { return context_; }

  // Calls of the driver on this thread are for this GPU from now on. Before the first call of each
  // function that other threads' code may call.
  void use() const { driver_.set_context(context_); }
  // The same where nothing may throw: false when the driver does not answer any more.
  bool try_to_use() const noexcept;

  // The driver has reported an error after which the GPU does nothing more for this process, for
  // any context: what it holds is gone. The first call counts.
  void lose(const char* what) noexcept;
  // Loses the GPU where the error is one of those.
  void look_at(const std::exception& error) noexcept;
  bool is_lost() const { return is_lost_.load(std::memory_order_acquire); }
  // Why it is lost: throws DeviceLost for whoever waits. Null while it is not lost.
  Ref<exec::Failure> loss() const;
  [[noreturn]] void throw_loss() const;

  // The process is exiting: the driver is not called any more.
  void shut_down() { is_shut_down_.store(true, std::memory_order_release); }
  // May memory and modules be given back? Not after the end of the context, and not in a child.
  bool can_release() const noexcept;

 private:
  Driver& driver_;
  Context context_ = nullptr;
  std::string name_;
  uint32_t architecture_ = 0;
  size_t memory_bytes_ = 0;
  std::atomic<bool> is_lost_{false}, is_shut_down_{false};
  mutable sync::Mutex mutex_;
  Ref<exec::Failure> loss_;  // guarded by mutex_
};

// The GPU of this index, made at the first call. Throws what its constructor and Driver::of_system
// throw.
Gpu& gpu_of_system(int index = 0);

}  // namespace holdfast::cuda
