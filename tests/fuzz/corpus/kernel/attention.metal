#include <metal_stdlib>
using namespace metal;
constant bool has_mask [[function_constant(20)]];
constant bool query_transposed [[function_constant(21)]];
constant bool do_causal [[function_constant(22)]];
template <typename T, int D, int V = D>
[[kernel]] void sdpa_vector(const device T* queries [[buffer(0)]], const device T* keys [[buffer(1)]], const device T* values [[buffer(2)]],
    device T* out [[buffer(3)]], const constant int& gqa_factor, const constant int& N, const constant size_t& k_head_stride, const constant float& scale,
    const device bool* bmask [[buffer(11), function_constant(has_mask)]],
    uint3 tid [[threadgroup_position_in_grid]], uint3 tpg [[threadgroups_per_grid]], uint simd_gid [[simdgroup_index_in_threadgroup]], uint simd_lid [[thread_index_in_simdgroup]]) {
  constexpr int BN = 8, BD = 32, per = D / BD;
  typedef float U;
  thread U q[per], k[per], o[per];
  threadgroup U outputs[BN * BD]; threadgroup U max_scores[BN]; threadgroup U sum_exp_scores[BN];
  const int head = query_transposed ? tpg.x * tid.y + tid.x : tid.x;
  queries += head * D + simd_lid * per; keys += head / gqa_factor * k_head_stride + simd_gid * D + simd_lid * per;
  for (int i = 0; i < per; i++) { q[i] = static_cast<U>(scale) * queries[i]; o[i] = 0; }
  U max_score = -INFINITY, sum = 0;
  for (int i = simd_gid; i < N; i += BN) {
    bool use = true;
    if (do_causal) use = i <= int(N - tpg.y + tid.y); else if (has_mask) use = bmask[i];
    if (use) {
      U score = 0;
      for (int j = 0; j < per; j++) { k[j] = keys[j]; score += q[j] * k[j]; }
      score = simd_sum(score);
      U new_max = max(max_score, score), f = fast::exp(max_score - new_max), e = fast::exp(score - new_max);
      max_score = new_max; sum = sum * f + e;
      for (int j = 0; j < per; j++) o[j] = o[j] * f + e * values[i * V + simd_lid * per + j];
    }
    keys += BN * D;
  }
  if (simd_lid == 0) { max_scores[simd_gid] = max_score; sum_exp_scores[simd_gid] = sum; }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  max_score = simd_max(simd_lid < BN ? max_scores[simd_lid] : -INFINITY);
  outputs[simd_gid * BD + simd_lid] = o[0];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (simd_gid == 0) out[head * V + simd_lid] = T(outputs[simd_lid] / sum_exp_scores[0]);
}
template [[host_name("sdpa_64")]] [[kernel]] decltype(sdpa_vector<half, 64>) sdpa_vector<half, 64>;
