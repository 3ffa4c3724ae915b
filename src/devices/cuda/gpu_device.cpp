#include "devices/cuda/gpu_device.h"

#include <algorithm>
#include <mutex>
#include <vector>

#include "devices/cuda/gpu_queue.h"

namespace holdfast::cuda {
namespace {

using exec::CommandList;
using exec::DeviceQueue;
using exec::Stamp;

// A thread that waits spins for so long: what is about to complete is seen at once. Then it sleeps
// for a part of the time that it has waited, so that it is late by little and costs little.
constexpr auto spin_time = std::chrono::microseconds(HOLDFAST_CONTROLLED ? 1 : 100);
constexpr int part_of_wait = 16;
constexpr auto longest_sleep = std::chrono::microseconds(200);
// How often a waiting thread asks the driver whether the GPU still works.
constexpr auto time_between_questions = std::chrono::milliseconds(2);

// A queue's first pending list is launched when the lists that it waits for have been: those of
// this GPU by the stream, all others by completing. A launched list is finished by whichever
// thread sees that the GPU has run it: one that waits for it or asks for it to go on, or the
// reaper, a thread that is awake while lists run that no thread promised to wait for.
class GpuDevice final : public exec::Scheduler, public exec::Device {
 public:
  GpuDevice(Gpu& gpu, exec::MemorySpace& memory) : Device(memory, *this), gpu_(gpu) {}
  ~GpuDevice() override { shut_down(std::chrono::seconds(5)); }

  std::unique_ptr<DeviceQueue> create_queue() override {
    gpu_.use();
    auto queue = std::make_unique<GpuQueue>(*this, gpu_);
    std::lock_guard lock(mutex_);
    queues_.push_back(queue.get());
    return queue;
  }

  void submit(CommandList& list, bool wake) noexcept override {
    std::unique_lock lock(mutex_);
    auto& queue = static_cast<GpuQueue&>(*list.queue);
    list.next = nullptr;
    (queue.first_pending ? queue.last_pending->next : queue.first_pending) = &list;
    queue.last_pending = &list;
    ++unfinished_;
    // The queue is locked: lists are finished by others.
    launch_ready(queue, lock);
    if (wake) wake_reaper(lock);
  }

  void help(DeviceQueue& queue) noexcept override {
    std::unique_lock lock(mutex_);
    advance(static_cast<GpuQueue&>(queue), lock);
    // Whoever asks goes on to sleep, perhaps.
    wake_reaper(lock);
  }

  void kick(DeviceQueue& queue) noexcept override {
    std::unique_lock lock(mutex_);
    advance(static_cast<GpuQueue&>(queue), lock);
    wake_reaper(lock);
    DeviceQueue* foreign = awaited_elsewhere(static_cast<GpuQueue&>(queue), lock);
    lock.unlock();
    if (foreign) foreign->device.kick(*foreign);
  }

  // Called with locks held that finishing a list needs: the reaper goes on.
  void completed_elsewhere() noexcept override {
    std::unique_lock lock(mutex_);
    wake_reaper(lock);
  }

  bool wait(DeviceQueue& device_queue, uint64_t serial,
            std::optional<sync::Clock::time_point> deadline) override {
    auto& queue = static_cast<GpuQueue&>(device_queue);
    auto is_completed = [&] { return queue.completed.load(std::memory_order_acquire) >= serial; };
    const auto start = sync::now();
    auto asked = start;
    DeviceQueue* helped = nullptr;
    while (!is_completed()) {
      std::unique_lock lock(mutex_);
      advance_all(queue, lock);
      if (is_completed()) break;
      DeviceQueue* foreign = awaited_elsewhere(queue, lock);
      lock.unlock();
      if (foreign && !deadline) {
        // What it waits for may wait for a thread to run it.
        foreign->device.help(*foreign);
        if (std::exchange(helped, foreign) != foreign) foreign->device.kick(*foreign);
        if (is_completed()) break;
      } else if (foreign && helped != foreign) {
        foreign->device.kick(*(helped = foreign));
      }
      const auto now = sync::now();
      if (deadline && now >= *deadline) return false;
      if (now - asked > time_between_questions) {
        asked = now;
        std::lock_guard guard(mutex_);
        look_after(queue, true);
      }
      pause_after(now - start, queue, serial);
    }
    return true;
  }

  void shut_down(std::chrono::nanoseconds limit) noexcept override {
    const auto start = sync::now();
    {
      std::unique_lock lock(mutex_);
      if (is_shut_down_) return;
      is_shut_down_ = true;
      while (unfinished_ > 0 && sync::now() - start < limit) {
        for (size_t i = 0; i < queues_.size(); ++i) advance(*queues_[i], lock);
        for (GpuQueue* queue : queues_) look_after(*queue, true);
        if (unfinished_ == 0) break;
        lock.unlock();
        sync::sleep_for(std::chrono::microseconds(100));
        lock.lock();
      }
      is_stopping_ = true;
      work_.notify_all();
    }
    if (reaper_.joinable()) reaper_.join();
    gpu_.shut_down();
  }

 private:
  // --- lists ---

  bool may_launch(const CommandList& list) {
    bool may = true;
    for (const Stamp& wait : list.waits) {
      if (&wait.queue->device == this) {
        may &= static_cast<GpuQueue&>(*wait.queue).launched_serial >= wait.serial;
      } else {
        // Each one is asked, so that each one notifies.
        may &= is_completed_or_awaited(wait);
      }
    }
    return may;
  }

  // Launches what may be launched; the mutex is released meanwhile.
  void launch_ready(GpuQueue& queue, std::unique_lock<sync::Mutex>& lock) noexcept {
    while (!queue.is_launching && queue.first_pending && may_launch(*queue.first_pending))
      launch_first(queue, lock);
  }

  // Finishes lists, too: under no lock but the mutex.
  void advance(GpuQueue& queue, std::unique_lock<sync::Mutex>& lock) noexcept {
    launch_ready(queue, lock);
    while (!queue.is_finishing && !queue.launched.empty() &&
           (gpu_.is_lost() || queue.executed_by_gpu() >= queue.launched.front().list->serial)) {
      finish_first(queue, lock);
      launch_ready(queue, lock);
    }
  }

  // Also the queues of this GPU that it waits for, however many are between.
  void advance_all(GpuQueue& queue, std::unique_lock<sync::Mutex>& lock) noexcept {
    advance(queue, lock);
    if (!queue.first_pending) return;
    for (size_t i = 0; i < queues_.size(); ++i) {
      if (queues_[i] != &queue) advance(*queues_[i], lock);
    }
    advance(queue, lock);
  }

  void launch_first(GpuQueue& queue, std::unique_lock<sync::Mutex>& lock) noexcept {
    CommandList* list = queue.first_pending;
    queue.first_pending = list->next;
    queue.is_launching = true;
    LaunchedList launched = take_record(lock);
    launched.list = list;
    const uint64_t serial = list->serial;
    lock.unlock();
    queue.launch(launched);
    lock.lock();
    queue.launched.push_back(std::move(launched));
    queue.launched_serial = serial;
    queue.is_launching = false;
  }

  void finish_first(GpuQueue& queue, std::unique_lock<sync::Mutex>& lock) noexcept {
    queue.is_finishing = true;
    LaunchedList launched = std::move(queue.launched.front());
    queue.launched.pop_front();
    CommandList* list = launched.list;
    const uint64_t serial = list->serial;
    lock.unlock();
    queue.settle(launched);
    queue.executed.store(serial, std::memory_order_release);
    CommandList::AfterCompletion after_completion = list->finish(*list);
    lock.lock();
    give_back_record(std::move(launched), lock);
    queue.completed.store(serial, std::memory_order_release);
    queue.is_finishing = false;
    --unfinished_;
    if (is_awaited(queue) || after_completion) {
      lock.unlock();
      notify_others(queue);
      if (after_completion) after_completion();
      lock.lock();
    }
  }

  // Records of lists keep the memory that they have.
  LaunchedList take_record(sync::Held) noexcept {
    if (spare_.empty()) return {};
    LaunchedList record = std::move(spare_.back());
    spare_.pop_back();
    return record;
  }
  void give_back_record(LaunchedList record, sync::Held) noexcept {
    record.list = nullptr;
    record.reports.clear();
    record.failed.clear();
    if (spare_.size() < spare_.capacity()) spare_.push_back(std::move(record));
  }

  // With the mutex held.
  void look_after(GpuQueue& queue, bool asks_driver) noexcept {
    if (!queue.launched.empty()) queue.look_after(queue.launched.front(), asks_driver);
  }

  // A queue of another scheduler that the queue waits for, itself or through others of this GPU;
  // null: there is none.
  DeviceQueue* awaited_elsewhere(GpuQueue& queue, sync::Held) {
    ++searches_;
    found_.clear();
    auto add = [&](GpuQueue& one) {
      if (std::exchange(one.search, searches_) != searches_ && one.first_pending)
        found_.push_back(&one);
    };
    add(queue);
    for (size_t i = 0; i < found_.size(); ++i) {
      for (const Stamp& wait : found_[i]->first_pending->waits) {
        if (&wait.queue->device == this) {
          add(static_cast<GpuQueue&>(*wait.queue));
        } else if (!is_completed_or_awaited(wait)) {
          return wait.queue;
        }
      }
    }
    return nullptr;
  }

  // --- threads ---

  static void pause_after(std::chrono::nanoseconds waited, GpuQueue& queue, uint64_t serial) {
    if (waited > spin_time) {
      sync::sleep_for(std::min<std::chrono::nanoseconds>(waited / part_of_wait, longest_sleep));
      return;
    }
    for (int i = 0; i < 64 && queue.executed_by_gpu() < serial; ++i) sync::pause();
  }

  void wake_reaper(sync::Held) noexcept {
    if (unfinished_ == 0 || is_stopping_) return;
    if (!reaper_.joinable() && !is_shut_down_) {
      try {
        reaper_ = sync::Thread("holdfast-gpu", [this] { reap(); });
      } catch (...) {
        return;  // those who wait do its work
      }
    }
    is_woken_ = true;
    work_.notify_one();
  }

  void reap() noexcept {
    std::unique_lock lock(mutex_);
    auto busy_since = sync::now();
    auto asked = busy_since;
    while (!is_stopping_) {
      if (unfinished_ == 0 || is_shut_down_) {
        is_woken_ = false;
        work_.wait(lock, [&] { return is_woken_ || is_stopping_; });
        busy_since = asked = sync::now();
        continue;
      }
      const int before = unfinished_;
      for (size_t i = 0; i < queues_.size(); ++i) advance(*queues_[i], lock);
      const auto now = sync::now();
      if (unfinished_ < before) busy_since = now;
      if (now - asked > time_between_questions) {
        asked = now;
        for (GpuQueue* queue : queues_) look_after(*queue, true);
      }
      const auto sleep = std::clamp<std::chrono::nanoseconds>(
          (now - busy_since) / part_of_wait, std::chrono::microseconds(10), longest_sleep);
      is_woken_ = false;
      work_.wait_for(lock, sleep, [&] { return is_woken_ || is_stopping_; });
    }
  }

  Gpu& gpu_;
  sync::Mutex mutex_{sync::Rank::device};
  sync::CondVar work_;
  // All guarded by mutex_.
  std::vector<GpuQueue*> queues_;
  std::vector<GpuQueue*> found_;  // of awaited_elsewhere
  std::vector<LaunchedList> spare_ = [] {
    std::vector<LaunchedList> records;
    records.reserve(64);
    return records;
  }();
  uint64_t searches_ = 0;
  int unfinished_ = 0;  // lists submitted and not completed
  bool is_woken_ = false, is_stopping_ = false, is_shut_down_ = false;
  sync::Thread reaper_;
};

}  // namespace

std::unique_ptr<exec::Device> make_gpu_device(Gpu& gpu, exec::MemorySpace& memory) {
  return std::make_unique<GpuDevice>(gpu, memory);
}

}  // namespace holdfast::cuda
