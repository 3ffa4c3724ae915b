// RMSNorm and softmax of rows: a threadgroup is a row.
#include <holdfast/holdfast.h>

#include "benchmarks/kernels/case.h"

namespace holdfast::bench {
namespace {

constexpr int rows = 512, size = 4096;

const char* const rms_norm_metal = R"(
  constexpr uint size = 4096, threads = 256;
  uint thread_index = thread_position_in_threadgroup.x;
  uint lane = thread_index_in_simdgroup, group = simdgroup_index_in_threadgroup;
  const device float* from = x + threadgroup_position_in_grid.x * size;
  device float* to = out + threadgroup_position_in_grid.x * size;
  threadgroup float partial[threads / 32];
  float squares = 0;
  for (uint i = thread_index; i < size; i += threads) squares = fma(from[i], from[i], squares);
  squares = simd_sum(squares);
  if (lane == 0) partial[group] = squares;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (group == 0) {
    float all = simd_sum(lane < threads / 32 ? partial[lane] : 0.0f);
    if (lane == 0) partial[0] = rsqrt(all / size + 1e-5);
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  float scale = partial[0];
  for (uint i = thread_index; i < size; i += threads) to[i] = from[i] * scale * weight[i];
)";

const char* const rms_norm_opencl = R"(
__kernel __attribute__((reqd_work_group_size(256, 1, 1)))
void run(__global const float* x, __global const float* weight, __global float* out) {
  const uint size = 4096, threads = 256;
  uint thread_index = get_local_id(0);
  __global const float* from = x + get_group_id(0) * size;
  __global float* to = out + get_group_id(0) * size;
  __local float partial[256];
  float squares = 0;
  for (uint i = thread_index; i < size; i += threads) squares = fma(from[i], from[i], squares);
  partial[thread_index] = squares;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (uint half_size = 128; half_size > 0; half_size /= 2) {
    if (thread_index < half_size) partial[thread_index] += partial[thread_index + half_size];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  float scale = rsqrt(partial[0] / size + 1e-5f);
  for (uint i = thread_index; i < size; i += threads) to[i] = from[i] * scale * weight[i];
}
)";

const char* const softmax_metal = R"(
  constexpr uint size = 4096, threads = 256;
  uint thread_index = thread_position_in_threadgroup.x;
  uint lane = thread_index_in_simdgroup, group = simdgroup_index_in_threadgroup;
  const device float* from = x + threadgroup_position_in_grid.x * size;
  device float* to = out + threadgroup_position_in_grid.x * size;
  threadgroup float tops[threads / 32], sums[threads / 32];
  float top = -INFINITY;
  for (uint i = thread_index; i < size; i += threads) top = max(top, from[i]);
  top = simd_max(top);
  if (lane == 0) tops[group] = top;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  top = simd_max(tops[lane % (threads / 32)]);
  float sum = 0;
  for (uint i = thread_index; i < size; i += threads) {
    float power = exp(from[i] - top);
    to[i] = power;
    sum += power;
  }
  sum = simd_sum(sum);
  if (lane == 0) sums[group] = sum;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  float scale = 1 / simd_sum(lane < threads / 32 ? sums[lane] : 0.0f);
  for (uint i = thread_index; i < size; i += threads) to[i] *= scale;
)";

const char* const softmax_opencl = R"(
__kernel __attribute__((reqd_work_group_size(256, 1, 1)))
void run(__global const float* x, __global float* out) {
  const uint size = 4096, threads = 256;
  uint thread_index = get_local_id(0);
  __global const float* from = x + get_group_id(0) * size;
  __global float* to = out + get_group_id(0) * size;
  __local float partial[256];
  float top = -INFINITY;
  for (uint i = thread_index; i < size; i += threads) top = fmax(top, from[i]);
  partial[thread_index] = top;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (uint half_size = 128; half_size > 0; half_size /= 2) {
    if (thread_index < half_size)
      partial[thread_index] = fmax(partial[thread_index], partial[thread_index + half_size]);
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  top = partial[0];
  barrier(CLK_LOCAL_MEM_FENCE);
  float sum = 0;
  for (uint i = thread_index; i < size; i += threads) {
    float power = exp(from[i] - top);
    to[i] = power;
    sum += power;
  }
  partial[thread_index] = sum;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (uint half_size = 128; half_size > 0; half_size /= 2) {
    if (thread_index < half_size) partial[thread_index] += partial[thread_index + half_size];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  float scale = 1 / partial[0];
  for (uint i = thread_index; i < size; i += threads) to[i] *= scale;
}
)";

}  // namespace

std::vector<KernelCase> row_kernels() {
  array x = random::normal({rows, size}, random::key(1));
  array weight = random::normal({size}, random::key(2));
  return {{.name = "RMSNorm, 512 rows of 4096",
           .body = rms_norm_metal,
           .input_names = {"x", "weight"},
           .output_names = {"out"},
           .inputs = {x, weight},
           .output_shapes = {{rows, size}},
           .output_dtypes = {float32},
           .grid = {rows * 256, 1, 1},
           .threadgroup = {256, 1, 1},
           .hand =
               [](const HandKernels& hand, Team& team, const std::vector<array>& in,
                  const std::vector<void*>& out) {
                 team.run(rows / 8, [&](int64_t task) {
                   hand.rms_norm(in[0].data<float>(), in[1].data<float>(),
                                 static_cast<float*>(out[0]), size, task * 8, task * 8 + 8);
                 });
               },
           .tolerance = 1e-5,
           .opencl = rms_norm_opencl,
           .synchronises = true},
          {.name = "softmax, 512 rows of 4096",
           .body = softmax_metal,
           .input_names = {"x"},
           .output_names = {"out"},
           .inputs = {x},
           .output_shapes = {{rows, size}},
           .output_dtypes = {float32},
           .grid = {rows * 256, 1, 1},
           .threadgroup = {256, 1, 1},
           .hand =
               [](const HandKernels& hand, Team& team, const std::vector<array>& in,
                  const std::vector<void*>& out) {
                 team.run(rows / 8, [&](int64_t task) {
                   hand.softmax(in[0].data<float>(), static_cast<float*>(out[0]), size, task * 8,
                                task * 8 + 8);
                 });
               },
           .tolerance = 1e-5,
           .opencl = softmax_opencl,
           .synchronises = true}};
}

}  // namespace holdfast::bench
