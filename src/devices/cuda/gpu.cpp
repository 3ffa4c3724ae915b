#include "devices/cuda/gpu.h"

#include <mutex>

#include "base/process.h"

namespace holdfast::cuda {

Gpu::Gpu(Driver& driver, int index) : driver_(driver) {
  int count = 0, device = 0;
  driver.device_count(&count);
  if (index >= count) {
    throw std::runtime_error("[cuda] expected a GPU below " + std::to_string(count) + ", got " +
                             std::to_string(index));
  }
  driver.device(&device, index);
  auto attribute_of = [&](int which) {
    int value = 0;
    driver.device_attribute(&value, which, device);
    return static_cast<uint32_t>(value);
  };
  char name[256] = {};
  driver.device_name(name, sizeof(name) - 1, device);
  name_ = name;
  architecture_ = 10 * attribute_of(attribute::major) + attribute_of(attribute::minor);
  if (architecture_ < 80) {
    throw std::runtime_error("[cuda] expected a GPU of compute capability 8.0 or later, got " +
                             name_ + ", which has " + std::to_string(architecture_ / 10) + "." +
                             std::to_string(architecture_ % 10));
  }
  if (attribute_of(attribute::writes_64_bits) == 0)
    throw std::runtime_error("[cuda] " + name_ + ": its streams cannot write numbers of 64 bits");
  driver.device_memory(&memory_bytes_, device);
  driver.retain_context(&context_, device);
  use();
}

bool Gpu::try_to_use() const noexcept { return driver_.set_context.attempt(context_) == 0; }

void Gpu::lose(const char* what) noexcept {
  std::lock_guard guard(mutex_);
  if (loss_) return;
  try {
    const std::string text = "the GPU (" + name_ + ") is lost until the process ends: " + what;
    loss_ = make_ref<exec::Failure>(std::make_exception_ptr(DeviceLost(text)), text);
  } catch (...) {
    loss_ = exec::Failure::emergency();
  }
  is_lost_.store(true, std::memory_order_release);
}

void Gpu::look_at(const std::exception& error) noexcept {
  auto* failed = dynamic_cast<const Error*>(&error);
  if (failed && failed->is_sticky()) lose(error.what());
}

Ref<exec::Failure> Gpu::loss() const {
  std::lock_guard guard(mutex_);
  return loss_;
}

void Gpu::throw_loss() const { loss()->raise(); }

bool Gpu::can_release() const noexcept {
  return !is_lost() && !is_shut_down_.load(std::memory_order_acquire) &&
         process::state.load(std::memory_order_acquire) != process::State::forked;
}

Gpu& gpu_of_system(int index) {
  static sync::Mutex mutex;
  static Gpu* gpus[64] = {};
  std::lock_guard guard(mutex);
  if (index < 0 || index >= 64)
    throw std::runtime_error("[cuda] there is no GPU " + std::to_string(index));
  if (!gpus[index]) gpus[index] = new Gpu(Driver::of_system(), index);
  return *gpus[index];
}

}  // namespace holdfast::cuda
