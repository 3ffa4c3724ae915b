// The element-wise kernels of the c64 lane.
#include "kernels/cpu/simd/lane_kernels.h"

namespace holdfast::cpu::HOLDFAST_SIMD_TARGET {

const BlockKernel* complex_kernels() { return lane_kernels<Complex>(); }

}  // namespace holdfast::cpu::HOLDFAST_SIMD_TARGET
