// Random programs of the kernel language: divergent control flow, loops, barriers, cross-lane
// operations, private arrays, threadgroup memory. Each seed gives one program, always the same.
//
// What a program computes is defined: no signed overflow, no variable without a value, no data race
// (a thread writes its own places, and barriers stand in uniform control flow), no NaN whose bits
// are looked at. So two lowerings must agree on every bit.
#pragma once

#include <cstdint>
#include <string>

#include "jit/kernel_testing.h"

namespace holdfast::jit::testing {

struct RandomKernel {
  std::string source;  // one kernel: (device const uint* in, device uint* out, device float* fout,
                       // device atomic_uint* counters, constant uint* parameters)
  Size grid, threadgroup;
};
inline constexpr uint32_t random_kernel_inputs = 256;     // of `in`, a power of two
inline constexpr uint32_t random_kernel_results = 8;      // per thread, of `out`
inline constexpr uint32_t random_kernel_floats = 2;       // per thread, of `fout`
inline constexpr uint32_t random_kernel_counters = 16;    // of `counters`
inline constexpr uint32_t random_kernel_parameters = 16;  // of `parameters`

RandomKernel random_kernel(uint64_t seed);

}  // namespace holdfast::jit::testing
