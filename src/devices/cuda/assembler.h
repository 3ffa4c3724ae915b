// PTX to machine code by NVIDIA's assembler, where it is installed: a program of the CUDA toolkit,
// which neither building nor running needs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace holdfast::cuda {

// What a kernel takes of the GPU, per thread but for `shared_bytes`.
struct AssembledKernel {
  std::vector<char> cubin;
  uint32_t registers = 0;
  uint32_t stack_bytes = 0;  // local memory: private arrays that are not in registers
  uint32_t spill_store_bytes = 0, spill_load_bytes = 0;
  uint32_t shared_bytes = 0;  // of a threadgroup, without dynamic memory
};

// `ptxas` of the search path, or of the folder that CUDA_HOME names (default: /usr/local/cuda).
// Empty when there is none.
std::string find_assembler();

// Throws std::runtime_error with what the assembler says.
AssembledKernel assemble(const std::string& assembler, const std::string& ptx, uint32_t target);

}  // namespace holdfast::cuda
