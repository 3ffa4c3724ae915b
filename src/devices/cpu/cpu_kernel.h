// What the CPU device dispatches: machine code from the JIT, or a function of this program.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "devices/cpu/jit/dispatch.h"
#include "devices/pipeline.h"

namespace holdfast::exec {

class CpuKernel : public Pipeline {
 public:
  // Called once for each dispatch, before its first group.
  virtual void begin(jit::DispatchArguments&) const {}
  // Runs threadgroups [begin, end), counted x first; several threads may run parts at once.
  virtual void run_groups(const jit::DispatchArguments& arguments, int64_t begin,
                          int64_t end) const = 0;

  // What a group costs, in bytes moved or an equivalent: a guess from its threads until groups have
  // been timed. It decides how many threads help, and nothing else.
  int64_t work_of_group(int64_t threads) const;
  void has_run(int64_t groups, sync::Clock::duration time) const;

 private:
  // Of one group, in picoseconds; 0: not known. Written only when it has changed by much.
  mutable sync::Atomic<uint64_t> measured_{0};
};

// A function that runs one threadgroup: a kernel without a compiler.
class NativeKernel final : public CpuKernel {
 public:
  using Function = std::function<void(const jit::DispatchArguments&, int64_t group)>;
  NativeKernel(std::string name, msl::KernelInterface interface, Function function)
      : name_(std::move(name)), interface_(std::move(interface)), function_(std::move(function)) {}
  const std::string& name() const override { return name_; }
  const msl::KernelInterface& interface() const override { return interface_; }
  void check(const Dispatch&) const override {}
  void run_groups(const jit::DispatchArguments& arguments, int64_t begin,
                  int64_t end) const override {
    for (int64_t group = begin; group < end; ++group) function_(arguments, group);
  }

 private:
  const std::string name_;
  const msl::KernelInterface interface_;
  const Function function_;
};

// How many threadgroups the dispatch has: its tasks.
inline int64_t threadgroups_of(const Dispatch& dispatch) {
  int64_t groups = 1;
  for (int i = 0; i < 3; ++i) {
    groups *= (int64_t{dispatch.grid[i]} + dispatch.threadgroup[i] - 1) / dispatch.threadgroup[i];
  }
  return groups;
}

inline jit::DispatchArguments arguments_of(const Dispatch& dispatch) {
  jit::DispatchArguments arguments;
  arguments.buffers = dispatch.addresses;
  arguments.threadgroup_bytes = dispatch.threadgroup_bytes;
  arguments.ranges = dispatch.ranges;
  for (int i = 0; i < 3; ++i) {
    arguments.grid[i] = dispatch.grid[i];
    arguments.threadgroup[i] = dispatch.threadgroup[i];
  }
  return arguments;
}

}  // namespace holdfast::exec
