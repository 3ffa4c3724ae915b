#include <metal_stdlib>
using namespace metal;
kernel void histogram(device atomic_uint* bins [[buffer(0)]], device const uchar* data [[buffer(1)]], device atomic_float* sums [[buffer(2)]],
                      constant uint& n [[buffer(3)]], uint i [[thread_position_in_grid]], uint l [[thread_index_in_threadgroup]]) {
  threadgroup atomic_uint local[256];
  if (l < 256) atomic_store_explicit(&local[l], 0, memory_order_relaxed);
  threadgroup_barrier(mem_flags::mem_threadgroup | mem_flags::mem_device);
  if (i < n) { atomic_fetch_add_explicit(&local[data[i]], 1, memory_order_relaxed); atomic_fetch_add_explicit(sums, 1.0f, memory_order_relaxed); }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  uint expected = 3;
  while (!atomic_compare_exchange_weak_explicit(&bins[l], &expected, expected + 1, memory_order_relaxed, memory_order_relaxed)) { if (expected > 9) break; }
  atomic_fetch_max_explicit(&bins[l], atomic_load_explicit(&local[l & 255], memory_order_relaxed), memory_order_relaxed);
}
