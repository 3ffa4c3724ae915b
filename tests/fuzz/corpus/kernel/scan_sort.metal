#include <metal_stdlib>
using namespace metal;
template <typename T, short N> struct Sorter { static void sort(thread T (&v)[N]) { for (short i = 0; i < N; ++i) for (short j = i & 1; j < N - 1; j += 2) if (v[j + 1] < v[j]) { T t = v[j]; v[j] = v[j + 1]; v[j + 1] = t; } } };
kernel void block_sort(const device float* in, device float* out, uint3 tid [[threadgroup_position_in_grid]], uint3 lid [[thread_position_in_threadgroup]]) {
  threadgroup float vals[128]; float v[4];
  for (short i = 0; i < 4; ++i) v[i] = in[tid.x * 128 + lid.x * 4 + i];
  Sorter<float, 4>::sort(v);
  for (int merge = 2; merge <= 32; merge *= 2) {
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (short i = 0; i < 4; ++i) vals[lid.x * 4 + i] = v[i];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    int lo = 0, hi = merge * 2; while (lo < hi) { int mid = lo + (hi - lo) / 2; if (vals[mid] < v[0]) lo = mid + 1; else hi = mid; }
    v[0] = vals[lo & 127];
  }
  for (short i = 0; i < 4; ++i) out[tid.x * 128 + lid.x * 4 + i] = v[i];
}
