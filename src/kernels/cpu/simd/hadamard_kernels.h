// The Hadamard transform that exists once per instruction set.
#pragma once

#include <cstdint>

namespace holdfast::kernels::cpu::simd {

struct HadamardKernels {
  // In place: H_factor ⊗ H_power times the row, times `scale`. `power` is a power of two; bit j of
  // signs[i] says that element (i, j) of H_factor is -1. `factor` is at most 28.
  void (*transform)(float* row, int64_t factor, int64_t power, const uint32_t* signs, float scale);
};

// Of the instruction set in use.
const HadamardKernels& hadamard_kernels();

}  // namespace holdfast::kernels::cpu::simd
