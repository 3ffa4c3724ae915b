// Matrix times vector: bound by reading the matrix once.
#pragma once

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "kernels/cpu/simd/elements.h"
#include "kernels/cpu/simd/matmul_kernels.h"

namespace holdfast::kernels::cpu::HOLDFAST_SIMD_TARGET {

// a * b + c, fused where the instruction set has it.
inline NativeVector<float>::type fused_multiply_add(NativeVector<float>::type a,
                                                    NativeVector<float>::type b,
                                                    NativeVector<float>::type c) {
#if defined(__AVX512F__)
  return (NativeVector<float>::type)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif defined(__AVX2__) && defined(__FMA__)
  return (NativeVector<float>::type)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#else
  return a * b + c;
#endif
}
inline NativeVector<double>::type fused_multiply_add(NativeVector<double>::type a,
                                                     NativeVector<double>::type b,
                                                     NativeVector<double>::type c) {
#if defined(__AVX512F__)
  return (NativeVector<double>::type)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c);
#elif defined(__AVX2__) && defined(__FMA__)
  return (NativeVector<double>::type)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c);
#else
  return a * b + c;
#endif
}

inline constexpr int64_t vector_piece = 4096;  // steps of the depth whose vector part is at hand
inline constexpr int64_t vector_outputs = simd::vector_outputs;  // summed side by side

inline int64_t smaller_of(int64_t a, int64_t b) { return a < b ? a : b; }

template <typename T, typename F>
inline F widen_one(T value) {
  if constexpr (is_same<T, F>) {
    return value;
  } else {
    return to_float(value);
  }
}

template <typename F>
inline void store_one(F value, F& to) {
  to = value;
}
template <typename T>
inline void store_one(float value, T& to)
  requires(!is_same<T, float>)
{
  from_float(value, to);
}

// The sum of x[k] * y[k] in a fixed number of lanes.
template <typename F>
inline F dot_piece(const F* x, const F* y, int64_t count) {
  using V = typename NativeVector<F>::type;
  constexpr int width = vector_bytes / sizeof(F);
  constexpr int vectors = 4;
  V sum[vectors];
  for (int v = 0; v < vectors; ++v) sum[v] = V{};
  int64_t k = 0;
  for (; k + width * vectors <= count; k += width * vectors) {
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) {
      sum[v] = fused_multiply_add(load_vector<V>(x + k + v * width),
                                  load_vector<V>(y + k + v * width), sum[v]);
    }
  }
  for (int v = 0; k + width <= count; k += width, ++v) {
    sum[v] = fused_multiply_add(load_vector<V>(x + k), load_vector<V>(y + k), sum[v]);
  }
  V total = (sum[0] + sum[1]) + (sum[2] + sum[3]);
  F lanes[width];
  store_vector(lanes, total);
  for (int half = width / 2; half >= 1; half /= 2) {
    for (int l = 0; l < half; ++l) lanes[l] += lanes[l + half];
  }
  F result = lanes[0];
  for (; k < count; ++k) result += x[k] * y[k];
  return result;
}

// The product of a row of the matrix with x, which is in the order of load_pair. One row after the
// other: neighbouring rows are read as one stretch of memory.
template <typename T, typename F>
inline F dot_row(const T* row, const F* x, int64_t count) {
  constexpr int width = lane_count<F>;
  Lanes<F> sum[4] = {};
  int64_t k = 0;
  auto add_pair = [&](int v) {
    LanePair<F> part = load_pair<F>(row + k);
    sum[v] = fused_multiply_add(part.first, load_lanes<F>(x + k), sum[v]);
    sum[v + 1] = fused_multiply_add(part.second, load_lanes<F>(x + k + width), sum[v + 1]);
    k += 2 * width;
  };
  while (k + 4 * width <= count) {
    fetch_far<4 * width * sizeof(T)>(row + k);
    add_pair(0);
    add_pair(2);
  }
  if (k + 2 * width <= count) add_pair(0);
  for (; k < count; k += width) {
    int64_t rest = count - k < width ? count - k : width;
    sum[0] = fused_multiply_add(load_some_lanes<F>(row + k, rest), load_some_lanes<F>(x + k, rest),
                                sum[0]);
  }
  return add_lanes<F>((sum[0] + sum[1]) + (sum[2] + sum[3]));
}

#if defined(__AVX512F__)
// The same of bfloat16 as the processor multiplies it (multiply_pair_panels); x is as it is.
__attribute__((target("avx512bf16"))) inline float dot_pair_row(const BFloat16* row,
                                                                const BFloat16* x, int64_t count) {
  __m512 sum[4] = {};
  int64_t k = 0;
  for (; k + 128 <= count; k += 128) {
    fetch_far<256>(row + k);
#pragma GCC unroll 4
    for (int v = 0; v < 4; ++v) {
      sum[v] = _mm512_dpbf16_ps(sum[v], (__m512bh)_mm512_loadu_si512(row + k + 32 * v),
                                (__m512bh)_mm512_loadu_si512(x + k + 32 * v));
    }
  }
  for (; k < count; k += 32) {
    auto some = count - k < 32 ? (__mmask32{1} << (count - k)) - 1 : ~__mmask32{0};
    sum[0] = _mm512_dpbf16_ps(sum[0], (__m512bh)_mm512_maskz_loadu_epi16(some, row + k),
                              (__m512bh)_mm512_maskz_loadu_epi16(some, x + k));
  }
  return add_lanes<float>((Lanes<float>)((sum[0] + sum[1]) + (sum[2] + sum[3])));
}
#endif

// sums[i] += the sum over k < rows of x[k] * matrix[k, i], for outputs that are contiguous. The
// same part of the rows after these is fetched meanwhile: rows lie too far apart to be foreseen.
// Sums are in the order of load_pair.
template <typename T, typename F, int rows>
inline void add_some_rows(const T* matrix, int64_t stride, const F* x, int64_t outputs, F* sums) {
  constexpr int width = lane_count<F>;
  Lanes<F> factor[rows];
#pragma GCC unroll 8
  for (int k = 0; k < rows; ++k) factor[k] = x[k] - Lanes<F>{};
  int64_t i = 0;
  for (; i + 2 * width <= outputs; i += 2 * width) {
    Lanes<F> first = load_lanes<F>(sums + i), second = load_lanes<F>(sums + i + width);
#pragma GCC unroll 8
    for (int k = 0; k < rows; ++k) {
      const T* from = matrix + k * stride + i;
      // An address, not an element: the last rows have none after them.
      auto next =
          reinterpret_cast<uintptr_t>(from) + static_cast<uintptr_t>(rows * stride) * sizeof(T);
      for (size_t line = 0; line < 2 * width * sizeof(T); line += 64) {
        __builtin_prefetch(reinterpret_cast<const char*>(next + line), 0, 2);
      }
      LanePair<F> part = load_pair<F>(from);
      first = fused_multiply_add(part.first, factor[k], first);
      second = fused_multiply_add(part.second, factor[k], second);
    }
    store_lanes(sums + i, first);
    store_lanes(sums + i + width, second);
  }
  for (; i + width <= outputs; i += width) {
    Lanes<F> sum = load_lanes<F>(sums + i);
    for (int k = 0; k < rows; ++k) {
      sum = fused_multiply_add(load_lanes<F>(matrix + k * stride + i), factor[k], sum);
    }
    store_lanes(sums + i, sum);
  }
  if (i < outputs) {
    Lanes<F> sum = load_some_lanes<F>(sums + i, outputs - i);
    for (int k = 0; k < rows; ++k) {
      sum = fused_multiply_add(load_some_lanes<F>(matrix + k * stride + i, outputs - i), factor[k],
                               sum);
    }
    store_some_lanes(sums + i, sum, outputs - i);
  }
}

template <typename T, typename F>
inline void add_rows(const T* matrix, int64_t stride, const F* x, int64_t count, int64_t outputs,
                     F* sums) {
  int64_t k = 0;
  for (; k + 8 <= count; k += 8) {
    add_some_rows<T, F, 8>(matrix + k * stride, stride, x + k, outputs, sums);
  }
  for (; k < count; ++k) {
    add_some_rows<T, F, 1>(matrix + k * stride, stride, x + k, outputs, sums);
  }
}

// Outputs whose elements of depth are contiguous.
template <typename T, typename F>
void multiply_rows(const simd::MatrixVector& product, bool pairs) {
  const T* matrix = static_cast<const T*>(product.matrix);
  const T* vector = static_cast<const T*>(product.vector);
  T* c = static_cast<T*>(product.c);
  F sums[vector_outputs];
  F x[vector_piece];
  for (int64_t first = 0; first < product.outputs; first += vector_outputs) {
    int64_t outputs = smaller_of(product.outputs - first, vector_outputs);
    for (int64_t i = 0; i < outputs; ++i) sums[i] = 0;
    for (int64_t k = 0; k < product.depth; k += vector_piece) {
      int64_t depth = smaller_of(product.depth - k, vector_piece);
      const T* rows = matrix + first * product.output_stride + k;
      auto* halves = reinterpret_cast<T*>(x);
      for (int64_t s = 0; s < depth; ++s) {
        T element = vector[(k + s) * product.vector_stride];
        if (pairs) {
          halves[s] = element;
        } else {
          x[s] = widen_one<T, F>(element);
        }
      }
      if (!pairs) split_lanes<T, F>(x, depth);
      for (int64_t i = 0; i < outputs; ++i, rows += product.output_stride) {
#if defined(__AVX512F__)
        if constexpr (is_same<T, BFloat16>) {
          if (pairs) {
            sums[i] += dot_pair_row(rows, halves, depth);
            continue;
          }
        }
#endif
        sums[i] += dot_row<T, F>(rows, x, depth);
      }
    }
    if (c == nullptr) {
      std::memcpy(static_cast<F*>(product.sums) + first, sums,
                  static_cast<size_t>(outputs) * sizeof(F));
      continue;
    }
    for (int64_t i = 0; i < outputs; ++i) store_one(sums[i], c[first + i]);
  }
}

// Outputs that are contiguous themselves.
template <typename T, typename F>
void multiply_columns(const simd::MatrixVector& product) {
  const T* matrix = static_cast<const T*>(product.matrix);
  const T* vector = static_cast<const T*>(product.vector);
  F sums[vector_outputs];
  F x[vector_piece];
  for (int64_t first = 0; first < product.outputs; first += vector_outputs) {
    int64_t outputs = smaller_of(product.outputs - first, vector_outputs);
    for (int64_t i = 0; i < outputs; ++i) sums[i] = 0;
    for (int64_t k = 0; k < product.depth; k += vector_piece) {
      int64_t depth = smaller_of(product.depth - k, vector_piece);
      for (int64_t s = 0; s < depth; ++s) {
        x[s] = widen_one<T, F>(vector[(k + s) * product.vector_stride]);
      }
      add_rows(matrix + k * product.depth_stride + first, product.depth_stride, x, depth, outputs,
               sums);
    }
    join_lanes<T, F>(sums, outputs);
    if (product.c == nullptr) {
      std::memcpy(static_cast<F*>(product.sums) + first, sums,
                  static_cast<size_t>(outputs) * sizeof(F));
    } else {
      for (int64_t i = 0; i < outputs; ++i)
        store_one(sums[i], static_cast<T*>(product.c)[first + i]);
    }
  }
}

template <typename T, typename F>
void multiply_vector(const simd::MatrixVector& product, bool pairs = false) {
  if (product.depth_stride == 1) {
    multiply_rows<T, F>(product, pairs);
  } else {
    multiply_columns<T, F>(product);
  }
}

// c[i] = the sum of parts[p, i].
template <typename T, typename F>
void add_parts(const void* parts, int64_t count, int64_t stride, int64_t outputs, void* c) {
  const F* part = static_cast<const F*>(parts);
  F sums[vector_outputs];
  for (int64_t first = 0; first < outputs; first += vector_outputs) {
    int64_t some = smaller_of(outputs - first, vector_outputs);
    for (int64_t i = 0; i < some; ++i) sums[i] = part[first + i];
    for (int64_t p = 1; p < count; ++p) {
      HOLDFAST_VECTORISE
      for (int64_t i = 0; i < some; ++i) sums[i] += part[p * stride + first + i];
    }
    for (int64_t i = 0; i < some; ++i) store_one(sums[i], static_cast<T*>(c)[first + i]);
  }
}

}  // namespace holdfast::kernels::cpu::HOLDFAST_SIMD_TARGET
