// The kernels of `bench kernels` in CUDA C++, the same algorithms, for tools/gpu/run_bundle.cpp:
//   nvcc -cubin -arch=sm_90 -O3 -o rivals.cubin tools/gpu/rivals.cu
#include <cstdint>

using uint = unsigned;
#define ALL 0xffffffffu

__device__ __forceinline__ float sum(float v) {
  for (int d = 16; d > 0; d /= 2) v += __shfl_xor_sync(ALL, v, d);
  return v;
}
__device__ __forceinline__ float top_of(float v) {
  for (int d = 16; d > 0; d /= 2) v = fmaxf(v, __shfl_xor_sync(ALL, v, d));
  return v;
}

extern "C" __global__ __launch_bounds__(256) void rms_norm(const float* __restrict__ x,
                                                           const float* __restrict__ weight,
                                                           float* __restrict__ out) {
  constexpr uint size = 4096, threads = 256;
  __shared__ float partial[threads / 32];
  uint thread = threadIdx.x, lane = thread % 32, group = thread / 32;
  const float* from = x + blockIdx.x * size;
  float* to = out + blockIdx.x * size;
  float squares = 0;
  for (uint i = thread; i < size; i += threads) squares = fmaf(from[i], from[i], squares);
  squares = sum(squares);
  if (lane == 0) partial[group] = squares;
  __syncthreads();
  if (group == 0) {
    float all = sum(lane < threads / 32 ? partial[lane] : 0.0f);
    if (lane == 0) partial[0] = rsqrtf(all / size + 1e-5f);
  }
  __syncthreads();
  float scale = partial[0];
  for (uint i = thread; i < size; i += threads) to[i] = from[i] * scale * weight[i];
}

extern "C" __global__ __launch_bounds__(256) void softmax(const float* __restrict__ x,
                                                          float* __restrict__ out) {
  constexpr uint size = 4096, threads = 256;
  __shared__ float tops[threads / 32], sums[threads / 32];
  uint thread = threadIdx.x, lane = thread % 32, group = thread / 32;
  const float* from = x + blockIdx.x * size;
  float* to = out + blockIdx.x * size;
  float top = -INFINITY;
  for (uint i = thread; i < size; i += threads) top = fmaxf(top, from[i]);
  top = top_of(top);
  if (lane == 0) tops[group] = top;
  __syncthreads();
  top = top_of(tops[lane % (threads / 32)]);
  float total = 0;
  for (uint i = thread; i < size; i += threads) {
    float power = expf(from[i] - top);
    to[i] = power;
    total += power;
  }
  total = sum(total);
  if (lane == 0) sums[group] = total;
  __syncthreads();
  float scale = 1 / sum(lane < threads / 32 ? sums[lane] : 0.0f);
  for (uint i = thread; i < size; i += threads) to[i] *= scale;
}

extern "C" __global__ __launch_bounds__(128) void delta(
    const float* __restrict__ q, const float* __restrict__ k, const float* __restrict__ v,
    const float* __restrict__ g, const float* __restrict__ beta,
    const float* __restrict__ state_in, const int* __restrict__ steps, float* __restrict__ y,
    float* __restrict__ state_out) {
  constexpr int Dk = 128, Dv = 128, Hk = 16, Hv = 32, per_lane = Dk / 32;
  uint head = blockIdx.z, key_head = head / (Hv / Hk), lane = threadIdx.x;
  uint row = blockIdx.y * blockDim.y + threadIdx.y;
  q += key_head * Dk;
  k += key_head * Dk;
  v += head * Dv;
  y += head * Dv;
  g += head;
  beta += head;
  const float* from = state_in + (head * Dv + row) * Dk;
  float* to = state_out + (head * Dv + row) * Dk;
  float state[per_lane];
  *reinterpret_cast<float4*>(state) = reinterpret_cast<const float4*>(from)[lane];
  int count = *steps;
  for (int t = 0; t < count; ++t) {
    float keys[per_lane], queries[per_lane];
    *reinterpret_cast<float4*>(keys) = reinterpret_cast<const float4*>(k)[lane];
    *reinterpret_cast<float4*>(queries) = reinterpret_cast<const float4*>(q)[lane];
    float memory = 0;
    for (int i = 0; i < per_lane; ++i) {
      state[i] *= g[0];
      memory = fmaf(state[i], keys[i], memory);
    }
    memory = sum(memory);
    float change = (v[row] - memory) * beta[0];
    float result = 0;
    for (int i = 0; i < per_lane; ++i) {
      state[i] = fmaf(keys[i], change, state[i]);
      result = fmaf(state[i], queries[i], result);
    }
    result = sum(result);
    if (lane == 0) y[row] = result;
    q += Hk * Dk;
    k += Hk * Dk;
    v += Hv * Dv;
    y += Hv * Dv;
    g += Hv;
    beta += Hv;
  }
  reinterpret_cast<float4*>(to)[lane] = *reinterpret_cast<float4*>(state);
}

extern "C" __global__ __launch_bounds__(64) void gemv(const uint* __restrict__ weights,
                                                      const float* __restrict__ scales,
                                                      const float* __restrict__ biases,
                                                      const float* __restrict__ x,
                                                      float* __restrict__ out) {
  constexpr uint columns = 4096, words = columns / 8, groups = columns / 64, results = 8;
  uint lane = threadIdx.x % 32;
  uint first = (blockIdx.x * 2 + threadIdx.x / 32) * results;
  float totals[results] = {0};
  for (uint word = lane; word < words; word += 32) {
    float values[8], all = 0;
    reinterpret_cast<float4*>(values)[0] = reinterpret_cast<const float4*>(x)[word * 2];
    reinterpret_cast<float4*>(values)[1] = reinterpret_cast<const float4*>(x)[word * 2 + 1];
#pragma unroll
    for (uint i = 0; i < 8; ++i) all += values[i];
#pragma unroll
    for (uint r = 0; r < results; ++r) {
      uint packed = weights[(first + r) * words + word];
      float dot = 0;
#pragma unroll
      for (uint i = 0; i < 8; ++i) dot = fmaf(float((packed >> (4 * i)) & 15), values[i], dot);
      uint group = (first + r) * groups + word / 8;
      totals[r] = fmaf(dot, scales[group], fmaf(all, biases[group], totals[r]));
    }
  }
#pragma unroll
  for (uint r = 0; r < results; ++r) {
    float total = sum(totals[r]);
    if (lane == 0) out[first + r] = total;
  }
}

extern "C" __global__ __launch_bounds__(32) void attention(
    const float* __restrict__ q, const uint* __restrict__ keys, const float* __restrict__ key_norms,
    const uint* __restrict__ values, const float* __restrict__ value_norms,
    const float* __restrict__ key_codebook, const float* __restrict__ value_codebook,
    float* __restrict__ o, float* __restrict__ m, float* __restrict__ l) {
  constexpr uint size = 128, tokens = 4096, block = 256, repeat = 4;
  constexpr uint key_words = size * 4 / 32, value_words = size * 2 / 32, per_lane = size / 32;
  uint lane = threadIdx.x, head = blockIdx.y, part = blockIdx.z, parts = tokens / block;
  uint kv = head / repeat;
  float key_entry = key_codebook[lane % 16], value_entry = value_codebook[lane % 4];
  float query[per_lane], sums[per_lane] = {0};
  for (uint j = 0; j < per_lane; ++j) query[j] = q[head * size + j * 32 + lane];
  float top = -INFINITY, total = 0;
  for (uint t = part * block; t < (part + 1) * block; ++t) {
    const uint* key = keys + (kv * tokens + t) * key_words;
    const uint* value = values + (kv * tokens + t) * value_words;
    float score = 0;
    for (uint j = 0; j < per_lane; ++j) {
      uint index = (key[j * 4 + lane / 8] >> (lane % 8 * 4)) & 15;
      score = fmaf(__shfl_sync(ALL, key_entry, index), query[j], score);
    }
    score = sum(score) * key_norms[kv * tokens + t];
    float new_top = fmaxf(top, score);
    float keep = expf(top - new_top), weight = expf(score - new_top);
    total = fmaf(total, keep, weight);
    top = new_top;
    float factor = weight * value_norms[kv * tokens + t];
    for (uint j = 0; j < per_lane; ++j) {
      uint index = (value[j * 2 + lane / 16] >> (lane % 16 * 2)) & 3;
      sums[j] = fmaf(__shfl_sync(ALL, value_entry, index), factor, sums[j] * keep);
    }
  }
  for (uint j = 0; j < per_lane; ++j) o[(head * parts + part) * size + j * 32 + lane] = sums[j];
  if (lane == 0) {
    m[head * parts + part] = top;
    l[head * parts + part] = total;
  }
}

extern "C" __global__ __launch_bounds__(256) void mandelbrot(int* __restrict__ out) {
  constexpr int width = 1024, height = 768, iterations = 256;
  uint column = blockIdx.x * blockDim.x + threadIdx.x, line = blockIdx.y * blockDim.y + threadIdx.y;
  float cx = float(column) * (3.0f / width) - 2.0f, cy = float(line) * (2.0f / height) - 1.0f;
  float x = 0, y = 0;
  int steps = 0;
  while (steps < iterations) {
    float xx = __fmul_rn(x, x), yy = __fmul_rn(y, y);
    if (!(__fadd_rn(xx, yy) <= 4.0f)) break;
    ++steps;
    y = __fadd_rn(__fmul_rn(2.0f * x, y), cy);
    x = __fadd_rn(__fsub_rn(xx, yy), cx);
  }
  out[line * width + column] = steps;
}

extern "C" __global__ __launch_bounds__(32) void sort(const float* __restrict__ in,
                                                      float* __restrict__ out) {
  uint lane = threadIdx.x, at = blockIdx.x * 32 + lane;
  float mine = in[at];
#pragma unroll
  for (uint run = 2; run <= 32; run *= 2) {
#pragma unroll
    for (uint distance = run / 2; distance > 0; distance /= 2) {
      float other = __shfl_xor_sync(ALL, mine, distance);
      bool keep_smaller = ((lane & distance) == 0) == ((lane & run) == 0);
      mine = keep_smaller ? fminf(mine, other) : fmaxf(mine, other);
    }
  }
  out[at] = mine;
}

// 8x8 tiles in lanes as simdgroup_matrix has them: products by shuffles and FMA, in float.
__device__ __forceinline__ void multiply(float2& sum, float2 a, float2 b, uint lane) {
#pragma unroll
  for (uint k = 0; k < 8; ++k) {
    float left = __shfl_sync(ALL, k & 1 ? a.y : a.x, (lane & 22) | (k & 4) << 1 | (k & 2) >> 1);
    uint from = (lane & 9) | (k & 4) << 2 | (k & 3) << 1;
    sum.x = fmaf(left, __shfl_sync(ALL, b.x, from), sum.x);
    sum.y = fmaf(left, __shfl_sync(ALL, b.y, from), sum.y);
  }
}
extern "C" __global__ __launch_bounds__(128) void product(const float* __restrict__ a,
                                                          const float* __restrict__ b,
                                                          float* __restrict__ c) {
  constexpr uint side = 800;
  uint lane = threadIdx.x % 32, group = threadIdx.x / 32;
  uint row = blockIdx.y * 32 + group / 2 * 16, column = blockIdx.x * 32 + group % 2 * 16;
  uint own_row = (lane >> 2 & 4) + (lane >> 1 & 3), own_column = (lane >> 2 & 2) * 2 + (lane & 1) * 2;
  float2 sums[2][2] = {}, left[2], right[2];
  for (uint k = 0; k < side; k += 8) {
#pragma unroll
    for (uint i = 0; i < 2; ++i) {
      left[i] = *reinterpret_cast<const float2*>(a + (row + 8 * i + own_row) * side + k + own_column);
      right[i] =
          *reinterpret_cast<const float2*>(b + (k + own_row) * side + column + 8 * i + own_column);
    }
#pragma unroll
    for (uint i = 0; i < 2; ++i)
#pragma unroll
      for (uint j = 0; j < 2; ++j) multiply(sums[i][j], left[i], right[j], lane);
  }
#pragma unroll
  for (uint i = 0; i < 2; ++i)
#pragma unroll
    for (uint j = 0; j < 2; ++j)
      *reinterpret_cast<float2*>(c + (row + 8 * i + own_row) * side + column + 8 * j + own_column) =
          sums[i][j];
}

extern "C" __global__ __launch_bounds__(256) void histogram(const uint* __restrict__ values,
                                                            uint* __restrict__ counts) {
  __shared__ uint own[256];
  uint thread = threadIdx.x;
  own[thread] = 0;
  __syncthreads();
  const uint* from = values + blockIdx.x * 16384;
  for (uint i = thread; i < 16384; i += 256) atomicAdd(&own[from[i] & 255], 1);
  __syncthreads();
  atomicAdd(&counts[thread], own[thread]);
}
