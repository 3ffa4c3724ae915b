// Row-wise rivals: RMSNorm and softmax.
#include "benchmarks/kernels/hand/variant.h"

#include <cmath>

#include "benchmarks/kernels/hand/vectors.h"

namespace holdfast::bench::HOLDFAST_SIMD_TARGET {

void rms_norm(const float* x, const float* weight, float* out, int size, int64_t begin,
              int64_t end) {
  for (int64_t row = begin; row < end; ++row) {
    const float* in = x + row * size;
    float* to = out + row * size;
    Floats s[4] = {};
    for (int i = 0; i < size; i += 4 * lanes) {
      for (int j = 0; j < 4; ++j) {
        Floats v = load<Floats>(in + i + j * lanes);
        s[j] = multiply_add(v, v, s[j]);
      }
    }
    float scale =
        1.0f / std::sqrt(sum((s[0] + s[1]) + (s[2] + s[3])) / static_cast<float>(size) + 1e-5f);
    for (int i = 0; i < size; i += lanes) {
      store(to + i, load<Floats>(in + i) * scale * load<Floats>(weight + i));
    }
  }
}

void softmax(const float* x, float* out, int size, int64_t begin, int64_t end) {
  for (int64_t row = begin; row < end; ++row) {
    const float* in = x + row * size;
    float* to = out + row * size;
    Floats m[4] = {all(-INFINITY), all(-INFINITY), all(-INFINITY), all(-INFINITY)};
    for (int i = 0; i < size; i += 4 * lanes) {
      for (int j = 0; j < 4; ++j) m[j] = larger(m[j], load<Floats>(in + i + j * lanes));
    }
    float top = maximum(larger(larger(m[0], m[1]), larger(m[2], m[3])));
    Floats s[2] = {};
    for (int i = 0; i < size; i += 2 * lanes) {
      for (int j = 0; j < 2; ++j) {
        Floats e = exponential(load<Floats>(in + i + j * lanes) - top);
        store(to + i + j * lanes, e);
        s[j] += e;
      }
    }
    float scale = 1.0f / sum(s[0] + s[1]);
    for (int i = 0; i < size; i += lanes) store(to + i, load<Floats>(to + i) * scale);
  }
}

}  // namespace holdfast::bench::HOLDFAST_SIMD_TARGET
