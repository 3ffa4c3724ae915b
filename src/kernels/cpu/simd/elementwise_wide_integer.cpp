// The element-wise kernels of the integers of 32 and 64 bits.
#include "kernels/cpu/simd/lane_kernels.h"

namespace holdfast::kernels::cpu::HOLDFAST_SIMD_TARGET {

const BlockKernel* wide_integer_kernels(Lane lane) {
  switch (lane) {
    case Lane::u32:
      return lane_kernels<uint32_t>();
    case Lane::i32:
      return lane_kernels<int32_t>();
    case Lane::u64:
      return lane_kernels<uint64_t>();
    case Lane::i64:
      return lane_kernels<int64_t>();
    default:
      return nullptr;
  }
}

}  // namespace holdfast::kernels::cpu::HOLDFAST_SIMD_TARGET
