// The functions of one instruction set; hand.h says what each does.
#pragma once

#include <cstdint>

#include "benchmarks/kernels/hand/hand.h"

namespace holdfast::bench::HOLDFAST_SIMD_TARGET {

void rms_norm(const float* x, const float* weight, float* out, int size, int64_t begin,
              int64_t end);
void softmax(const float* x, float* out, int size, int64_t begin, int64_t end);
void delta_step(const float* q, const float* k, const float* v, const float* g, const float* beta,
                const float* state_in, float* y, float* state_out, int64_t begin, int64_t end);
void quantised_gemv(const uint32_t* weights, const float* scales, const float* biases,
                    const float* arranged, const float* group_sums, float* out, int64_t begin,
                    int64_t end);
void attend(const float* q, const uint32_t* keys, const float* key_norms, const uint32_t* values,
            const float* value_norms, const float* key_codebook, const float* value_codebook,
            float* o, float* m, float* l, int64_t begin, int64_t end);
void draw_mandelbrot(int32_t* out, int64_t begin, int64_t end);
void sort32(const float* in, float* out, int64_t begin, int64_t end);
void multiply(const float* a, const float* b, float* c, int64_t begin, int64_t end);
void count(const uint32_t* values, uint32_t* counts, int64_t begin, int64_t end);

}  // namespace holdfast::bench::HOLDFAST_SIMD_TARGET
