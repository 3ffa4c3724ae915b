// Stacks that one OS thread switches between: what a thread of a kernel needs to wait for others.
#pragma once

#include <cstddef>
#include <cstdint>

#include "devices/cpu/jit/kernel_abi.h"

namespace holdfast::jit {

// Generated code is x86-64: other machines never run it.
#if defined(__x86_64__)
inline constexpr bool has_fibres = true;
#else
inline constexpr bool has_fibres = false;
#endif

// The stacks of the lanes of a simdgroup, which take turns on one OS thread. A lane that waits
// keeps its stack and its frame pointer and no other register, and the floating-point mode is that
// of the OS thread: giving way takes a few nanoseconds.
struct alignas(256) LaneTurns {
  LaneValues values;
  // Lanes that may run, as bits. The one behind them is always set while any runs: once no lane is
  // left, whoever called holdfast_take_turns goes on.
  uint64_t ready;
  uint64_t waits_for[simdgroup_width];  // of those that do not run: wait_at()
  void* stacks[simdgroup_width + 1];    // where each goes on, and behind them the caller
  static constexpr uint64_t caller = uint64_t{1} << simdgroup_width;
};

// Lets the ready lanes run until each has come to a wait or has ended.
extern "C" void holdfast_take_turns(LaneTurns* turns) noexcept;
// ReferenceRuntime::wait: the lane gives way to the next one that is ready, and gets the lane's
// LaneValues::results once it is ready again. For generated code alone.
extern "C" void holdfast_wait() noexcept;

// For LaneTurns::stacks: `entry(argument)` on the stack that ends at `top`, which must be aligned
// to 16 bytes. It returns the LaneTurns that it belongs to, and the lane has ended.
void* start_of_stack(char* top, LaneTurns* (*entry)(void*), void* argument) noexcept;

}  // namespace holdfast::jit
