// Stacks that one OS thread switches between: what a thread of a kernel needs to wait for others.
#pragma once

#include <cstddef>
#include <cstdint>

namespace holdfast::jit {

// Generated code is x86-64: other machines never run it.
#if defined(__x86_64__)
inline constexpr bool has_fibres = true;
#else
inline constexpr bool has_fibres = false;
#endif

// Goes on where `to` was left and notes in `*from` where the caller was: it returns when somebody
// switches there. Registers that a call may change are lost, and the floating-point mode is that of
// the OS thread: a few nanoseconds.
extern "C" void holdfast_switch_stack(void** from, void* to) noexcept;

// A place to switch to: `entry(argument)` on the stack that ends at `top`, which must be aligned to
// 16 bytes. `entry` must never return.
void* start_of_stack(char* top, void (*entry)(void*), void* argument) noexcept;

}  // namespace holdfast::jit
