// Convolution as a matrix product whose left operand, the patches of the input, is made in blocks
// when the product packs it; or, where each channel stands alone, as a sum over the kernel's taps.
#pragma once

#include <cstddef>
#include <cstdint>

#include <holdfast/dtype.h>

#include "kernels/plan/convolution.h"

namespace holdfast::kernels::cpu {

// Input, weights and output are dense.
class ConvolutionPlan {
 public:
  // dtype: as of matrix products.
  ConvolutionPlan(Dtype::Val dtype, const ConvolutionShape& shape);

  int64_t tasks() const { return tasks_; }
  size_t task_scratch_bytes() const { return scratch_bytes_; }
  void run(int64_t task, const void* input, const void* weights, void* output,
           void* task_scratch) const noexcept;

 private:
  // The pixel of the input under a tap of the kernel at a pixel of the output; -1 outside.
  int64_t pixel_under(int64_t row, int64_t tap) const;
  void run_depthwise(int64_t task, const char* input, const char* weights, char* output,
                     char* scratch) const;
  // Steps [k, k + depth) of the patches of rows [first, first + rows), into rows that are
  // patch_stride_ apart.
  void make_patches(const char* input, int64_t group, int64_t first, int64_t rows, int64_t k,
                    int64_t depth, char* to) const;

  Dtype::Val dtype_;
  int64_t item_;
  ConvolutionShape shape_;
  int64_t group_channels_, group_outputs_, positions_, depth_;
  int64_t tile_rows_ = 0, tile_columns_ = 0, row_tiles_ = 0, column_tiles_ = 0;
  int64_t tasks_ = 0;
  // As many groups as channels and outputs: each channel by itself, without a product.
  bool depthwise_ = false;
  int64_t patch_stride_ = 0;
  size_t patch_bytes_ = 0, scratch_bytes_ = 0;
};

}  // namespace holdfast::kernels::cpu
