// The matrix product kernels that exist once per instruction set.
#pragma once

#include <cstddef>
#include <cstdint>

#include <holdfast/dtype.h>

namespace holdfast::kernels::cpu::simd {

// c[i, j] = sum over k of a[i, k] * b[k, j]. Strides count elements and may be anything; c is
// written row by row, its rows `c_stride` apart. An element's sum runs in one fixed order, which
// depends on `depth` alone, not on how C is cut. bfloat16 is multiplied in pairs where the
// processor does that (multiply_pair_panels), else as float32.
struct MatmulTile {
  int64_t rows, columns, depth;
  const void* a;
  int64_t a_row_stride, a_column_stride;
  const void* b;
  int64_t b_row_stride, b_column_stride;
  void* c;
  int64_t c_stride;
  void* scratch;  // scratch_bytes(), aligned to 64
  // Half types only: in place of `c`, which is null, sums in float, which are not rounded.
  void* sums = nullptr;

  // An operand that has to be made first (a convolution's patches, quantised weights): instead of
  // `a` or `b`, functions that give the block of a range of depth (and columns). The tile's strides
  // describe the block. Depths start at multiples of matmul_depth_block.
  void* context = nullptr;
  const void* (*a_block)(void* context, int64_t k, int64_t depth) = nullptr;
  const void* (*b_block)(void* context, int64_t k, int64_t depth, int64_t column,
                         int64_t columns) = nullptr;
};

// Blocks have at most twice this depth, and at most 256 columns.
inline constexpr int64_t matmul_depth_block = 384;
inline constexpr int64_t matmul_largest_depth = 2 * matmul_depth_block;
inline constexpr int64_t matmul_largest_columns = 256;

// c[i] = sum over k of matrix[i, k] * vector[k], where the matrix is contiguous along one of its
// dimensions.
struct MatrixVector {
  int64_t outputs, depth;
  const void* matrix;
  int64_t output_stride, depth_stride;  // one of them is 1
  const void* vector;
  int64_t vector_stride;
  void* c;
  // In place of `c`, which is null: sums in the type that is computed in, float or double. They are
  // those of a part of the depth, or of half types that are not rounded yet.
  void* sums = nullptr;
};
// The most outputs that are summed side by side: so long a stretch of a row is read at a time.
inline constexpr int64_t vector_outputs = 2048;

struct MatmulKernels {
  void (*tile)(Dtype::Val dtype, const MatmulTile& tile);
  size_t (*scratch_bytes)(Dtype::Val dtype, int64_t rows, int64_t columns, int64_t depth);
  void (*matrix_vector)(Dtype::Val dtype, const MatrixVector& product);  // not complex64
  // c[i] = the sum over p < count of the sums parts[p * stride + i], in order.
  void (*add_parts)(Dtype::Val dtype, const void* parts, int64_t count, int64_t stride,
                    int64_t outputs, void* c);
};

// Of the instruction set in use.
const MatmulKernels& matmul_kernels();

}  // namespace holdfast::kernels::cpu::simd
