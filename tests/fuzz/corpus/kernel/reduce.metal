#include <metal_stdlib>
using namespace metal;
template <typename U> struct Sum {
  static constexpr constant U init = U(0);
  template <typename T> U operator()(T a, U b) { return a + b; }
  U simd_reduce(U v) { return simd_sum(v); }
  void atomic_update(volatile device atomic_int* out, int v) { atomic_fetch_add_explicit(out, v, memory_order_relaxed); }
};
kernel void all_reduce(const device float* in [[buffer(0)]], device atomic_int* out [[buffer(1)]], const constant size_t& n [[buffer(2)]],
                       threadgroup float* scratch [[threadgroup(0)]],
                       uint3 t [[thread_position_in_threadgroup]], uint3 size [[threads_per_threadgroup]],
                       uint lane [[thread_index_in_simdgroup]], uint group [[simdgroup_index_in_threadgroup]]) {
  Sum<float> op;
  threadgroup float shared_vals[32];
  float total = Sum<float>::init;
  for (uint i = t.x; i < n; i += size.x) total = op(in[i], total);
  total = op.simd_reduce(total);
  if (lane == 0) shared_vals[group] = total;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  total = lane < 8 ? shared_vals[lane] : 0.0f;
  total = op.simd_reduce(total);
  if (t.x == 0) { op.atomic_update(out, int(total)); scratch[0] = total; }
}
