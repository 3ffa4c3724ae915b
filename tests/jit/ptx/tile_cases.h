// Kernels on the functions of include/holdfast/tile.h, with what plain C++ computes.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "jit/ptx/gpu_cases.h"

namespace holdfast::jit::testing {

using Words = std::vector<uint32_t>;

struct TileCase {
  const char* name;
  std::string body;
  // What the kernel reads (`x`), and what it should write (`y`), a block of tile_threads words for
  // each result of the threads.
  Words input;
  Words expected;
  std::vector<const char*> instructions;  // of PTX
  bool is_exact = true;                   // on a GPU as well
};

inline constexpr uint32_t tile_threads = 64;  // of one threadgroup

std::vector<TileCase> tile_cases();
GpuCase gpu_case(const TileCase& one);

}  // namespace holdfast::jit::testing
