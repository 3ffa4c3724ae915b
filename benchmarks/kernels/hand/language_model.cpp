// Rivals from language models: the gated delta step, a 4-bit matrix-vector product, attention on
// packed keys.
#include <cmath>

#include "benchmarks/kernels/hand/variant.h"
#include "benchmarks/kernels/hand/vectors.h"

namespace holdfast::bench::HOLDFAST_SIMD_TARGET {

void delta_step(const float* q, const float* k, const float* v, const float* g, const float* beta,
                const float* state_in, float* y, float* state_out, int64_t begin, int64_t end) {
  using namespace delta;
  constexpr int parts = key_size / lanes;
  for (int64_t head = begin; head < end; ++head) {
    int64_t key_head = head / (value_heads / key_heads);
    for (int row = 0; row < value_size; ++row) {
      Floats state[parts];
      const float* from = state_in + (head * value_size + row) * key_size;
      for (int i = 0; i < parts; ++i) state[i] = load<Floats>(from + i * lanes);
      for (int t = 0; t < steps; ++t) {
        const float* keys = k + (t * key_heads + key_head) * key_size;
        const float* queries = q + (t * key_heads + key_head) * key_size;
        float decay = g[t * value_heads + head];
        Floats memory[2] = {};
        for (int i = 0; i < parts; ++i) {
          state[i] *= decay;
          memory[i % 2] = multiply_add(state[i], load<Floats>(keys + i * lanes), memory[i % 2]);
        }
        float delta =
            (v[(t * value_heads + head) * value_size + row] - sum(memory[0] + memory[1])) *
            beta[t * value_heads + head];
        Floats out[2] = {};
        for (int i = 0; i < parts; ++i) {
          state[i] = multiply_add(load<Floats>(keys + i * lanes), all(delta), state[i]);
          out[i % 2] = multiply_add(state[i], load<Floats>(queries + i * lanes), out[i % 2]);
        }
        y[(t * value_heads + head) * value_size + row] = sum(out[0] + out[1]);
      }
      float* to = state_out + (head * value_size + row) * key_size;
      for (int i = 0; i < parts; ++i) store(to + i * lanes, state[i]);
    }
  }
}

namespace {

// The scales of the groups (of eight words) that a vector of words belongs to.
inline Floats spread_scales(const float* scales) {
#if defined(__AVX512F__)
  return reinterpret_cast<Floats>(
      _mm512_insertf32x8(_mm512_set1_ps(scales[0]), _mm256_set1_ps(scales[1]), 1));
#else
  return all(scales[0]);
#endif
}

}  // namespace

void quantised_gemv(const uint32_t* weights, const float* scales, const float* biases,
                    const float* arranged, const float* group_sums, float* out, int64_t begin,
                    int64_t end) {
  using namespace gemv;
  constexpr int words = columns / 8, groups = columns / group, together = 4;
  for (int64_t row = begin; row < end; row += together) {
    Floats totals[together] = {};
    for (int w = 0; w < words; w += lanes) {
      Floats x[8];
      for (int i = 0; i < 8; ++i) x[i] = load<Floats>(arranged + w * 8 + i * lanes);
      for (int r = 0; r < together; ++r) {
        Words packed = load<Words>(weights + (row + r) * words + w);
        Floats dot[2] = {};
        for (int i = 0; i < 8; ++i) {
          dot[i % 2] = multiply_add(to_floats((packed >> (4 * i)) & 15), x[i], dot[i % 2]);
        }
        totals[r] = multiply_add(dot[0] + dot[1],
                                 spread_scales(scales + (row + r) * groups + w / 8), totals[r]);
      }
    }
    for (int r = 0; r < together; ++r) {
      for (int g = 0; g < groups; g += lanes) {
        totals[r] = multiply_add(load<Floats>(biases + (row + r) * groups + g),
                                 load<Floats>(group_sums + g), totals[r]);
      }
      out[row + r] = sum(totals[r]);
    }
  }
}

namespace {

// Entry `index % 16` of a table of sixteen floats.
struct Table {
#if defined(__AVX512F__)
  __m512 entries;
  explicit Table(const float* from) : entries(_mm512_loadu_ps(from)) {}
  Floats operator[](Words index) const {
    return reinterpret_cast<Floats>(
        _mm512_permutexvar_ps(reinterpret_cast<__m512i>(index), entries));
  }
#else
  __m256 low, high;
  explicit Table(const float* from) : low(_mm256_loadu_ps(from)), high(_mm256_loadu_ps(from + 8)) {}
  Floats operator[](Words index) const {
    __m256i i = reinterpret_cast<__m256i>(index);
    return reinterpret_cast<Floats>(
        _mm256_blendv_ps(_mm256_permutevar8x32_ps(low, i), _mm256_permutevar8x32_ps(high, i),
                         _mm256_castsi256_ps(_mm256_slli_epi32(i, 28))));
  }
#endif
};

}  // namespace

void attend(const float* q, const uint32_t* keys, const float* key_norms, const uint32_t* values,
            const float* value_norms, const float* key_codebook, const float* value_codebook,
            float* o, float* m, float* l, int64_t begin, int64_t end) {
  using namespace attention;
  constexpr int key_parts = key_words / lanes;  // vectors of key words of a token
  float repeated[16];
  for (int i = 0; i < 16; ++i) repeated[i] = value_codebook[i % 4];
  Table key_table(key_codebook), value_table(repeated);
  for (int64_t task = begin; task < end; ++task) {
    int64_t head = task / blocks, first = task % blocks * block;
    int64_t kv = head / (heads / kv_heads);
    Floats query[key_parts][8];
    for (int p = 0; p < key_parts; ++p) {
      for (int i = 0; i < 8; ++i) {
        for (int w = 0; w < lanes; ++w) query[p][i][w] = q[head * size + (p * lanes + w) * 8 + i];
      }
    }
    // Value i of word w of a token: vector i of two half vectors would do with 16 lanes; memory
    // order is restored at the end.
    Floats out[size / lanes] = {};
    float top = -INFINITY, total = 0;
    for (int64_t t = first; t < first + block; ++t) {
      const uint32_t* key = keys + (kv * tokens + t) * key_words;
      Floats dot[2] = {};
      for (int p = 0; p < key_parts; ++p) {
        Words packed = load<Words>(key + p * lanes);
        for (int i = 0; i < 8; ++i) {
          dot[i % 2] = multiply_add(key_table[packed >> (4 * i)], query[p][i], dot[i % 2]);
        }
      }
      float score = sum(dot[0] + dot[1]) * key_norms[kv * tokens + t];
      float new_top = score > top ? score : top;
      Floats power = exponential(Floats{top - new_top, score - new_top});
      float keep = top == -INFINITY ? 0.0f : power[0], weight = power[1];
      total = total * keep + weight;
      top = new_top;
      float factor = weight * value_norms[kv * tokens + t];
      const uint32_t* value = values + (kv * tokens + t) * value_words;
#if defined(__AVX512F__)
      Words packed = reinterpret_cast<Words>(
          _mm512_broadcast_i64x4(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(value))));
      packed = reinterpret_cast<Words>(_mm512_srlv_epi32(
          reinterpret_cast<__m512i>(packed),
          _mm512_setr_epi32(0, 0, 0, 0, 0, 0, 0, 0, 16, 16, 16, 16, 16, 16, 16, 16)));
#else
      Words packed = load<Words>(value);
#endif
      for (int i = 0; i < size / lanes; ++i) {
        out[i] = multiply_add(value_table[packed >> (2 * i)], all(factor), out[i] * keep);
      }
    }
    for (int i = 0; i < size / lanes; ++i) {
      for (int w = 0; w < lanes; ++w) o[task * size + (w % 8) * 16 + i + (w / 8) * 8] = out[i][w];
    }
    m[task] = top;
    l[task] = total;
  }
}

}  // namespace holdfast::bench::HOLDFAST_SIMD_TARGET
