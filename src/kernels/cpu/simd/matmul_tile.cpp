// Matrix products, compiled once per instruction set: blocks of A and B are packed into panels and
// multiplied (matmul_panels.h).
#include "kernels/cpu/instruction_set.h"
#include "kernels/cpu/simd/elements.h"
#include "kernels/cpu/simd/matmul_kernels.h"
#include "kernels/cpu/simd/matmul_panels.h"
#include "kernels/cpu/simd/matmul_squares.h"
#include "kernels/cpu/simd/matmul_vector.h"

namespace holdfast::kernels::cpu::HOLDFAST_SIMD_TARGET {
namespace {

// Units of depth: a panel of A (kernel_rows x depth_block) stays in the first-level cache, a block
// of B (depth_block x column_block) in the second.
constexpr int64_t depth_block = simd::matmul_depth_block;
constexpr int64_t column_block = 256;

// Complex numbers: every row and every step of the depth is two. Rows (re, -im) over (im, re),
// against B's (re; im).
constexpr int64_t complex_rows = kernel_rows / 2;

void pack_complex_rows(const Complex64* a, int64_t row_stride, int64_t column_stride, int64_t rows,
                       int64_t depth, float* to) {
  for (int64_t r = 0; r < rows; r += complex_rows) {
    int64_t height = smaller_of(complex_rows, rows - r);
    const Complex64* from = a + r * row_stride;
    for (int64_t k = 0; k < depth; ++k) {
      float* at = to + k * 2 * kernel_rows;
      for (int64_t i = 0; i < height; ++i, at += 2) {
        Complex64 value = from[i * row_stride + k * column_stride];
        at[0] = value.real;
        at[1] = value.imag;
        at[kernel_rows] = -value.imag;
        at[kernel_rows + 1] = value.real;
      }
    }
    to += depth * 2 * kernel_rows;
  }
}

void pack_complex_columns(const Complex64* b, int64_t row_stride, int64_t column_stride,
                          int64_t depth, int64_t columns, float* to) {
  constexpr int64_t width = kernel_columns<float>;
  for (int64_t c = 0; c < columns; c += width) {
    int64_t count = smaller_of(width, columns - c);
    const Complex64* from = b + c * column_stride;
    for (int64_t k = 0; k < depth; ++k) {
      float* at = to + k * 2 * width;
      for (int64_t j = 0; j < width; ++j) {
        Complex64 value = j < count ? from[k * row_stride + j * column_stride] : Complex64{0, 0};
        at[j] = value.real;
        at[width + j] = value.imag;
      }
    }
    to += depth * 2 * width;
  }
}

// How a product of elements T is computed in panels of U.
template <typename T, typename U>
struct Packing {
  static constexpr int parts = 1;  // real rows of an element
  static constexpr int64_t panel = kernel_rows;
  static constexpr int64_t depth = depth_block * PanelUnit<U>::depth;  // elements of a block
  static int64_t units(int64_t count) {
    return (count + PanelUnit<U>::depth - 1) / PanelUnit<U>::depth;
  }
  static int64_t height(int64_t rows) { return panel_height(rows); }
  // What multiply_block takes: the packed rows.
  static const U* rows(const T* a, int64_t row_stride, int64_t column_stride, int64_t rows,
                       int64_t count, U* to) {
    pack_panels<U, kernel_rows>(a, row_stride, column_stride, rows, count, height(rows), to);
    return to;
  }
  static void columns(const T* b, int64_t row_stride, int64_t column_stride, int64_t count,
                      int64_t columns, U* to) {
    constexpr int width = kernel_columns<U>;
    pack_panels<U, width>(b, column_stride, row_stride, columns, count, width, to);
  }
};
template <>
struct Packing<Complex64, float> {
  static constexpr int parts = 2;
  static constexpr int64_t panel = kernel_rows;
  static constexpr int64_t depth = depth_block / 2;
  static int64_t units(int64_t count) { return 2 * count; }
  static int64_t height(int64_t) { return 2 * complex_rows; }
  static const float* rows(const Complex64* a, int64_t row_stride, int64_t column_stride,
                           int64_t rows, int64_t count, float* to) {
    pack_complex_rows(a, row_stride, column_stride, rows, count, to);
    return to;
  }
  static void columns(const Complex64* b, int64_t row_stride, int64_t column_stride, int64_t count,
                      int64_t columns, float* to) {
    pack_complex_columns(b, row_stride, column_stride, count, columns, to);
  }
};
#if defined(__AVX512F__)
template <>
struct Packing<BFloat16, SquarePair> {
  static constexpr int parts = 1;
  static constexpr int64_t panel = square;
  static constexpr int64_t depth = 2 * depth_block;
  static int64_t units(int64_t count) { return round_up((count + 1) / 2, square); }
  static int64_t height(int64_t) { return square; }
  static Squares rows(const BFloat16* a, int64_t row_stride, int64_t column_stride, int64_t rows,
                      int64_t count, SquarePair* to) {
    return pack_squares(a, row_stride, column_stride, rows, count, to);
  }
  static void columns(const BFloat16* b, int64_t row_stride, int64_t column_stride, int64_t count,
                      int64_t columns, SquarePair* to) {
    constexpr int width = kernel_columns<Pair>;
    int64_t used = (count + 1) / 2 * width, all = units(count) * width;
    for (int64_t c = 0; c < columns; c += width, to += all) {
      pack_panels<Pair, width>(b + c * column_stride, column_stride, row_stride,
                               smaller_of(width, columns - c), count, width, to);
      for (int64_t i = used; i < all; ++i) to[i] = {};
    }
  }
};
#endif

// Real rows of C that cannot be written in place (half types, complex numbers) are collected in
// scratch.
template <typename T, typename U>
inline constexpr bool staged = !is_same<T, U>;

template <typename T, typename U>
struct Scratch {
  int64_t a, b, c;  // units of a and b (of either, where they may be swapped), sums of c
  Scratch(int64_t rows, int64_t columns, int64_t depth) {
    using P = Packing<T, U>;
    int64_t block = P::units(smaller_of(depth, P::depth));
    int64_t real_rows = rows * P::parts;
    c = staged<T, U> ? real_rows * columns : 0;
    if (is_same<U, SquarePair>) rows = columns = real_rows = rows > columns ? rows : columns;
    int64_t panels = (real_rows + P::height(rows) - 1) / P::height(rows);
    a = round_up((panels * P::panel) * block, 16) + 16;  // room for one vector
    b = round_up(round_up(smaller_of(columns, column_block), kernel_columns<U>) * block, 16) + 16;
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

// Does C's transpose cost less? Rows become squares as they are, columns have to be transposed into
// panels.
template <typename U>
bool is_swapped(const simd::MatmulTile& tile) {
  return is_same<U, SquarePair> && tile.b_row_stride == 1 && tile.rows < tile.columns &&
         tile.columns <= column_block;
}

// C = A B, or its transpose from B's and A's, in `c`.
template <typename T, typename U>
void multiply_into(const simd::MatmulTile& tile, bool swapped, U* packed_a, U* packed_b,
                   typename PanelUnit<U>::Sum* c, int64_t c_stride) {
  using P = Packing<T, U>;
  for (int64_t k = 0; k < tile.depth; k += P::depth) {
    int64_t depth = smaller_of(P::depth, tile.depth - k);
    const T* a = tile.a_block != nullptr
                     ? static_cast<const T*>(tile.a_block(tile.context, k, depth))
                     : static_cast<const T*>(tile.a) + k * tile.a_column_stride;
    auto b_at = [&](int64_t j, int64_t columns) {
      if (tile.b_block != nullptr)
        return static_cast<const T*>(tile.b_block(tile.context, k, depth, j, columns));
      return static_cast<const T*>(tile.b) + k * tile.b_row_stride + j * tile.b_column_stride;
    };
    if (swapped) {
      auto rows = P::rows(b_at(0, tile.columns), tile.b_column_stride, tile.b_row_stride,
                          tile.columns, depth, packed_a);
      P::columns(a, tile.a_column_stride, tile.a_row_stride, depth, tile.rows, packed_b);
      multiply_block<U>(tile.columns, P::height(tile.columns), tile.rows, P::units(depth), rows,
                        packed_b, c, c_stride, k > 0);
      continue;
    }
    auto rows = P::rows(a, tile.a_row_stride, tile.a_column_stride, tile.rows, depth, packed_a);
    for (int64_t j = 0; j < tile.columns; j += column_block) {
      int64_t columns = smaller_of(column_block, tile.columns - j);
      P::columns(b_at(j, columns), tile.b_row_stride, tile.b_column_stride, depth, columns,
                 packed_b);
      multiply_block<U>(tile.rows * P::parts, P::height(tile.rows), columns, P::units(depth), rows,
                        packed_b, c + j, c_stride, k > 0);
    }
  }
}

template <typename T, typename U>
void multiply(const simd::MatmulTile& tile) {
  using P = Packing<T, U>;
  using F = typename PanelUnit<U>::Sum;
  bool swapped = is_swapped<U>(tile);
  Scratch<T, U> sizes(tile.rows, tile.columns, tile.depth);
  U* packed_a = static_cast<U*>(tile.scratch);
  U* packed_b = packed_a + sizes.a;
  if constexpr (!staged<T, U>) {
    multiply_into<T>(tile, swapped, packed_a, packed_b, static_cast<F*>(tile.c), tile.c_stride);
  } else {
    F* c = reinterpret_cast<F*>(packed_b + sizes.b);
    multiply_into<T>(tile, swapped, packed_a, packed_b, c, swapped ? tile.rows : tile.columns);
    for (int64_t r = 0; r < tile.rows; ++r) {
      const F* from = c + r * P::parts * tile.columns;
      F line[column_block];
      if (swapped) {
        for (int64_t j = 0; j < tile.columns; ++j) line[j] = c[j * tile.rows + r];
        from = line;
      }
      if constexpr (P::parts == 1) {
        if (tile.sums != nullptr) {
          store_c(from, tile.columns, static_cast<F*>(tile.sums) + r * tile.c_stride);
          continue;
        }
      }
      store_c(from, tile.columns, static_cast<T*>(tile.c) + r * tile.c_stride);
    }
  }
}

// Calls f with the element and unit types of a dtype.
template <typename F>
auto with_packing(Dtype::Val dtype, const F& f) {
  switch (dtype) {
    case Dtype::Val::float16:
      return f(Float16{}, float{});
    case Dtype::Val::bfloat16:
#if defined(__AVX512F__)
      if (has_bfloat16_tiles()) return f(BFloat16{}, SquarePair{});
      if (has_bfloat16_dot()) return f(BFloat16{}, Pair{});
#endif
      return f(BFloat16{}, float{});
    case Dtype::Val::float64:
      return f(double{}, double{});
    case Dtype::Val::complex64:
      return f(Complex64{}, float{});
    default:
      return f(float{}, float{});
  }
}

void tile_product(Dtype::Val dtype, const simd::MatmulTile& tile) {
  with_packing(dtype,
               [&](auto element, auto unit) { multiply<decltype(element), decltype(unit)>(tile); });
}

size_t scratch_bytes(Dtype::Val dtype, int64_t rows, int64_t columns, int64_t depth) {
  return with_packing(dtype, [&](auto element, auto unit) {
    using U = decltype(unit);
    Scratch<decltype(element), U> sizes(rows, columns, depth);
    return static_cast<size_t>(sizes.a + sizes.b) * sizeof(U) +
           static_cast<size_t>(sizes.c) * sizeof(typename PanelUnit<U>::Sum);
  });
}

void matrix_vector(Dtype::Val dtype, const simd::MatrixVector& product) {
  switch (dtype) {
    case Dtype::Val::float16:
      return multiply_vector<Float16, float>(product);
    case Dtype::Val::bfloat16:
      return multiply_vector<BFloat16, float>(product, has_bfloat16_dot());
    case Dtype::Val::float64:
      return multiply_vector<double, double>(product);
    default:
      return multiply_vector<float, float>(product);
  }
}

void add_parts_of(Dtype::Val dtype, const void* parts, int64_t count, int64_t stride,
                  int64_t outputs, void* c) {
  switch (dtype) {
    case Dtype::Val::float16:
      return add_parts<Float16, float>(parts, count, stride, outputs, c);
    case Dtype::Val::bfloat16:
      return add_parts<BFloat16, float>(parts, count, stride, outputs, c);
    case Dtype::Val::float64:
      return add_parts<double, double>(parts, count, stride, outputs, c);
    default:
      return add_parts<float, float>(parts, count, stride, outputs, c);
  }
}

}  // namespace

extern const simd::MatmulKernels matmul_kernels;
const simd::MatmulKernels matmul_kernels{tile_product, scratch_bytes, matrix_vector, add_parts_of};

}  // namespace holdfast::kernels::cpu::HOLDFAST_SIMD_TARGET
