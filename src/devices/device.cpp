#include "devices/device.h"

#include <atomic>
#include <vector>

namespace holdfast::exec {
namespace {

// Schedulers live as long as the process, but for those of tests.
struct Schedulers {
  sync::Atomic<int> count{0};
  sync::Mutex mutex{sync::Rank::schedulers};
  std::vector<Scheduler*> all;  // guarded by mutex
};
Schedulers& schedulers() {
  static Schedulers* instance = new Schedulers;
  return *instance;
}

}  // namespace

Scheduler::Scheduler() {
  std::lock_guard guard(schedulers().mutex);
  schedulers().all.push_back(this);
  schedulers().count.fetch_add(1);
}

Scheduler::~Scheduler() {
  std::lock_guard guard(schedulers().mutex);
  std::erase(schedulers().all, this);
  schedulers().count.fetch_sub(1);
}

bool Scheduler::is_completed_or_awaited(const Stamp& stamp) {
  auto is_completed = [&] {
    return stamp.queue->completed.load(std::memory_order_seq_cst) >= stamp.serial;
  };
  if (is_completed()) return true;
  if (&stamp.queue->device.scheduler == this) return false;
  // In this order, while the other side stores first and asks then: one of the two sees the other.
  stamp.queue->is_awaited.store(true, std::memory_order_seq_cst);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  return is_completed();
}

bool Scheduler::is_awaited(DeviceQueue& queue) noexcept {
  if (schedulers().count.load(std::memory_order_relaxed) == 1) return false;
  std::atomic_thread_fence(std::memory_order_seq_cst);
  return queue.is_awaited.load(std::memory_order_relaxed);
}

void Scheduler::notify_others(DeviceQueue& queue) noexcept {
  if (!queue.is_awaited.exchange(false)) return;
  std::lock_guard guard(schedulers().mutex);
  for (Scheduler* scheduler : schedulers().all) {
    if (scheduler != &queue.device.scheduler) scheduler->completed_elsewhere();
  }
}

}  // namespace holdfast::exec
