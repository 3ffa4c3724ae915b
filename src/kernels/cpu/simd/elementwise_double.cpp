// The element-wise kernels of the f64 lane.
#include "kernels/cpu/simd/lane_kernels.h"

namespace holdfast::kernels::cpu::HOLDFAST_SIMD_TARGET {

const BlockKernel* double_kernels() { return lane_kernels<double>(); }

}  // namespace holdfast::kernels::cpu::HOLDFAST_SIMD_TARGET
