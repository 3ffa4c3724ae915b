#include <metal_stdlib>
#include "mlx/backend/metal/kernels/utils.h"

template <typename T>
[[kernel]] void axpby_general(device const T* x [[buffer(0)]], device const T* y [[buffer(1)]],
                              device T* out [[buffer(2)]], constant const float& alpha [[buffer(3)]],
                              constant const float& beta [[buffer(4)]],
                              constant const int* shape [[buffer(5)]],
                              constant const int64_t* x_strides [[buffer(6)]],
                              constant const int64_t* y_strides [[buffer(7)]],
                              constant const int& ndim [[buffer(8)]],
                              uint index [[thread_position_in_grid]]) {
  auto x_offset = elem_to_loc(index, shape, x_strides, ndim);
  auto y_offset = elem_to_loc(index, shape, y_strides, ndim);
  out[index] = static_cast<T>(alpha) * x[x_offset] + static_cast<T>(beta) * y[y_offset];
}
instantiate_kernel("axpby_general_float32", axpby_general, float)
instantiate_kernel("axpby_general_float16", axpby_general, half)

// Sums of threadgroups, in dynamic threadgroup memory; a constant that is set when it is compiled.
constant int factor [[function_constant(4)]];
[[kernel]] void group_sums(device const float* x [[buffer(0)]], device float* out [[buffer(1)]],
                           threadgroup float* scratch [[threadgroup(0)]],
                           uint i [[thread_position_in_grid]],
                           uint lane [[thread_position_in_threadgroup]],
                           uint group [[threadgroup_position_in_grid]],
                           uint size [[threads_per_threadgroup]]) {
  scratch[lane] = x[i];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (lane == 0) {
    float sum = 0;
    for (uint k = 0; k < size; ++k) sum += scratch[k];
    out[group] = sum * factor;
  }
}
