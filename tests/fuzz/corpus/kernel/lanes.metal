#include <metal_stdlib>
using namespace metal;
kernel void lanes(device float* x, device uint* u, uint i [[thread_position_in_grid]], ushort lane [[thread_index_in_simdgroup]],
                  uint quad [[thread_index_in_quadgroup]], uint width [[threads_per_simdgroup]]) {
  float v = x[i];
  for (ushort d = 16; d > 0; d /= 2) v += simd_shuffle_down(v, d);
  v = simd_broadcast(v, 0) + simd_shuffle_xor(v, 1) + quad_sum(v) + simd_prefix_exclusive_sum(v);
  if (lane & 1) { v = simd_max(v); u[i] = (uint)(uint64_t)simd_ballot(v > 3); } else { v -= simd_product(v); }
  if (simd_any(v > 1) && simd_is_first()) x[i] = simd_shuffle(v, lane ^ quad);
  else x[i] = simd_shuffle_and_fill_up(v, x[0], ushort(1)) + width;
}
