// Random programs of the kernel language: divergent control flow, loops, barriers, cross-lane
// operations, private arrays, threadgroup memory, signed indices of several parts. Each seed gives
// one program, always the same.
//
// What a program computes is defined: no signed overflow, no variable without a value, no data race
// (a thread writes its own places, and barriers stand in uniform control flow), no NaN whose bits
// are looked at. So two lowerings must agree on every bit.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "jit/kernel_testing.h"

namespace holdfast::jit::testing {

inline constexpr uint32_t random_kernel_inputs = 256;     // of `in`, a power of two
inline constexpr uint32_t random_kernel_results = 8;      // per thread, of `out`
inline constexpr uint32_t random_kernel_floats = 2;       // per thread, of `fout`
inline constexpr uint32_t random_kernel_counters = 16;    // of `counters`
inline constexpr uint32_t random_kernel_parameters = 16;  // of `parameters`
inline constexpr uint32_t random_kernel_table = 4096;     // of `table`, read by signed indices
inline constexpr uint32_t random_kernel_placed = 1;       // per thread, of `placed`

// `sizes`: small numbers (0 to 7), then what the kernel was dispatched with.
inline constexpr uint32_t random_kernel_small_sizes = 14;
inline constexpr size_t random_kernel_grid_size = 14;   // the grid's width
inline constexpr size_t random_kernel_group_size = 15;  // a threadgroup's

struct RandomKernel {
  std::string source;  // one kernel: (device const uint* in, device uint* out, device float* fout,
                       // device atomic_uint* counters, constant uint* parameters, device const
                       // uint* table, device uint* placed, constant int* sizes)
  Size grid, threadgroup;
  std::array<int32_t, 16> sizes = {3, 0, 7, 1, 5, 2, 6, 4, 7, 0, 1, 3, 2, 5};
};

RandomKernel random_kernel(uint64_t seed);

}  // namespace holdfast::jit::testing
