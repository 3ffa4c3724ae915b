// The element-wise kernels of the f32 lane.
#include "kernels/cpu/simd/lane_kernels.h"

namespace holdfast::kernels::cpu::HOLDFAST_SIMD_TARGET {

const BlockKernel* float_kernels() { return lane_kernels<float>(); }

}  // namespace holdfast::kernels::cpu::HOLDFAST_SIMD_TARGET
