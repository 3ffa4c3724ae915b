// The rivals of `bench kernels`: the same algorithms, written by hand with vectors of one
// instruction set.
#pragma once

#include <cstdint>

namespace holdfast::bench {

// Shapes that the kernels and their rivals agree on.
namespace delta {
inline constexpr int steps = 64, key_heads = 16, value_heads = 32, key_size = 128, value_size = 128;
}
namespace gemv {
inline constexpr int rows = 4096, columns = 4096, group = 64;
}
namespace attention {
inline constexpr int heads = 32, kv_heads = 8, tokens = 4096, size = 128, block = 256;
inline constexpr int blocks = tokens / block, key_words = size * 4 / 32,
                     value_words = size * 2 / 32;
}  // namespace attention
namespace mandelbrot {
inline constexpr int width = 1024, height = 768, iterations = 256;
}
namespace product {
inline constexpr int side = 800, tile = 32;
}

// Each works on tasks [begin, end).
struct HandKernels {
  const char* name;
  bool is_supported;
  int lanes;  // floats in a vector
  // Rows of `size` floats.
  void (*rms_norm)(const float* x, const float* weight, float* out, int size, int64_t begin,
                   int64_t end);
  void (*softmax)(const float* x, float* out, int size, int64_t begin, int64_t end);
  // One task is one value head.
  void (*delta_step)(const float* q, const float* k, const float* v, const float* g,
                     const float* beta, const float* state_in, float* y, float* state_out,
                     int64_t begin, int64_t end);
  // `x` in the order that `arrange_gemv_input` made; one task is one output.
  void (*quantised_gemv)(const uint32_t* weights, const float* scales, const float* biases,
                         const float* arranged, const float* group_sums, float* out, int64_t begin,
                         int64_t end);
  // One task is one block of tokens of one head: `o` [heads][blocks][size], `m` and `l`
  // [heads][blocks].
  void (*attention)(const float* q, const uint32_t* keys, const float* key_norms,
                    const uint32_t* values, const float* value_norms, const float* key_codebook,
                    const float* value_codebook, float* o, float* m, float* l, int64_t begin,
                    int64_t end);
  // One task is one line.
  void (*mandelbrot)(int32_t* out, int64_t begin, int64_t end);
  // One task sorts 32 floats.
  void (*sort32)(const float* in, float* out, int64_t begin, int64_t end);
  // One task is one 32×32 tile of the product, numbered along rows.
  void (*product)(const float* a, const float* b, float* c, int64_t begin, int64_t end);
  // Adds the counts of values[begin, end) (each below 256) to `counts`.
  void (*histogram)(const uint32_t* values, uint32_t* counts, int64_t begin, int64_t end);
};

// For `quantised_gemv`: value i of word w stands at [w / lanes][i][w % lanes], and the sum of each
// group.
void arrange_gemv_input(const float* x, int lanes, float* arranged, float* group_sums);

// The widest that this processor runs; null when it has not even AVX2.
const HandKernels* hand_kernels();

namespace avx2 {
const HandKernels& hand_kernels();
}
namespace avx512 {
const HandKernels& hand_kernels();
}

}  // namespace holdfast::bench
