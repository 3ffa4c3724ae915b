// uniform<T>, and the scopes of barriers and fences.
#include <metal_stdlib>
#include <metal_uniform>
using namespace metal;

template <typename T>
struct is_uniform : bool_constant<false> {};
template <typename T>
struct is_uniform<uniform<T>> : bool_constant<true> {};

METAL_FUNC float sum_of(const device float* x, uniform<uint> n) {
  float sum = 0;
  for (uniform<uint> i = 0; i < n; i = i + 1) sum += x[i];
  return sum;
}

kernel void uniforms(device uint* ok [[buffer(0)]], device float* x [[buffer(1)]],
                     uint lane [[thread_index_in_simdgroup]]) {
  x[lane] = lane;
  atomic_thread_fence(mem_flags::mem_device, memory_order_seq_cst, thread_scope_device);
  threadgroup_barrier(mem_flags::mem_device, thread_scope_threadgroup);
  simdgroup_barrier(mem_flags::mem_device, thread_scope_simdgroup);
  atomic_thread_fence(mem_flags::mem_threadgroup, memory_order_relaxed, thread_scope_threadgroup);
  atomic_thread_fence(mem_flags::mem_device, memory_order_seq_cst, metal::thread_scope_system);
  uniform<uint> n = make_uniform(8u);
  ok[0] = sum_of(x, n) == 28 && n + 1 == 9 && n * 2u == 16;
  static_assert(is_uniform<decltype(n)>::value && !is_uniform<uint>::value, "");
}
