#include <metal_stdlib>
using namespace metal;
template <int bits> inline uchar unpack(const device uint8_t* w, uint i) {
  static_assert(bits == 2 || bits == 4 || bits == 8, "bits");
  return (w[i * bits / 8] >> (i * bits % 8)) & ((1 << bits) - 1);
}
kernel void dequantize(const device uint8_t* w, const device half* scales, const device half* biases, device half* out, uint2 index [[thread_position_in_grid]], uint2 size [[threads_per_grid]]) {
  size_t offset = index.x + size.x * size_t(index.y);
  half scale = scales[offset / 64], bias = biases[offset / 64];
#pragma unroll
  for (int i = 0; i < 8; i++) { out[offset * 8 + i] = scale * unpack<4>(w, offset * 8 + i) + bias; }
  vec<uint16_t, 4> packed = ((const device vec<uint16_t, 4>*)w)[offset];
  out[offset] += as_type<half>(ushort(packed.w & 0x7c00));
}
