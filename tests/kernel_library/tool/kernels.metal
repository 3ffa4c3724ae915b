// Kernels for the test of `holdfast kernel`.
#include <metal_stdlib>
#include "scale.h"
using namespace metal;

constant bool shifted [[function_constant(0)]];

kernel void axpy(const device float* x [[buffer(0)]], constant float& a [[buffer(1)]],
                 device float* y [[buffer(2)]], uint i [[thread_position_in_grid]]) {
  y[i] = a * x[i] + (shifted ? 1.0 : 0.0);
}

template <typename T>
[[kernel]] void reverse_group(const device T* x [[buffer(0)]], device T* y [[buffer(1)]],
                              threadgroup T* scratch [[threadgroup(0)]],
                              uint i [[thread_position_in_grid]],
                              uint t [[thread_index_in_threadgroup]],
                              uint size [[threads_per_threadgroup]]) {
  scratch[t] = x[i] * T(scale);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  y[i] = scratch[size - 1 - t];
}
template [[host_name("reverse_f32")]] [[kernel]] decltype(reverse_group<float>) reverse_group<float>;
template [[host_name("reverse_f16")]] [[kernel]] decltype(reverse_group<half>) reverse_group<half>;
