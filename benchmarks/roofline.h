// The machine's limits, measured with hand-written loops on threads of their own: what the library
// is compared with.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
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

// Floats in huge pages where the system grants them, touched before use.
class HugeBuffer {
 public:
  explicit HugeBuffer(size_t count);
  ~HugeBuffer();
  HugeBuffer(const HugeBuffer&) = delete;
  HugeBuffer& operator=(const HugeBuffer&) = delete;
  float* data() const { return data_; }
  size_t size() const { return count_; }

 private:
  void* base_;
  size_t bytes_;
  size_t count_;
  float* data_;
};

// The fastest of several ways to write each loop, chosen by measuring them once (Roofline::get).
class Roofline {
 public:
  static Roofline& get();

  Team& team() { return team_; }
  void copy(const float* from, float* to, size_t count);
  // Reads everything; returns a sum so that nothing can be left out.
  float read(const float* from, size_t count);
  float read(std::span<const std::span<const float>> ranges);
  void add(const float* a, const float* b, float* to, size_t count);
  // Floating-point operations (a fused multiply-add counts two) done by one call.
  double multiply_add();

  const std::string& copy_variant() const { return copy_name_; }
  const std::string& read_variant() const { return read_name_; }
  const std::string& add_variant() const { return add_name_; }
  const std::string& multiply_add_variant() const { return multiply_add_name_; }

 private:
  Roofline();

  using CopyLoop = void (*)(const float*, float*, size_t);
  using ReadLoop = float (*)(const float*, size_t);
  using AddLoop = void (*)(const float*, const float*, float*, size_t);
  using MultiplyAddLoop = double (*)();

  Team team_;
  CopyLoop copy_loop_ = nullptr;
  ReadLoop read_loop_ = nullptr;
  AddLoop add_loop_ = nullptr;
  MultiplyAddLoop multiply_add_loop_ = nullptr;
  std::string copy_name_, read_name_, add_name_, multiply_add_name_;
};

}  // namespace holdfast::bench
