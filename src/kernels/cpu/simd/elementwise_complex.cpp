// The element-wise kernels of the c64 lane.
#include "kernels/cpu/simd/lane_kernels.h"

namespace holdfast::kernels::cpu::HOLDFAST_SIMD_TARGET {

const BlockKernel* complex_kernels() { return lane_kernels<Complex>(); }

}  // namespace holdfast::kernels::cpu::HOLDFAST_SIMD_TARGET
