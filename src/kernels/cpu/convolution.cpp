#include "kernels/cpu/convolution.h"

#include <algorithm>
#include <cstring>

#include "kernels/cpu/simd/convolution_kernels.h"
#include "kernels/cpu/simd/matmul_kernels.h"
#include "kernels/cpu/simd/target_table.h"
#include "kernels/plan/layout.h"

HOLDFAST_SIMD_TABLE(ConvolutionKernels, convolution_kernels)

namespace holdfast::kernels::cpu {
namespace {

constexpr int64_t largest_convolution_rows = 168;
constexpr int64_t largest_convolution_columns = 512;
constexpr int64_t depthwise_work = int64_t{1} << 16;  // multiplications worth a task

}  // namespace

ConvolutionPlan::ConvolutionPlan(Dtype::Val dtype, const ConvolutionShape& shape)
    : dtype_(dtype),
      item_(static_cast<int64_t>(item_size(dtype))),
      shape_(shape),
      group_channels_(shape.channels / shape.groups),
      group_outputs_(shape.outputs / shape.groups),
      positions_(shape.result[0] * shape.result[1] * shape.result[2]),
      depth_(shape.kernel[0] * shape.kernel[1] * shape.kernel[2] * group_channels_) {
  int64_t rows = shape.batch * positions_;
  if (rows == 0 || group_outputs_ == 0) return;
  depthwise_ = shape.groups > 1 && group_channels_ == 1 && group_outputs_ == 1 && depth_ > 0 &&
               dtype != Dtype::Val::complex64;
  if (depthwise_) {
    tile_rows_ = std::clamp<int64_t>(depthwise_work / (depth_ * shape.channels), 1, rows);
    tasks_ = divide_up(rows, tile_rows_);
    patch_bytes_ = static_cast<size_t>(divide_up(depth_, 8) * 8) * sizeof(void*);
    scratch_bytes_ = patch_bytes_ + static_cast<size_t>(depth_ * shape.channels) * sizeof(double);
    return;
  }
  tile_rows_ = std::min(rows, largest_convolution_rows);
  // Enough tasks for many cores where the work is worth it.
  while (divide_up(rows, tile_rows_) * shape.groups < 32 && tile_rows_ > 42) tile_rows_ /= 2;
  tile_columns_ = std::min(group_outputs_, largest_convolution_columns);
  row_tiles_ = divide_up(rows, tile_rows_);
  column_tiles_ = divide_up(group_outputs_, tile_columns_);
  tasks_ = shape.groups * row_tiles_ * column_tiles_;
  if (depth_ == 0) return;
  patch_stride_ = std::min(depth_, simd::matmul_largest_depth);
  patch_bytes_ = static_cast<size_t>(divide_up(tile_rows_ * patch_stride_ * item_, 64) * 64);
  scratch_bytes_ =
      patch_bytes_ + simd::matmul_kernels().scratch_bytes(dtype, tile_rows_, tile_columns_, depth_);
}

int64_t ConvolutionPlan::pixel_under(int64_t row, int64_t tap) const {
  const ConvolutionShape& s = shape_;
  int64_t position[3] = {row % positions_ / (s.result[1] * s.result[2]),
                         row / s.result[2] % s.result[1], row % s.result[2]};
  int64_t offset[3] = {tap / (s.kernel[1] * s.kernel[2]), tap / s.kernel[2] % s.kernel[1],
                       tap % s.kernel[2]};
  int64_t pixel = row / positions_;
  for (int d = 0; d < 3; ++d) {
    int64_t turned = s.flip ? s.kernel[d] - 1 - offset[d] : offset[d];
    int64_t place = position[d] * s.stride[d] - s.padding[d] + turned * s.dilation[d];
    int64_t source = place / s.input_dilation[d];
    if (place < 0 || place % s.input_dilation[d] != 0 || source >= s.size[d]) return -1;
    pixel = pixel * s.size[d] + source;
  }
  return pixel;
}

void ConvolutionPlan::make_patches(const char* input, int64_t group, int64_t first, int64_t rows,
                                   int64_t k, int64_t depth, char* to) const {
  int64_t pixel_bytes = shape_.channels * item_;
  for (int64_t r = 0; r < rows; ++r) {
    char* at = to + r * patch_stride_ * item_;
    for (int64_t step = k; step < k + depth;) {
      int64_t channel = step % group_channels_;
      int64_t count = std::min(group_channels_ - channel, k + depth - step);
      int64_t pixel = pixel_under(first + r, step / group_channels_);
      auto bytes = static_cast<size_t>(count * item_);
      if (pixel >= 0) {
        int64_t from = pixel * pixel_bytes + (group * group_channels_ + channel) * item_;
        std::memcpy(at, input + from, bytes);
      } else {
        std::memset(at, 0, bytes);
      }
      at += bytes;
      step += count;
    }
  }
}

void ConvolutionPlan::run_depthwise(int64_t task, const char* input, const char* weights,
                                    char* output, char* scratch) const {
  const simd::ConvolutionKernels& kernels = simd::convolution_kernels();
  auto** taps = reinterpret_cast<const void**>(scratch);
  void* ordered = scratch + patch_bytes_;
  kernels.order_weights(dtype_, weights, shape_.channels, depth_, ordered);
  int64_t pixel_bytes = shape_.channels * item_;
  int64_t first = task * tile_rows_;
  int64_t last = std::min(first + tile_rows_, shape_.batch * positions_);
  for (int64_t row = first; row < last; ++row) {
    for (int64_t tap = 0; tap < depth_; ++tap) {
      int64_t pixel = pixel_under(row, tap);
      taps[tap] = pixel >= 0 ? input + pixel * pixel_bytes : nullptr;
    }
    kernels.depthwise(dtype_, {taps, depth_, ordered, shape_.channels, output + row * pixel_bytes});
  }
}

void ConvolutionPlan::run(int64_t task, const void* input, const void* weights, void* output,
                          void* task_scratch) const noexcept {
  struct Patches {
    const ConvolutionPlan& plan;
    const char* input;
    int64_t group, first;
    int64_t rows;
    char* memory;

    static const void* block(void* context, int64_t k, int64_t depth) {
      auto& patches = *static_cast<Patches*>(context);
      patches.plan.make_patches(patches.input, patches.group, patches.first, patches.rows, k, depth,
                                patches.memory);
      return patches.memory;
    }
  };
  if (depthwise_) {
    run_depthwise(task, static_cast<const char*>(input), static_cast<const char*>(weights),
                  static_cast<char*>(output), static_cast<char*>(task_scratch));
    return;
  }
  int64_t column = task % column_tiles_ * tile_columns_;
  int64_t first = task / column_tiles_ % row_tiles_ * tile_rows_;
  int64_t group = task / column_tiles_ / row_tiles_;
  int64_t rows = std::min(tile_rows_, shape_.batch * positions_ - first);
  int64_t columns = std::min(tile_columns_, group_outputs_ - column);
  int64_t output_column = group * group_outputs_ + column;
  char* to = static_cast<char*>(output) + (first * shape_.outputs + output_column) * item_;
  if (depth_ == 0) {
    for (int64_t r = 0; r < rows; ++r) {
      std::memset(to + r * shape_.outputs * item_, 0, static_cast<size_t>(columns * item_));
    }
    return;
  }
  auto* scratch = static_cast<char*>(task_scratch);
  Patches patches{*this, static_cast<const char*>(input), group, first, rows, scratch};
  simd::MatmulTile tile{rows,
                        columns,
                        depth_,
                        nullptr,
                        patch_stride_,
                        1,
                        static_cast<const char*>(weights) + output_column * depth_ * item_,
                        1,
                        depth_,
                        to,
                        shape_.outputs,
                        scratch + patch_bytes_};
  tile.context = &patches;
  tile.a_block = Patches::block;
  simd::matmul_kernels().tile(dtype_, tile);
}

}  // namespace holdfast::kernels::cpu
