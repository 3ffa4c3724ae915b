// Kernels bound by arithmetic, shuffles or atomics.
#include <holdfast/holdfast.h>

#include "benchmarks/kernels/case.h"

namespace holdfast::bench {
namespace {

const char* const mandelbrot_metal = R"(
  constexpr int width = 1024, height = 768, iterations = 256;
  uint column = thread_position_in_grid.x, line = thread_position_in_grid.y;
  float cx = float(column) * (3.0 / width) - 2.0, cy = float(line) * (2.0 / height) - 1.0;
  float x = 0, y = 0;
  int steps = 0;
  while (steps < iterations) {
    float xx = x * x, yy = y * y;
    if (!(xx + yy <= 4.0)) break;
    ++steps;
    y = 2.0 * x * y + cy;
    x = xx - yy + cx;
  }
  out[line * width + column] = steps;
)";

const char* const mandelbrot_opencl = R"(
#pragma OPENCL FP_CONTRACT OFF
__kernel __attribute__((reqd_work_group_size(32, 8, 1)))
void run(__global int* out) {
  const int width = 1024, height = 768, iterations = 256;
  uint column = get_global_id(0), line = get_global_id(1);
  float cx = (float)column * (3.0f / width) - 2.0f, cy = (float)line * (2.0f / height) - 1.0f;
  float x = 0, y = 0;
  int steps = 0;
  while (steps < iterations) {
    float xx = x * x, yy = y * y;
    if (!(xx + yy <= 4.0f)) break;
    ++steps;
    y = 2.0f * x * y + cy;
    x = xx - yy + cx;
  }
  out[line * width + column] = steps;
}
)";

KernelCase mandelbrot_case() {
  using namespace mandelbrot;
  return {.name = "Mandelbrot, 1024 × 768",
          .body = mandelbrot_metal,
          .input_names = {},
          .output_names = {"out"},
          .inputs = {},
          .output_shapes = {{height, width}},
          .output_dtypes = {int32},
          .grid = {width, height, 1},
          .threadgroup = {32, 8, 1},
          .hand =
              [](const HandKernels& hand, Team& team, const std::vector<array>&,
                 const std::vector<void*>& out) {
                team.run(height / 8, [&](int64_t task) {
                  hand.mandelbrot(static_cast<int32_t*>(out[0]), task * 8, task * 8 + 8);
                });
              },
          .tolerance = 0,
          .opencl = mandelbrot_opencl};
}

constexpr int sorted_groups = 1 << 16;

const char* const sort_metal = R"(
  uint lane = thread_index_in_simdgroup;
  float mine = in[thread_position_in_grid.x];
  #pragma unroll
  for (uint run = 2; run <= 32; run *= 2) {
    #pragma unroll
    for (uint distance = run / 2; distance > 0; distance /= 2) {
      float other = simd_shuffle_xor(mine, distance);
      bool keep_smaller = ((lane & distance) == 0) == ((lane & run) == 0);
      mine = keep_smaller ? min(mine, other) : max(mine, other);
    }
  }
  out[thread_position_in_grid.x] = mine;
)";

const char* const sort_opencl = R"(
__kernel __attribute__((reqd_work_group_size(32, 1, 1)))
void run(__global const float* in, __global float* out) {
  __local float all[32];
  uint lane = get_local_id(0);
  float mine = in[get_global_id(0)];
  for (uint run = 2; run <= 32; run *= 2) {
    for (uint distance = run / 2; distance > 0; distance /= 2) {
      all[lane] = mine;
      barrier(CLK_LOCAL_MEM_FENCE);
      float other = all[lane ^ distance];
      barrier(CLK_LOCAL_MEM_FENCE);
      bool keep_smaller = ((lane & distance) == 0) == ((lane & run) == 0);
      mine = keep_smaller ? fmin(mine, other) : fmax(mine, other);
    }
  }
  out[get_global_id(0)] = mine;
}
)";

KernelCase sort_case() {
  return {.name = "bitonic sort of 32 by shuffles, 65536 times",
          .body = sort_metal,
          .input_names = {"in"},
          .output_names = {"out"},
          .inputs = {random::normal({sorted_groups, 32}, random::key(41))},
          .output_shapes = {{sorted_groups, 32}},
          .output_dtypes = {float32},
          .grid = {sorted_groups * 32, 1, 1},
          .threadgroup = {32, 1, 1},
          .hand =
              [](const HandKernels& hand, Team& team, const std::vector<array>& in,
                 const std::vector<void*>& out) {
                team.run(sorted_groups / 1024, [&](int64_t task) {
                  hand.sort32(in[0].data<float>(), static_cast<float*>(out[0]), task * 1024,
                              task * 1024 + 1024);
                });
              },
          .tolerance = 0,
          .opencl = sort_opencl,
          .synchronises = true};
}

// A simdgroup computes 16×16 of the product.
const char* const product_metal = R"(
  constexpr uint side = 800;
  uint row = threadgroup_position_in_grid.y * 32 + simdgroup_index_in_threadgroup / 2 * 16;
  uint column = threadgroup_position_in_grid.x * 32 + simdgroup_index_in_threadgroup % 2 * 16;
  simdgroup_float8x8 sums[2][2], left[2], right[2];
  for (uint i = 0; i < 2; ++i)
    for (uint j = 0; j < 2; ++j) sums[i][j] = make_filled_simdgroup_matrix<float, 8, 8>(0);
  for (uint k = 0; k < side; k += 8) {
    for (uint i = 0; i < 2; ++i) {
      simdgroup_load(left[i], a + (row + 8 * i) * side + k, side);
      simdgroup_load(right[i], b + k * side + column + 8 * i, side);
    }
    for (uint i = 0; i < 2; ++i)
      for (uint j = 0; j < 2; ++j) simdgroup_multiply_accumulate(sums[i][j], left[i], right[j], sums[i][j]);
  }
  for (uint i = 0; i < 2; ++i)
    for (uint j = 0; j < 2; ++j) simdgroup_store(sums[i][j], c + (row + 8 * i) * side + column + 8 * j, side);
)";

KernelCase product_case() {
  using namespace product;
  return {.name = "8×8 simdgroup_matrix product, 800³",
          .body = product_metal,
          .input_names = {"a", "b"},
          .output_names = {"c"},
          .inputs = {random::normal({side, side}, random::key(51)),
                     random::normal({side, side}, random::key(52))},
          .output_shapes = {{side, side}},
          .output_dtypes = {float32},
          .grid = {side / tile * 128, side / tile, 1},
          .threadgroup = {128, 1, 1},
          .hand =
              [](const HandKernels& hand, Team& team, const std::vector<array>& in,
                 const std::vector<void*>& out) {
                team.run((side / tile) * (side / tile) / 5, [&](int64_t task) {
                  hand.product(in[0].data<float>(), in[1].data<float>(),
                               static_cast<float*>(out[0]), task * 5, task * 5 + 5);
                });
              },
          .tolerance = 1e-5,
          .synchronises = true};
}

constexpr int counted = 1 << 22, counted_by_group = 1 << 14;

const char* const histogram_metal = R"(
  threadgroup atomic_uint own[256];
  uint thread_index = thread_position_in_threadgroup.x;
  atomic_store_explicit(&own[thread_index], 0, memory_order_relaxed);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  const device uint* from = values + threadgroup_position_in_grid.x * 16384;
  for (uint i = thread_index; i < 16384; i += 256)
    atomic_fetch_add_explicit(&own[from[i] & 255], 1, memory_order_relaxed);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  uint mine = atomic_load_explicit(&own[thread_index], memory_order_relaxed);
  atomic_fetch_add_explicit(&counts[thread_index], mine, memory_order_relaxed);
)";

const char* const histogram_opencl = R"(
__kernel __attribute__((reqd_work_group_size(256, 1, 1)))
void run(__global const uint* values, __global uint* counts) {
  __local uint own[256];
  uint thread_index = get_local_id(0);
  own[thread_index] = 0;
  barrier(CLK_LOCAL_MEM_FENCE);
  __global const uint* from = values + get_group_id(0) * 16384;
  for (uint i = thread_index; i < 16384; i += 256) atomic_inc(&own[from[i] & 255]);
  barrier(CLK_LOCAL_MEM_FENCE);
  atomic_add(&counts[thread_index], own[thread_index]);
}
)";

KernelCase histogram_case() {
  return {.name = "histogram by atomics, 4M values, 256 bins",
          .body = histogram_metal,
          .input_names = {"values"},
          .output_names = {"counts"},
          .inputs = {random::bits({counted}, 4, random::key(61))},
          .output_shapes = {{256}},
          .output_dtypes = {uint32},
          .grid = {counted / counted_by_group * 256, 1, 1},
          .threadgroup = {256, 1, 1},
          .atomic_outputs = true,
          .hand =
              [](const HandKernels& hand, Team& team, const std::vector<array>& in,
                 const std::vector<void*>& out) {
                team.run(counted / counted_by_group, [&](int64_t task) {
                  hand.histogram(in[0].data<uint32_t>(), static_cast<uint32_t*>(out[0]),
                                 task * counted_by_group, (task + 1) * counted_by_group);
                });
              },
          .tolerance = 0,
          .opencl = histogram_opencl,
          .synchronises = true};
}

}  // namespace

std::vector<KernelCase> compute_kernels() {
  return {mandelbrot_case(), sort_case(), product_case(), histogram_case()};
}

}  // namespace holdfast::bench
