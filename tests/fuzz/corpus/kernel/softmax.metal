#include <metal_stdlib>
using namespace metal;
inline float fast_exp(float x) { return metal::fast::exp(x); }
kernel void softmax(const device bfloat* in, device bfloat* out, constant int& axis_size, uint gid [[threadgroup_position_in_grid]],
                    uint lid [[thread_position_in_threadgroup]], uint lane [[thread_index_in_simdgroup]]) {
  constexpr int N_READS = 4;
  threadgroup float local_max[32];
  float ld[N_READS];
  in += gid * size_t(axis_size) + lid * N_READS;
  for (int i = 0; i < N_READS; i++) ld[i] = (int(lid) * N_READS + i) < axis_size ? float(in[i]) : -INFINITY;
  float maxval = -3.4e38;
  for (int i = 0; i < N_READS; i++) maxval = max(maxval, ld[i]);
  maxval = simd_max(maxval);
  if (lane == 0) local_max[0] = maxval;
  simdgroup_barrier(mem_flags::mem_threadgroup);
  float normalizer = 0;
  for (int i = 0; i < N_READS; i++) { ld[i] = fast_exp(ld[i] - local_max[0]); normalizer += ld[i]; }
  normalizer = 1 / simd_sum(normalizer);
  for (int i = 0; i < N_READS; i++) out[gid * axis_size + lid * N_READS + i] = static_cast<bfloat>(ld[i] * normalizer);
}
