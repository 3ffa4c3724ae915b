// Hand-written loops over data in the first-level cache: what the arithmetic of an op takes, with
// no memory to wait for. Each does the least that gives results exact to the dtype.
#pragma once

#include <holdfast/dtype.h>

#include <cstddef>

namespace holdfast::bench {

// Of one row of `count` elements, a multiple of 128, aligned to 64 bytes.
using RowLoop = void (*)(const void* from, void* to, size_t count);

// For float32, float16 and bfloat16, null where the processor has no AVX-512 with BF16.
RowLoop exp_loop(Dtype dtype);
// `count` at most 4096.
RowLoop softmax_loop(Dtype dtype);
// Also with a weight, and a bias, of the row's dtype.
RowLoop rms_norm_loop(Dtype dtype);
RowLoop layer_norm_loop(Dtype dtype);
// Rows of 128 elements at positions of their own.
RowLoop rope_loop(Dtype dtype);

}  // namespace holdfast::bench
