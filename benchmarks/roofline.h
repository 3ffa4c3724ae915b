// The machine's limits, measured with hand-written loops on threads of their own: what the library
// is compared with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "benchmarks/team.h"

namespace holdfast::bench {

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
