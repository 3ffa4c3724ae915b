// Products of bfloat16 by the processor's tile registers (AMX): a tile has 16 rows of 64 bytes, and
// one instruction multiplies 16 rows of A, 16 pairs deep, with 16 columns of B. So A is packed in
// squares of 16 x 16 pairs; B's panels are those of matmul_panels.h, their depth filled up to whole
// squares with zeros.
#pragma once

#if defined(__AVX512F__)
#include <immintrin.h>

#include "kernels/cpu/simd/matmul_panels.h"

#define HOLDFAST_TILES __attribute__((target("amx-tile,amx-bf16")))

namespace holdfast::kernels::cpu::HOLDFAST_SIMD_TARGET {

inline constexpr int64_t square = 16;
inline constexpr int64_t square_units = square * square;

// Where the squares of A are: the first one, and how many bytes it is to the next row, to the next
// square of the same rows and to the square of the next 16 rows.
struct Squares {
  const char* at;
  int64_t row, right, down;
};

// A square: [16 rows, 16 pairs], zero where there is no element.
inline void pack_square(const BFloat16* from, int64_t row_stride, int64_t column_stride,
                        int64_t rows, int64_t depth, SquarePair* to) {
  using V = UnitVector<Pair>::type;
  auto some_words = [](const BFloat16* words, int64_t count) {
    return _mm512_maskz_loadu_epi16(static_cast<__mmask32>((uint64_t{1} << count) - 1), words);
  };
  V line[square] = {};
  if (column_stride == 1) {
    for (int64_t i = 0; i < rows; ++i) line[i] = (V)some_words(from + i * row_stride, depth);
  } else if (row_stride == 1) {
    for (int64_t k = 0; k < depth; ++k) {
      __m512i words = _mm512_maskz_cvtepu16_epi32(
          0xffff, _mm512_castsi512_si256(some_words(from + k * column_stride, rows)));
      line[k / 2] |= (V)words << (k % 2 * 16);
    }
    transpose_units<square>(line);
  } else {
    for (int64_t i = 0; i < rows; ++i) {
      BFloat16 words[2 * square] = {};
      for (int64_t k = 0; k < depth; ++k) words[k] = from[i * row_stride + k * column_stride];
      line[i] = load_vector<V>(words);
    }
  }
  for (int64_t i = 0; i < square; ++i) store_vector(to + i * square, line[i]);
}

// Squares that lie in A as they should are used there.
inline Squares pack_squares(const BFloat16* a, int64_t row_stride, int64_t column_stride,
                            int64_t rows, int64_t depth, SquarePair* to) {
  constexpr int64_t item = sizeof(BFloat16), unit = sizeof(SquarePair);
  if (column_stride == 1 && rows % square == 0 && depth % (2 * square) == 0) {
    return {reinterpret_cast<const char*>(a), row_stride * item, square * unit,
            square * row_stride * item};
  }
  const auto* at = reinterpret_cast<const char*>(to);
  for (int64_t r = 0; r < rows; r += square) {
    for (int64_t k = 0; k < depth; k += 2 * square, to += square_units) {
      pack_square(a + r * row_stride + k * column_stride, row_stride, column_stride,
                  smaller_of(square, rows - r), smaller_of(2 * square, depth - k), to);
    }
  }
  return {at, square * unit, square_units * unit,
          round_up(depth, 2 * square) / (2 * square) * square_units * unit};
}

// What all tiles look like.
struct alignas(64) TileShapes {
  uint8_t palette = 1, first_row = 0, reserved[14] = {};
  uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

// C[16 or 32 rows, 32 columns] = or += squares of A times a panel of B. The sums go on from what C
// holds: their order is that of the depth.
template <bool two>
HOLDFAST_TILES __attribute__((noinline)) void multiply_squares(int64_t units, Squares a,
                                                               const SquarePair* b, float* c,
                                                               int64_t c_stride, bool accumulate) {
  constexpr int64_t b_row = 2 * square * sizeof(SquarePair);
  int64_t c_row = c_stride * static_cast<int64_t>(sizeof(float));
  float* c_below = c + square * c_stride;
  __asm__ volatile("" ::: "memory");  // the compiler's own loads of tiles do not say what they read
  _tile_zero(0);
  _tile_zero(1);
  if (two) _tile_zero(2);
  if (two) _tile_zero(3);
  if (accumulate) {
    _tile_loadd(0, c, c_row);
    _tile_loadd(1, c + square, c_row);
    if (two) _tile_loadd(2, c_below, c_row);
    if (two) _tile_loadd(3, c_below + square, c_row);
  }
  for (int64_t k = 0; k < units; k += square, a.at += a.right, b += 2 * square_units) {
    _tile_loadd(4, a.at, a.row);
    _tile_loadd(6, b, b_row);
    _tile_loadd(7, b + square, b_row);
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    if (two) {
      _tile_loadd(5, a.at + a.down, a.row);
      _tile_dpbf16ps(2, 5, 6);
      _tile_dpbf16ps(3, 5, 7);
    }
  }
  _tile_stored(0, c, c_row);
  _tile_stored(1, c + square, c_row);
  if (two) _tile_stored(2, c_below, c_row);
  if (two) _tile_stored(3, c_below + square, c_row);
}

// As multiply_block of matmul_panels.h.
template <typename U>
HOLDFAST_TILES void multiply_block(int64_t rows, int64_t, int64_t columns, int64_t units, Squares a,
                                   const U* packed_b, float* c, int64_t c_stride, bool accumulate) {
  constexpr int64_t width = 2 * square;
  static constexpr TileShapes shapes;
  _tile_loadconfig(&shapes);
  for (int64_t r = 0; r < rows; r += 2 * square, a.at += 2 * a.down) {
    auto* kernel = rows - r > square ? multiply_squares<true> : multiply_squares<false>;
    int64_t height = smaller_of(2 * square, rows - r);
    for (int64_t j = 0; j < columns; j += width) {
      float* to = c + r * c_stride + j;
      if (height % square == 0 && columns - j >= width) {
        kernel(units, a, packed_b + j * units, to, c_stride, accumulate);
        continue;
      }
      float edge[2 * square * width];
      auto bytes = static_cast<size_t>(smaller_of(width, columns - j)) * sizeof(float);
      for (int64_t i = 0; accumulate && i < height; ++i) {
        std::memcpy(edge + i * width, to + i * c_stride, bytes);
      }
      kernel(units, a, packed_b + j * units, edge, width, accumulate);
      for (int64_t i = 0; i < height; ++i) std::memcpy(to + i * c_stride, edge + i * width, bytes);
    }
  }
  _tile_release();
}

}  // namespace holdfast::kernels::cpu::HOLDFAST_SIMD_TARGET
#endif
