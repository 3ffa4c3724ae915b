// Kernels of language models: the gated delta step, a 4-bit matrix-vector product, attention on a
// packed cache.
#include <holdfast/holdfast.h>

#include "benchmarks/kernels/case.h"

namespace holdfast::bench {

void arrange_gemv_input(const float* x, int lanes, float* arranged, float* group_sums) {
  using namespace gemv;
  for (int word = 0; word < columns / 8; ++word) {
    for (int i = 0; i < 8; ++i) {
      arranged[word / lanes * lanes * 8 + i * lanes + word % lanes] = x[word * 8 + i];
    }
  }
  for (int g = 0; g < columns / group; ++g) {
    group_sums[g] = 0;
    for (int i = 0; i < group; ++i) group_sums[g] += x[g * group + i];
  }
}

namespace {

// One simdgroup keeps one row of the state: each lane four neighbouring values.
const char* const delta_metal = R"(
  constexpr int Dk = 128, Dv = 128, Hk = 16, Hv = 32, per_lane = Dk / 32;
  auto head = thread_position_in_grid.z;
  auto key_head = head / (Hv / Hk);
  auto lane = thread_position_in_threadgroup.x;
  auto row = thread_position_in_grid.y;
  auto q_ = q + key_head * Dk;
  auto k_ = k + key_head * Dk;
  auto v_ = v + head * Dv;
  auto y_ = y + head * Dv;
  auto g_ = g + head;
  auto beta_ = beta + head;
  auto from = state_in + (head * Dv + row) * Dk;
  auto to = state_out + (head * Dv + row) * Dk;
  float state[per_lane];
  for (int i = 0; i < per_lane; ++i) state[i] = from[per_lane * lane + i];
  for (int t = 0; t < steps; ++t) {
    float memory = 0;
    for (int i = 0; i < per_lane; ++i) {
      state[i] *= g_[0];
      memory = fma(state[i], k_[per_lane * lane + i], memory);
    }
    memory = simd_sum(memory);
    float delta = (v_[row] - memory) * beta_[0];
    float result = 0;
    for (int i = 0; i < per_lane; ++i) {
      state[i] = fma(k_[per_lane * lane + i], delta, state[i]);
      result = fma(state[i], q_[per_lane * lane + i], result);
    }
    result = simd_sum(result);
    if (thread_index_in_simdgroup == 0) y_[row] = result;
    q_ += Hk * Dk;
    k_ += Hk * Dk;
    v_ += Hv * Dv;
    y_ += Hv * Dv;
    g_ += Hv;
    beta_ += Hv;
  }
  for (int i = 0; i < per_lane; ++i) to[per_lane * lane + i] = state[i];
)";

// Without sub-groups the sums go through local memory.
const char* const delta_opencl = R"(
float sum_of(__local float* partial, uint lane, float value) {
  partial[lane] = value;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (uint half_size = 16; half_size > 0; half_size /= 2) {
    if (lane < half_size) partial[lane] += partial[lane + half_size];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  float sum = partial[0];
  barrier(CLK_LOCAL_MEM_FENCE);
  return sum;
}
__kernel __attribute__((reqd_work_group_size(32, 4, 1)))
void run(__global const float* q, __global const float* k, __global const float* v, __global const float* g,
         __global const float* beta, __global const float* state_in, __global const int* steps, __global float* y,
         __global float* state_out) {
  const int Dk = 128, Dv = 128, Hk = 16, Hv = 32;
  __local float all[4][32];
  __local float* partial = all[get_local_id(1)];
  uint head = get_global_id(2), key_head = head / (Hv / Hk), lane = get_local_id(0), row = get_global_id(1);
  q += key_head * Dk;
  k += key_head * Dk;
  v += head * Dv;
  y += head * Dv;
  g += head;
  beta += head;
  __global const float* from = state_in + (head * Dv + row) * Dk;
  __global float* to = state_out + (head * Dv + row) * Dk;
  float state[4];
  for (int i = 0; i < 4; ++i) state[i] = from[4 * lane + i];
  int count = *steps;
  for (int t = 0; t < count; ++t) {
    float memory = 0;
    for (int i = 0; i < 4; ++i) {
      state[i] *= g[0];
      memory = fma(state[i], k[4 * lane + i], memory);
    }
    memory = sum_of(partial, lane, memory);
    float delta = (v[row] - memory) * beta[0];
    float result = 0;
    for (int i = 0; i < 4; ++i) {
      state[i] = fma(k[4 * lane + i], delta, state[i]);
      result = fma(state[i], q[4 * lane + i], result);
    }
    result = sum_of(partial, lane, result);
    if (lane == 0) y[row] = result;
    q += Hk * Dk;
    k += Hk * Dk;
    v += Hv * Dv;
    y += Hv * Dv;
    g += Hv;
    beta += Hv;
  }
  for (int i = 0; i < 4; ++i) to[4 * lane + i] = state[i];
}
)";

KernelCase delta_case() {
  using namespace delta;
  auto normal = [](Shape shape, uint64_t seed) {
    return array(0.1f) * random::normal(shape, random::key(seed));
  };
  array g =
      random::uniform(array(0.9f), array(1.0f), {steps, value_heads}, float32, random::key(14));
  array beta =
      random::uniform(array(0.0f), array(1.0f), {steps, value_heads}, float32, random::key(15));
  return {
      .name = "gated delta step, 32 heads, 64 tokens",
      .body = delta_metal,
      .input_names = {"q", "k", "v", "g", "beta", "state_in", "steps"},
      .output_names = {"y", "state_out"},
      .inputs = {normal({steps, key_heads, key_size}, 11), normal({steps, key_heads, key_size}, 12),
                 normal({steps, value_heads, value_size}, 13), g, beta,
                 normal({value_heads, value_size, key_size}, 16), array(steps)},
      .output_shapes = {{steps, value_heads, value_size}, {value_heads, value_size, key_size}},
      .output_dtypes = {float32, float32},
      .grid = {32, value_size, value_heads},
      .threadgroup = {32, 4, 1},
      .hand =
          [](const HandKernels& hand, Team& team, const std::vector<array>& in,
             const std::vector<void*>& out) {
            team.run(value_heads, [&](int64_t task) {
              hand.delta_step(in[0].data<float>(), in[1].data<float>(), in[2].data<float>(),
                              in[3].data<float>(), in[4].data<float>(), in[5].data<float>(),
                              static_cast<float*>(out[0]), static_cast<float*>(out[1]), task,
                              task + 1);
            });
          },
      .tolerance = 1e-4,
      .opencl = delta_opencl,
      .synchronises = true};
}

// A simdgroup computes eight outputs; a lane owns one word, eight columns, of each 256.
const char* const gemv_metal = R"(
  constexpr uint columns = 4096, words = columns / 8, groups = columns / 64, results = 8;
  uint lane = thread_index_in_simdgroup;
  uint first = (threadgroup_position_in_grid.x * 2 + simdgroup_index_in_threadgroup) * results;
  float totals[results] = {0};
  for (uint word = lane; word < words; word += 32) {
    float values[8], sum = 0;
    for (uint i = 0; i < 8; ++i) {
      values[i] = x[word * 8 + i];
      sum += values[i];
    }
    for (uint r = 0; r < results; ++r) {
      uint packed = weights[(first + r) * words + word];
      float dot = 0;
      for (uint i = 0; i < 8; ++i) dot = fma(float((packed >> (4 * i)) & 15), values[i], dot);
      uint group = (first + r) * groups + word / 8;
      totals[r] = fma(dot, scales[group], fma(sum, biases[group], totals[r]));
    }
  }
  for (uint r = 0; r < results; ++r) {
    float total = simd_sum(totals[r]);
    if (lane == 0) out[first + r] = total;
  }
)";

const char* const gemv_opencl = R"(
__kernel __attribute__((reqd_work_group_size(64, 1, 1)))
void run(__global const uint* weights, __global const float* scales, __global const float* biases,
         __global const float* x, __global float* out) {
  const uint columns = 4096, words = columns / 8, groups = columns / 64;
  __local float partial[64];
  uint thread_index = get_local_id(0), lane = thread_index % 32;
  uint first = (get_group_id(0) * 2 + thread_index / 32) * 8;
  float totals[8];
  for (uint r = 0; r < 8; ++r) totals[r] = 0;
  for (uint word = lane; word < words; word += 32) {
    float values[8], sum = 0;
    for (uint i = 0; i < 8; ++i) {
      values[i] = x[word * 8 + i];
      sum += values[i];
    }
    for (uint r = 0; r < 8; ++r) {
      uint packed = weights[(first + r) * words + word];
      float dot = 0;
      for (uint i = 0; i < 8; ++i) dot = fma((float)((packed >> (4 * i)) & 15), values[i], dot);
      uint group = (first + r) * groups + word / 8;
      totals[r] = fma(dot, scales[group], fma(sum, biases[group], totals[r]));
    }
  }
  for (uint r = 0; r < 8; ++r) {
    partial[thread_index] = totals[r];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint half_size = 16; half_size > 0; half_size /= 2) {
      if (lane < half_size) partial[thread_index] += partial[thread_index + half_size];
      barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (lane == 0) out[first + r] = partial[thread_index];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
}
)";

KernelCase gemv_case() {
  using namespace gemv;
  array weights = random::bits({rows, columns / 8}, 4, random::key(21));
  array scales = array(0.01f) * random::normal({rows, columns / group}, random::key(22));
  array biases = array(-7.5f) * scales;
  array x = random::normal({columns}, random::key(23));
  return {.name = "4-bit GEMV, groups of 64, 4096²",
          .body = gemv_metal,
          .input_names = {"weights", "scales", "biases", "x"},
          .output_names = {"out"},
          .inputs = {weights, scales, biases, x},
          .output_shapes = {{rows}},
          .output_dtypes = {float32},
          .grid = {rows / 16 * 64, 1, 1},
          .threadgroup = {64, 1, 1},
          .hand =
              [](const HandKernels& hand, Team& team, const std::vector<array>& in,
                 const std::vector<void*>& out) {
                alignas(64) static float arranged[columns], sums[columns / group];
                arrange_gemv_input(in[3].data<float>(), hand.lanes, arranged, sums);
                team.run(rows / 128, [&](int64_t task) {
                  hand.quantised_gemv(in[0].data<uint32_t>(), in[1].data<float>(),
                                      in[2].data<float>(), arranged, sums,
                                      static_cast<float*>(out[0]), task * 128, task * 128 + 128);
                });
              },
          .tolerance = 1e-4,
          .opencl = gemv_opencl,
          .synchronises = true};
}

// Keys of 4 bits, values of 2 bits, as indices into codebooks; a lane owns dimensions lane, lane +
// 32, … and holds one entry of each codebook, which the others fetch by shuffling.
const char* const attention_metal = R"(
  constexpr uint size = 128, tokens = 4096, block = 256, repeat = 4;
  constexpr uint key_words = size * 4 / 32, value_words = size * 2 / 32, per_lane = size / 32;
  uint lane = thread_index_in_simdgroup;
  uint head = thread_position_in_grid.y, part = thread_position_in_grid.z, parts = tokens / block;
  uint kv = head / repeat;
  float key_entry = key_codebook[lane % 16], value_entry = value_codebook[lane % 4];
  float query[per_lane], sums[per_lane] = {0};
  for (uint j = 0; j < per_lane; ++j) query[j] = q[head * size + j * 32 + lane];
  float top = -INFINITY, total = 0;
  for (uint t = part * block; t < (part + 1) * block; ++t) {
    const device uint* key = keys + (kv * tokens + t) * key_words;
    const device uint* value = values + (kv * tokens + t) * value_words;
    float score = 0;
    for (uint j = 0; j < per_lane; ++j) {
      uint index = (key[j * 4 + lane / 8] >> (lane % 8 * 4)) & 15;
      score = fma(simd_shuffle(key_entry, ushort(index)), query[j], score);
    }
    score = simd_sum(score) * key_norms[kv * tokens + t];
    float new_top = max(top, score);
    float keep = exp(top - new_top), weight = exp(score - new_top);
    total = fma(total, keep, weight);
    top = new_top;
    float factor = weight * value_norms[kv * tokens + t];
    for (uint j = 0; j < per_lane; ++j) {
      uint index = (value[j * 2 + lane / 16] >> (lane % 16 * 2)) & 3;
      sums[j] = fma(simd_shuffle(value_entry, ushort(index)), factor, sums[j] * keep);
    }
  }
  for (uint j = 0; j < per_lane; ++j) o[(head * parts + part) * size + j * 32 + lane] = sums[j];
  if (lane == 0) {
    m[head * parts + part] = top;
    l[head * parts + part] = total;
  }
)";

const char* const attention_opencl = R"(
float sum_of(__local float* partial, uint lane, float value) {
  partial[lane] = value;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (uint half_size = 16; half_size > 0; half_size /= 2) {
    if (lane < half_size) partial[lane] += partial[lane + half_size];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  float sum = partial[0];
  barrier(CLK_LOCAL_MEM_FENCE);
  return sum;
}
__kernel __attribute__((reqd_work_group_size(32, 1, 1)))
void run(__global const float* q, __global const uint* keys, __global const float* key_norms,
         __global const uint* values, __global const float* value_norms, __global const float* key_codebook,
         __global const float* value_codebook, __global float* o, __global float* m, __global float* l) {
  const uint size = 128, tokens = 4096, block = 256, repeat = 4, key_words = 16, value_words = 8;
  __local float partial[32];
  uint lane = get_local_id(0), head = get_global_id(1), part = get_global_id(2), parts = tokens / block;
  uint kv = head / repeat;
  float query[4], sums[4];
  for (uint j = 0; j < 4; ++j) {
    query[j] = q[head * size + j * 32 + lane];
    sums[j] = 0;
  }
  float top = -INFINITY, total = 0;
  for (uint t = part * block; t < (part + 1) * block; ++t) {
    __global const uint* key = keys + (kv * tokens + t) * key_words;
    __global const uint* value = values + (kv * tokens + t) * value_words;
    float score = 0;
    for (uint j = 0; j < 4; ++j) {
      uint index = (key[j * 4 + lane / 8] >> (lane % 8 * 4)) & 15;
      score = fma(key_codebook[index], query[j], score);
    }
    score = sum_of(partial, lane, score) * key_norms[kv * tokens + t];
    float new_top = fmax(top, score);
    float keep = exp(top - new_top), weight = exp(score - new_top);
    total = fma(total, keep, weight);
    top = new_top;
    float factor = weight * value_norms[kv * tokens + t];
    for (uint j = 0; j < 4; ++j) {
      uint index = (value[j * 2 + lane / 16] >> (lane % 16 * 2)) & 3;
      sums[j] = fma(value_codebook[index], factor, sums[j] * keep);
    }
  }
  for (uint j = 0; j < 4; ++j) o[(head * parts + part) * size + j * 32 + lane] = sums[j];
  if (lane == 0) {
    m[head * parts + part] = top;
    l[head * parts + part] = total;
  }
}
)";

KernelCase attention_case() {
  using namespace attention;
  array key_codebook({-0.23639f, -0.17934f, -0.14024f, -0.10882f, -0.08158f, -0.05679f, -0.03351f,
                      -0.01108f, 0.01108f, 0.03351f, 0.05679f, 0.08158f, 0.10882f, 0.14024f,
                      0.17934f, 0.23639f});
  array value_codebook({-0.13302f, -0.03998f, 0.03998f, 0.13302f});
  return {.name = "attention on packed keys, 32 heads, 4096 tokens",
          .body = attention_metal,
          .input_names = {"q", "keys", "key_norms", "values", "value_norms", "key_codebook",
                          "value_codebook"},
          .output_names = {"o", "m", "l"},
          .inputs = {random::normal({heads, size}, random::key(31)),
                     random::bits({kv_heads, tokens, key_words}, 4, random::key(32)),
                     random::uniform(array(0.5f), array(2.0f), {kv_heads, tokens}, float32,
                                     random::key(33)),
                     random::bits({kv_heads, tokens, value_words}, 4, random::key(34)),
                     random::uniform(array(0.5f), array(2.0f), {kv_heads, tokens}, float32,
                                     random::key(35)),
                     key_codebook, value_codebook},
          .output_shapes = {{heads, blocks, size}, {heads, blocks}, {heads, blocks}},
          .output_dtypes = {float32, float32, float32},
          .grid = {32, heads, blocks},
          .threadgroup = {32, 1, 1},
          .hand =
              [](const HandKernels& hand, Team& team, const std::vector<array>& in,
                 const std::vector<void*>& out) {
                team.run(heads * blocks / 8, [&](int64_t task) {
                  hand.attention(in[0].data<float>(), in[1].data<uint32_t>(), in[2].data<float>(),
                                 in[3].data<uint32_t>(), in[4].data<float>(), in[5].data<float>(),
                                 in[6].data<float>(), static_cast<float*>(out[0]),
                                 static_cast<float*>(out[1]), static_cast<float*>(out[2]), task * 8,
                                 task * 8 + 8);
                });
              },
          .tolerance = 1e-4,
          .opencl = attention_opencl,
          .synchronises = true};
}

}  // namespace

std::vector<KernelCase> language_model_kernels() {
  return {delta_case(), gemv_case(), attention_case()};
}

}  // namespace holdfast::bench
