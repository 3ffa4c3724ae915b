#include "exec/background.h"

#include <cstdlib>
#include <deque>
#include <mutex>
#include <system_error>

#include "base/sync.h"

namespace holdfast::exec {
namespace {

// Lives as long as the process, and so does its thread.
class Background {
 public:
  void add(std::function<void()> work) {
    std::lock_guard lock(mutex_);
    if (is_ending_) return;
    if (!thread_.joinable()) {
      try {
        thread_ = sync::Thread("hf-background", [this] { run(); });
      } catch (const std::system_error&) {
        return;
      }
    }
    waiting_.push_back(std::move(work));
    changed_.notify_all();
  }

  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return waiting_.empty() && !is_busy_; });
  }

  void end() {
    std::unique_lock lock(mutex_);
    is_ending_ = true;
    waiting_.clear();
    changed_.wait(lock, [this] { return !is_busy_; });
  }

 private:
  [[noreturn]] void run() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return !waiting_.empty(); });
      std::function<void()> work = std::move(waiting_.front());
      waiting_.pop_front();
      is_busy_ = true;
      lock.unlock();
      work();
      work = nullptr;
      // Before the destructors of what was made meanwhile.
      std::atexit(&end_background);
      lock.lock();
      is_busy_ = false;
      changed_.notify_all();
    }
  }

  sync::Mutex mutex_;
  sync::CondVar changed_;
  std::deque<std::function<void()>> waiting_;  // guarded by mutex_, as all below
  bool is_busy_ = false, is_ending_ = false;
  sync::Thread thread_;
};

Background& background() {
  static auto* instance = new Background;
  return *instance;
}

}  // namespace

void run_in_background(std::function<void()> work) { background().add(std::move(work)); }
void end_background() { background().end(); }
void wait_for_background() { background().wait(); }

}  // namespace holdfast::exec
