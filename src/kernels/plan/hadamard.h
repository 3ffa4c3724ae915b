// The Hadamard matrices that rows are multiplied with.
#pragma once

#include <array>
#include <cstdint>

namespace holdfast::kernels {

// H_factor ⊗ H_power; H_power is Sylvester's.
struct HadamardSize {
  int factor = 1, power = 0;  // power: a power of two, or 0 where there is no such form
};
// Rows have factor * 2^k elements, factor one of 1, 12, 20, 28.
HadamardSize hadamard_size(int length);

// Bit j of row i: element (i, j) of H_factor is -1.
using HadamardSigns = std::array<uint32_t, 28>;
HadamardSigns hadamard_signs(int factor, bool transposed);

}  // namespace holdfast::kernels
