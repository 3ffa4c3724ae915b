// BackendCache: what a backend keeps with a description that it encodes again and again.
#pragma once

#include <atomic>
#include <mutex>
#include <type_traits>

#include "base/sync.h"

namespace holdfast::kernels {

// Owned by the op, which runs on the device of its stream. Any thread may use it at any time.
class BackendCache {
 public:
  BackendCache() = default;
  BackendCache(const BackendCache&) = delete;
  BackendCache& operator=(const BackendCache&) = delete;
  ~BackendCache() {
    if (destroy_) destroy_(made_.load(std::memory_order_acquire));
  }

  // What `make` gives, called at most once: all callers have functions of one type. Where it throws
  // nothing is kept.
  template <class Make>
  auto& get(Make&& make) {
    using Made = std::invoke_result_t<Make&>;
    void* made = made_.load(std::memory_order_acquire);
    if (!made) {
      std::lock_guard guard(mutex_);
      made = made_.load(std::memory_order_relaxed);
      if (!made) {
        made = new Made(make());
        destroy_ = [](void* p) { delete static_cast<Made*>(p); };
        made_.store(made, std::memory_order_release);
      }
    }
    return *static_cast<Made*>(made);
  }

 private:
  sync::Mutex mutex_{sync::Rank::prepared};
  sync::Atomic<void*> made_{nullptr};
  void (*destroy_)(void*) = nullptr;  // guarded by mutex_
};

}  // namespace holdfast::kernels
