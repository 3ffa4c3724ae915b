// Threads for the loops that the library is compared with.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace holdfast::bench {

// As many threads as the process may use; the caller is one of them. They sleep between runs, so
// that they take nothing from what is measured in between.
class Team {
 public:
  explicit Team(int threads);
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;
  int size() const { return static_cast<int>(helpers_.size()) + 1; }

  using Body = std::function<void(int64_t task)>;
  // Calls body(task) for each task in [0, tasks); a thread takes the next one when it is done, so a
  // core that somebody else uses delays only one task.
  void run(int64_t tasks, const Body& body);

 private:
  void help();
  void drain(const Body& body, int64_t tasks);

  std::vector<std::thread> helpers_;
  std::mutex mutex_;
  std::condition_variable changed_, left_;
  // Guarded by mutex_.
  uint64_t round_ = 0;
  int inside_ = 0;
  bool stopping_ = false;
  const Body* body_ = nullptr;
  int64_t tasks_ = 0;
  std::atomic<int64_t> next_{0};
};

}  // namespace holdfast::bench
