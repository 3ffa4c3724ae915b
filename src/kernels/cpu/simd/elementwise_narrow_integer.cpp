// The element-wise kernels of bool and the integers of 8 and 16 bits.
#include "kernels/cpu/simd/lane_kernels.h"

namespace holdfast::kernels::cpu::HOLDFAST_SIMD_TARGET {

const BlockKernel* narrow_integer_kernels(Lane lane) {
  switch (lane) {
    case Lane::b8:
      return lane_kernels<Bool>();
    case Lane::u8:
      return lane_kernels<uint8_t>();
    case Lane::i8:
      return lane_kernels<int8_t>();
    case Lane::u16:
      return lane_kernels<uint16_t>();
    case Lane::i16:
      return lane_kernels<int16_t>();
    default:
      return nullptr;
  }
}

}  // namespace holdfast::kernels::cpu::HOLDFAST_SIMD_TARGET
