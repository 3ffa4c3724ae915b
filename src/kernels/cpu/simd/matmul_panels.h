// The parts of a matrix product: packed panels, and the kernels that multiply them.
//
// A panel is [depth, lines]: some rows of A or columns of B, reordered so that the innermost kernel
// reads in order while a small block of C stays in registers. Packing also converts. So strides,
// transposition and dtype end at the packing. A panel's unit is float or double, or, where the
// processor multiplies bfloat16 itself, a pair of bfloat16 of neighbouring depth.
#pragma once

#include "kernels/cpu/simd/elements.h"
#include "kernels/cpu/simd/matmul_vector.h"

namespace holdfast::kernels::cpu::HOLDFAST_SIMD_TARGET {

// Registers: kernel_rows x 2 vectors of C.
#if defined(__AVX512F__)
inline constexpr int kernel_rows = 14;
#elif defined(__AVX2__)
inline constexpr int kernel_rows = 6;
#else
inline constexpr int kernel_rows = 4;
#endif

// Two bfloat16, the one of lower depth in the low half.
struct Pair {
  uint32_t bits;
};

// What a unit of a panel stands for.
template <typename U>
struct PanelUnit {
  using Sum = U;                   // of C
  static constexpr int depth = 1;  // elements of depth
};
template <>
struct PanelUnit<Pair> {
  using Sum = float;
  static constexpr int depth = 2;
};
// A Pair where the processor multiplies squares of them (matmul_squares.h).
struct SquarePair : Pair {};
template <>
struct PanelUnit<SquarePair> : PanelUnit<Pair> {};

template <typename U>
inline constexpr int unit_lanes = vector_bytes / static_cast<int>(sizeof(U));
template <typename U>
inline constexpr int kernel_columns = 2 * unit_lanes<U>;

inline int64_t round_up(int64_t a, int64_t b) { return (a + b - 1) / b * b; }

// `rows` in as many panels as needed, of nearly equal height.
inline int64_t panel_height(int64_t rows) {
  int64_t panels = (rows + kernel_rows - 1) / kernel_rows;
  return (rows + panels - 1) / panels;
}

// --- packing ---

template <typename U>
struct UnitVector;
template <>
struct UnitVector<float> {
  typedef uint32_t type __attribute__((vector_size(vector_bytes)));
};
template <>
struct UnitVector<Pair> {
  typedef uint32_t type __attribute__((vector_size(vector_bytes)));
};
template <>
struct UnitVector<double> {
  typedef uint64_t type __attribute__((vector_size(vector_bytes)));
};

// A vector of units from elements that follow each other along the depth.
template <typename U, typename T>
inline typename UnitVector<U>::type load_units(const T* from) {
  using V = typename UnitVector<U>::type;
  if constexpr (is_same<U, float> && is_same<T, BFloat16>) {
    return load_half_words(from) << 16;
  } else if constexpr (is_same<U, float> && is_same<T, Float16>) {
    return (V)load_lanes<float>(from);
  } else {
    return load_vector<V>(from);
  }
}

// A vector of units from neighbouring lines: elements that follow each other at `from`, and for
// pairs those at `next`.
template <typename U, typename T>
inline typename UnitVector<U>::type load_line_units(const T* from, [[maybe_unused]] const T* next) {
  using V = typename UnitVector<U>::type;
  if constexpr (is_same<U, Pair>) {
    V low = load_half_words(from);
    V high = load_half_words(next);
    return low | (high << 16);
  } else {
    return load_units<U>(from);
  }
}

// One unit; `next` is the element that follows along the depth, for pairs.
template <typename U, typename T>
inline U unit_of(T value, [[maybe_unused]] T next) {
  if constexpr (is_same<U, Pair>) {
    return {static_cast<uint32_t>(value.bits) | static_cast<uint32_t>(next.bits) << 16};
  } else if constexpr (is_same<T, U>) {
    return value;
  } else {
    return to_float(value);
  }
}

template <int W, bool high, typename V>
inline V interleave_units(V a, V b) {
  constexpr int h = high ? W / 2 : 0;
  if constexpr (W == 2) {
    return __builtin_shufflevector(a, b, h, h + 2);
  } else if constexpr (W == 4) {
    return __builtin_shufflevector(a, b, h, h + 4, h + 1, h + 5);
  } else if constexpr (W == 8) {
    return __builtin_shufflevector(a, b, h, h + 8, h + 1, h + 9, h + 2, h + 10, h + 3, h + 11);
  } else {
    return __builtin_shufflevector(a, b, h, h + 16, h + 1, h + 17, h + 2, h + 18, h + 3, h + 19,
                                   h + 4, h + 20, h + 5, h + 21, h + 6, h + 22, h + 7, h + 23);
  }
}

template <int W, typename V>
inline void transpose_units(V (&row)[W]) {
#pragma GCC unroll 4
  for (int round = 1; round < W; round *= 2) {
    V next[W];
#pragma GCC unroll 8
    for (int i = 0; i < W / 2; ++i) {
      next[2 * i] = interleave_units<W, false>(row[i], row[i + W / 2]);
      next[2 * i + 1] = interleave_units<W, true>(row[i], row[i + W / 2]);
    }
#pragma GCC unroll 16
    for (int i = 0; i < W; ++i) row[i] = next[i];
  }
}

// One panel whose lines are contiguous along the depth: tiles of W x W units are transposed in
// registers. A vector stored at the end of a row may reach into the next row, which is written
// later; behind the panel there must be room for one vector.
template <typename U, int panel, typename T>
void pack_lines(const T* from, int64_t line_stride, int64_t lines, int64_t depth, U* to) {
  using V = typename UnitVector<U>::type;
  constexpr int W = unit_lanes<U>;
  constexpr int64_t step = W * PanelUnit<U>::depth;
  constexpr int last_tile = (panel - 1) / W * W;
  for (int64_t k = 0; k < depth; k += step) {
    bool whole = depth - k >= step;
    int64_t units = whole ? W : (depth - k + PanelUnit<U>::depth - 1) / PanelUnit<U>::depth;
    U* at = to + k / PanelUnit<U>::depth * panel;
    for (int l0 = last_tile; l0 >= 0; l0 -= W) {
      V row[W];
#pragma GCC unroll 16
      for (int i = 0; i < W; ++i) {
        if (l0 + i >= lines) {
          row[i] = V{};
        } else if (whole) {
          row[i] = load_units<U>(from + (l0 + i) * line_stride + k);
        } else {
          T tail[step] = {};
          std::memcpy(tail, from + (l0 + i) * line_stride + k,
                      static_cast<size_t>(depth - k) * sizeof(T));
          row[i] = load_units<U>(tail);
        }
      }
      transpose_units<W>(row);
      if (whole) {
#pragma GCC unroll 16
        for (int i = 0; i < W; ++i) store_vector(at + i * panel + l0, row[i]);
      } else {
        for (int64_t i = 0; i < units; ++i) store_vector(at + i * panel + l0, row[i]);
      }
    }
  }
}

// One panel whose neighbouring lines are contiguous. `readable`: lines from `from` to the end of
// the operand; those beyond `lines` may be packed too.
template <typename U, int panel, typename T>
void pack_across(const T* from, int64_t depth_stride, int64_t lines, int64_t readable,
                 int64_t depth, U* to) {
  constexpr int W = unit_lanes<U>;
  constexpr int tiles = (panel + W - 1) / W;
  constexpr int unit_depth = PanelUnit<U>::depth;
  for (int64_t k = 0; k < depth; k += unit_depth) {
    const T* row = from + k * depth_stride;
    bool has_next = unit_depth == 2 && k + 1 < depth;
    const T* next = has_next ? row + depth_stride : row;
    U* at = to + k / unit_depth * panel;
    if (readable >= tiles * W && (unit_depth == 1 || has_next)) {
#pragma GCC unroll 4
      for (int t = 0; t < tiles; ++t) {
        store_vector(at + t * W, load_line_units<U>(row + t * W, next + t * W));
      }
    } else {
      for (int64_t l = 0; l < panel; ++l) {
        T value{}, second{};
        if (l < lines) {
          value = row[l];
          if (has_next) second = next[l];
        }
        at[l] = unit_of<U>(value, second);
      }
    }
  }
}

template <typename U, int panel, typename T>
void pack_scattered(const T* from, int64_t line_stride, int64_t depth_stride, int64_t lines,
                    int64_t depth, U* to) {
  constexpr int unit_depth = PanelUnit<U>::depth;
  for (int64_t k = 0; k < depth; k += unit_depth) {
    U* at = to + k / unit_depth * panel;
    for (int64_t l = 0; l < panel; ++l) {
      T value{}, second{};
      if (l < lines) {
        value = from[l * line_stride + k * depth_stride];
        if (unit_depth == 2 && k + 1 < depth) {
          second = from[l * line_stride + (k + 1) * depth_stride];
        }
      }
      at[l] = unit_of<U>(value, second);
    }
  }
}

// `lines` lines in panels of `height` (at most `panel`) lines, each padded with anything to
// `panel`: sums of padding are not used. Needs room for one vector behind the last panel.
template <typename U, int panel, typename T>
void pack_panels(const T* from, int64_t line_stride, int64_t depth_stride, int64_t lines,
                 int64_t depth, int64_t height, U* to) {
  int64_t units = (depth + PanelUnit<U>::depth - 1) / PanelUnit<U>::depth;
  for (int64_t first = 0; first < lines; first += height) {
    int64_t count = smaller_of(height, lines - first);
    const T* start = from + first * line_stride;
    if (depth_stride == 1) {
      pack_lines<U, panel>(start, line_stride, count, depth, to);
    } else if (line_stride == 1) {
      pack_across<U, panel>(start, depth_stride, count, lines - first, depth, to);
    } else {
      pack_scattered<U, panel>(start, line_stride, depth_stride, count, depth, to);
    }
    to += units * panel;
  }
}

// --- multiplying ---

// C[rows, 2 vectors] = or += panel_a[units, rows] * panel_b[units, 2 vectors].
template <typename F, int rows>
void multiply_panels(int64_t units, const F* panel_a, const F* panel_b, F* c, int64_t c_stride,
                     bool accumulate) {
  using V = typename NativeVector<F>::type;
  constexpr int width = vector_bytes / sizeof(F);
  V sum[rows][2];
#pragma GCC unroll 16
  for (int i = 0; i < rows; ++i) sum[i][0] = sum[i][1] = V{};
  for (int64_t k = 0; k < units; ++k) {
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

#if defined(__AVX512F__)
// The same for pairs of bfloat16. The instruction adds both products to the sum in float32, rounds
// to nearest and takes subnormal numbers as zero.
template <int rows>
__attribute__((target("avx512bf16"))) void multiply_pair_panels(int64_t units, const Pair* panel_a,
                                                                const Pair* panel_b, float* c,
                                                                int64_t c_stride, bool accumulate) {
  __m512 sum[rows][2];
#pragma GCC unroll 16
  for (int i = 0; i < rows; ++i) sum[i][0] = sum[i][1] = _mm512_setzero_ps();
  for (int64_t k = 0; k < units; ++k) {
    __m512bh b0 = (__m512bh)_mm512_loadu_si512(panel_b);
    __m512bh b1 = (__m512bh)_mm512_loadu_si512(panel_b + 16);
    __builtin_prefetch(panel_b + 256);
    __builtin_prefetch(panel_b + 272);
#pragma GCC unroll 16
    for (int i = 0; i < rows; ++i) {
      __m512bh a = (__m512bh)_mm512_set1_epi32(static_cast<int>(panel_a[i].bits));
      sum[i][0] = _mm512_dpbf16_ps(sum[i][0], a, b0);
      sum[i][1] = _mm512_dpbf16_ps(sum[i][1], a, b1);
    }
    panel_a += kernel_rows;
    panel_b += 32;
  }
#pragma GCC unroll 16
  for (int i = 0; i < rows; ++i) {
    float* to = c + i * c_stride;
    if (accumulate) {
      sum[i][0] = sum[i][0] + _mm512_loadu_ps(to);
      sum[i][1] = sum[i][1] + _mm512_loadu_ps(to + 16);
    }
    _mm512_storeu_ps(to, sum[i][0]);
    _mm512_storeu_ps(to + 16, sum[i][1]);
  }
}
#endif

template <typename U>
using PanelKernel = void (*)(int64_t, const U*, const U*, typename PanelUnit<U>::Sum*, int64_t,
                             bool);

// The kernel for 1 to kernel_rows rows.
template <typename U>
PanelKernel<U> panel_kernel(int64_t rows) {
#if defined(__AVX512F__)
  if constexpr (is_same<U, Pair>) {
    static constexpr PanelKernel<Pair> kernels[] = {
        multiply_pair_panels<1>,  multiply_pair_panels<2>,  multiply_pair_panels<3>,
        multiply_pair_panels<4>,  multiply_pair_panels<5>,  multiply_pair_panels<6>,
        multiply_pair_panels<7>,  multiply_pair_panels<8>,  multiply_pair_panels<9>,
        multiply_pair_panels<10>, multiply_pair_panels<11>, multiply_pair_panels<12>,
        multiply_pair_panels<13>, multiply_pair_panels<14>};
    return kernels[rows - 1];
  } else {
    static constexpr PanelKernel<U> kernels[] = {
        multiply_panels<U, 1>,  multiply_panels<U, 2>,  multiply_panels<U, 3>,
        multiply_panels<U, 4>,  multiply_panels<U, 5>,  multiply_panels<U, 6>,
        multiply_panels<U, 7>,  multiply_panels<U, 8>,  multiply_panels<U, 9>,
        multiply_panels<U, 10>, multiply_panels<U, 11>, multiply_panels<U, 12>,
        multiply_panels<U, 13>, multiply_panels<U, 14>};
    return kernels[rows - 1];
  }
#elif defined(__AVX2__)
  static constexpr PanelKernel<U> kernels[] = {multiply_panels<U, 1>, multiply_panels<U, 2>,
                                               multiply_panels<U, 3>, multiply_panels<U, 4>,
                                               multiply_panels<U, 5>, multiply_panels<U, 6>};
  return kernels[rows - 1];
#else
  static constexpr PanelKernel<U> kernels[] = {multiply_panels<U, 1>, multiply_panels<U, 2>,
                                               multiply_panels<U, 3>, multiply_panels<U, 4>};
  return kernels[rows - 1];
#endif
}

// Packed rows (in panels of `height`) times packed columns: C[rows, columns] = or +=.
template <typename U>
void multiply_block(int64_t rows, int64_t height, int64_t columns, int64_t units, const U* packed_a,
                    const U* packed_b, typename PanelUnit<U>::Sum* c, int64_t c_stride,
                    bool accumulate) {
  using F = typename PanelUnit<U>::Sum;
  constexpr int64_t width = kernel_columns<U>;
  for (int64_t r = 0; r < rows; r += height) {
    int64_t count = smaller_of(height, rows - r);
    PanelKernel<U> kernel = panel_kernel<U>(count);
    for (int64_t j = 0; j < columns; j += width) {
      F* to = c + r * c_stride + j;
      if (columns - j >= width) {
        kernel(units, packed_a, packed_b + j * units, to, c_stride, accumulate);
        continue;
      }
      F edge[kernel_rows * width];
      kernel(units, packed_a, packed_b + j * units, edge, width, false);
      for (int64_t i = 0; i < count; ++i) {
        for (int64_t l = 0; l < columns - j; ++l) {
          F value = edge[i * width + l];
          to[i * c_stride + l] = accumulate ? to[i * c_stride + l] + value : value;
        }
      }
    }
    packed_a += units * kernel_rows;
  }
}

}  // namespace holdfast::kernels::cpu::HOLDFAST_SIMD_TARGET
