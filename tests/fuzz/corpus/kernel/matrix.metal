#include <metal_stdlib>
using namespace metal;
kernel void gemm(const device half* a [[buffer(0)]], const device half* b [[buffer(1)]], device float* c [[buffer(2)]],
                 constant uint3& mnk [[buffer(3)]], uint2 group [[threadgroup_position_in_grid]],
                 uint lane [[thread_index_in_simdgroup]], uint simd [[simdgroup_index_in_threadgroup]]) {
  threadgroup half as[8 * 16];
  threadgroup half bs[16 * 8];
  simdgroup_matrix<half, 8, 8> ma, mb;
  simdgroup_float8x8 acc = simdgroup_float8x8(0);
  for (uint k = 0; k < mnk.z; k += 16) {
    for (uint e = lane; e < 128; e += 32) {
      as[e] = a[(group.y * 8 + e / 16) * mnk.z + k + e % 16];
      bs[e] = b[(k + e / 8) * mnk.y + group.x * 8 + e % 8];
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (ushort j = 0; j < 2; ++j) {
      simdgroup_load(ma, as + j * 8, 16);
      simdgroup_load(mb, bs + j * 64, 8);
      simdgroup_multiply_accumulate(acc, ma, mb, acc);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  acc.thread_elements()[0] *= 2;
  simdgroup_store(acc, c + group.y * 8 * mnk.y + group.x * 8, mnk.y);
}
