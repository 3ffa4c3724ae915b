// Matrix products, compiled once per instruction set.
//
// The classic scheme: blocks of A and B are packed so that the innermost kernel reads both in
// order, and a small block of C stays in registers. Packing also converts: half types to float,
// complex numbers to pairs of real rows. So strides, transposition and dtype end at the packing,
// and one kernel serves all.
#include "kernels/cpu/simd/matmul_kernels.h"

#include "kernels/cpu/simd/elements.h"
#include "kernels/cpu/simd/matmul_vector.h"

namespace holdfast::cpu::HOLDFAST_SIMD_TARGET {
namespace {

// Registers: kernel_rows x 2 vectors of C.
#if defined(__AVX512F__)
constexpr int kernel_rows = 14;
#elif defined(__AVX2__)
constexpr int kernel_rows = 6;
#else
constexpr int kernel_rows = 4;
#endif
constexpr int64_t depth_block =
    384;  // a panel of A (kernel_rows x depth_block) stays in the first-level cache
constexpr int64_t column_block = 256;  // a block of B (depth_block x column_block) in the second

template <typename F>
inline constexpr int kernel_columns = 2 * vector_bytes / static_cast<int>(sizeof(F));

int64_t smaller_of(int64_t a, int64_t b) { return a < b ? a : b; }
int64_t round_up(int64_t a, int64_t b) { return (a + b - 1) / b * b; }

// C[rows, 2 vectors] = or += panel_a[depth, rows] * panel_b[depth, 2 vectors].
template <typename F, int rows>
void multiply_panels(int64_t depth, const F* panel_a, const F* panel_b, F* c, int64_t c_stride,
                     bool accumulate) {
  using V = typename NativeVector<F>::type;
  constexpr int width = vector_bytes / sizeof(F);
  V sum[rows][2];
#pragma GCC unroll 16
  for (int i = 0; i < rows; ++i) sum[i][0] = sum[i][1] = V{};
  for (int64_t k = 0; k < depth; ++k) {
    V b0 = load_vector<V>(panel_b);
    V b1 = load_vector<V>(panel_b + width);
    __builtin_prefetch(panel_b + 16 * width);
    __builtin_prefetch(panel_b + 17 * width);
#pragma GCC unroll 16
    for (int i = 0; i < rows; ++i) {
      V a = panel_a[i] - V{};
      sum[i][0] = fused_multiply_add(a, b0, sum[i][0]);
      sum[i][1] = fused_multiply_add(a, b1, sum[i][1]);
    }
    panel_a += kernel_rows;
    panel_b += 2 * width;
  }
#pragma GCC unroll 16
  for (int i = 0; i < rows; ++i) {
    F* to = c + i * c_stride;
    if (accumulate) {
      sum[i][0] += load_vector<V>(to);
      sum[i][1] += load_vector<V>(to + width);
    }
    store_vector(to, sum[i][0]);
    store_vector(to + width, sum[i][1]);
  }
}

template <typename F>
using PanelKernel = void (*)(int64_t, const F*, const F*, F*, int64_t, bool);

template <typename F>
PanelKernel<F> panel_kernel(int64_t rows) {
#if defined(__AVX512F__)
  static constexpr PanelKernel<F> kernels[] = {
      multiply_panels<F, 1>,  multiply_panels<F, 2>,  multiply_panels<F, 3>,
      multiply_panels<F, 4>,  multiply_panels<F, 5>,  multiply_panels<F, 6>,
      multiply_panels<F, 7>,  multiply_panels<F, 8>,  multiply_panels<F, 9>,
      multiply_panels<F, 10>, multiply_panels<F, 11>, multiply_panels<F, 12>,
      multiply_panels<F, 13>, multiply_panels<F, 14>};
#elif defined(__AVX2__)
  static constexpr PanelKernel<F> kernels[] = {multiply_panels<F, 1>, multiply_panels<F, 2>,
                                               multiply_panels<F, 3>, multiply_panels<F, 4>,
                                               multiply_panels<F, 5>, multiply_panels<F, 6>};
#else
  static constexpr PanelKernel<F> kernels[] = {multiply_panels<F, 1>, multiply_panels<F, 2>,
                                               multiply_panels<F, 3>, multiply_panels<F, 4>};
#endif
  return kernels[rows - 1];
}

// How elements become the real numbers of the product: for complex numbers every row and every step
// of the depth is two.
template <typename T>
struct Parts {
  static constexpr int count = 1;
  template <typename F>
  static inline void put_a(T value, F* to, int64_t) {
    *to = static_cast<F>(value);
  }
};
template <>
struct Parts<Float16> {
  static constexpr int count = 1;
  static inline void put_a(Float16 value, float* to, int64_t) { *to = to_float(value); }
};
template <>
struct Parts<BFloat16> {
  static constexpr int count = 1;
  static inline void put_a(BFloat16 value, float* to, int64_t) { *to = to_float(value); }
};
template <>
struct Parts<Complex64> {
  static constexpr int count = 2;
  // Two rows by two steps: (re, -im) over (im, re), against B's (re; im). `step` is the distance of
  // two depth steps.
  static inline void put_a(Complex64 value, float* to, int64_t step) {
    to[0] = value.real;
    to[1] = value.imag;
    to[step] = -value.imag;
    to[step + 1] = value.real;
  }
};

template <typename T, typename F>
inline void put_b(T value, F* to, int64_t step) {
  if constexpr (is_same<T, Complex64>) {
    to[0] = value.real;
    to[step] = value.imag;
  } else if constexpr (is_same<T, F>) {
    *to = value;
  } else {
    *to = to_float(value);
  }
}

// Panels of kernel_rows real rows, each [depth, kernel_rows].
template <typename T, typename F>
void pack_a(const T* a, int64_t row_stride, int64_t column_stride, int64_t rows, int64_t depth,
            F* to) {
  constexpr int parts = Parts<T>::count;
  constexpr int64_t panel_rows = kernel_rows / parts;
  for (int64_t r = 0; r < rows; r += panel_rows) {
    int64_t height = smaller_of(panel_rows, rows - r);
    const T* from = a + r * row_stride;
    if (height == panel_rows && row_stride == 1) {
      for (int64_t k = 0; k < depth; ++k) {
#pragma GCC unroll 16
        for (int64_t i = 0; i < panel_rows; ++i) {
          Parts<T>::put_a(from[i + k * column_stride], to + k * parts * kernel_rows + i * parts,
                          kernel_rows);
        }
      }
    } else if (height == panel_rows && column_stride == 1) {
      for (int64_t k = 0; k < depth; ++k) {
#pragma GCC unroll 16
        for (int64_t i = 0; i < panel_rows; ++i) {
          Parts<T>::put_a(from[i * row_stride + k], to + k * parts * kernel_rows + i * parts,
                          kernel_rows);
        }
      }
    } else {
      for (int64_t k = 0; k < depth; ++k) {
        for (int64_t i = 0; i < height; ++i) {
          Parts<T>::put_a(from[i * row_stride + k * column_stride],
                          to + k * parts * kernel_rows + i * parts, kernel_rows);
        }
      }
    }
    to += depth * parts * kernel_rows;
  }
}

// Panels of kernel_columns columns, each [depth, kernel_columns]; missing columns are zero.
template <typename T, typename F>
void pack_b(const T* b, int64_t row_stride, int64_t column_stride, int64_t depth, int64_t columns,
            F* to) {
  constexpr int parts = Parts<T>::count;
  constexpr int64_t width = kernel_columns<F>;
  for (int64_t c = 0; c < columns; c += width) {
    int64_t count = smaller_of(width, columns - c);
    const T* from = b + c * column_stride;
    if (count < width) {
      for (int64_t i = 0; i < depth * parts * width; ++i) to[i] = 0;
    }
    if (column_stride == 1 && count == width) {
      for (int64_t k = 0; k < depth; ++k) {
        for (int64_t j = 0; j < width; ++j) {
          put_b(from[k * row_stride + j], to + k * parts * width + j, width);
        }
      }
    } else if (row_stride == 1) {
      // Transposed: short stretches of depth, so that the written lines stay in the cache.
      constexpr int64_t stretch = 16;
      for (int64_t k0 = 0; k0 < depth; k0 += stretch) {
        int64_t stop = smaller_of(depth, k0 + stretch);
        for (int64_t j = 0; j < count; ++j) {
          for (int64_t k = k0; k < stop; ++k) {
            put_b(from[k + j * column_stride], to + k * parts * width + j, width);
          }
        }
      }
    } else {
      for (int64_t k = 0; k < depth; ++k) {
        for (int64_t j = 0; j < count; ++j) {
          put_b(from[k * row_stride + j * column_stride], to + k * parts * width + j, width);
        }
      }
    }
    to += depth * parts * width;
  }
}

// One block of B against all of A's packed panels.
template <typename F>
void multiply_block(int64_t rows, int64_t columns, int64_t depth, const F* packed_a,
                    const F* packed_b, F* c, int64_t c_stride, bool accumulate) {
  constexpr int64_t width = kernel_columns<F>;
  for (int64_t r = 0; r < rows; r += kernel_rows) {
    int64_t height = smaller_of(kernel_rows, rows - r);
    PanelKernel<F> kernel = panel_kernel<F>(height);
    for (int64_t j = 0; j < columns; j += width) {
      F* to = c + r * c_stride + j;
      if (columns - j >= width) {
        kernel(depth, packed_a + r * depth, packed_b + j * depth, to, c_stride, accumulate);
        continue;
      }
      F edge[kernel_rows * width];
      kernel(depth, packed_a + r * depth, packed_b + j * depth, edge, width, false);
      for (int64_t i = 0; i < height; ++i) {
        for (int64_t l = 0; l < columns - j; ++l) {
          F value = edge[i * width + l];
          to[i * c_stride + l] = accumulate ? to[i * c_stride + l] + value : value;
        }
      }
    }
  }
}

// Real rows of C that cannot be written in place (half types, complex numbers) are collected in
// scratch.
template <typename T, typename F>
inline constexpr bool staged = !is_same<T, F>;

template <typename T, typename F>
struct Scratch {
  int64_t a, b, c;  // elements of each part
  Scratch(int64_t rows, int64_t columns, int64_t depth) {
    constexpr int parts = Parts<T>::count;
    int64_t block = smaller_of(depth, depth_block / parts) * parts;
    a = round_up(round_up(rows, kernel_rows / parts) * parts * block, 16);
    b = round_up(round_up(smaller_of(columns, column_block), kernel_columns<F>) * block, 16);
    c = staged<T, F> ? rows * parts * columns : 0;
  }
};

template <typename F>
inline void store_c(const F* from, int64_t count, F* to) {
  for (int64_t i = 0; i < count; ++i) to[i] = from[i];
}
inline void store_c(const float* from, int64_t count, Float16* to) { narrow(from, count, to); }
inline void store_c(const float* from, int64_t count, BFloat16* to) { narrow(from, count, to); }
inline void store_c(const float* from, int64_t count, Complex64* to) {
  for (int64_t i = 0; i < count; ++i) to[i] = {from[i], from[count + i]};
}

template <typename T, typename F>
void multiply(const simd::MatmulTile& tile) {
  constexpr int parts = Parts<T>::count;
  Scratch<T, F> sizes(tile.rows, tile.columns, tile.depth);
  F* packed_a = static_cast<F*>(tile.scratch);
  F* packed_b = packed_a + sizes.a;
  F* staged_c = packed_b + sizes.b;
  F* c = staged_c;
  int64_t c_stride = tile.columns;
  if constexpr (!staged<T, F>) {
    c = static_cast<F*>(tile.c);
    c_stride = tile.c_stride;
  }
  const T* a = static_cast<const T*>(tile.a);
  const T* b = static_cast<const T*>(tile.b);
  constexpr int64_t step = depth_block / parts;
  for (int64_t k = 0; k < tile.depth; k += step) {
    int64_t depth = smaller_of(step, tile.depth - k);
    pack_a(a + k * tile.a_column_stride, tile.a_row_stride, tile.a_column_stride, tile.rows, depth,
           packed_a);
    for (int64_t j = 0; j < tile.columns; j += column_block) {
      int64_t columns = smaller_of(column_block, tile.columns - j);
      pack_b(b + k * tile.b_row_stride + j * tile.b_column_stride, tile.b_row_stride,
             tile.b_column_stride, depth, columns, packed_b);
      multiply_block(tile.rows * parts, columns, depth * parts, packed_a, packed_b, c + j, c_stride,
                     k > 0);
    }
  }
  if constexpr (staged<T, F>) {
    for (int64_t r = 0; r < tile.rows; ++r) {
      store_c(staged_c + r * parts * tile.columns, tile.columns,
              static_cast<T*>(tile.c) + r * tile.c_stride);
    }
  }
}

void tile_product(Dtype::Val dtype, const simd::MatmulTile& tile) {
  switch (dtype) {
    case Dtype::Val::float16:
      return multiply<Float16, float>(tile);
    case Dtype::Val::bfloat16:
      return multiply<BFloat16, float>(tile);
    case Dtype::Val::float64:
      return multiply<double, double>(tile);
    case Dtype::Val::complex64:
      return multiply<Complex64, float>(tile);
    default:
      return multiply<float, float>(tile);
  }
}

template <typename T, typename F>
size_t bytes_of(int64_t rows, int64_t columns, int64_t depth) {
  Scratch<T, F> sizes(rows, columns, depth);
  return static_cast<size_t>(sizes.a + sizes.b + sizes.c) * sizeof(F);
}

size_t scratch_bytes(Dtype::Val dtype, int64_t rows, int64_t columns, int64_t depth) {
  switch (dtype) {
    case Dtype::Val::float16:
      return bytes_of<Float16, float>(rows, columns, depth);
    case Dtype::Val::bfloat16:
      return bytes_of<BFloat16, float>(rows, columns, depth);
    case Dtype::Val::float64:
      return bytes_of<double, double>(rows, columns, depth);
    case Dtype::Val::complex64:
      return bytes_of<Complex64, float>(rows, columns, depth);
    default:
      return bytes_of<float, float>(rows, columns, depth);
  }
}

void matrix_vector(Dtype::Val dtype, const simd::MatrixVector& product) {
  switch (dtype) {
    case Dtype::Val::float16:
      return multiply_vector<Float16, float>(product);
    case Dtype::Val::bfloat16:
      return multiply_vector<BFloat16, float>(product);
    case Dtype::Val::float64:
      return multiply_vector<double, double>(product);
    default:
      return multiply_vector<float, float>(product);
  }
}

}  // namespace

extern const simd::MatmulKernels matmul_kernels;
const simd::MatmulKernels matmul_kernels{tile_product, scratch_bytes, matrix_vector};

}  // namespace holdfast::cpu::HOLDFAST_SIMD_TARGET
