#include <algorithm>
#include <optional>

#include "kernels/metal/launch.h"
#include "kernels/metal/metal_backend.h"
#include "kernels/staging.h"

namespace holdfast::kernels::metal {
namespace {

// As in convolution.metal.
struct Convolution {
  uint64_t rows;
  uint32_t depth, split_depth, splits;
  uint32_t channels, group_channels, outputs, group_outputs;
  int32_t size[3], taps[3], stride[3], padding[3], dilation[3], input_dilation[3];
  bool flip, is_dilated, aligned;
};
struct ConvolutionCounts {
  Extent result[3], taps[3], channels;
};

// Kernels compute positions along an axis, padding and dilation included, in 32 bits.
bool fits_kernels(const ConvolutionShape& shape, int64_t depth) {
  constexpr int64_t most = most_small_elements;
  for (int d = 0; d < ConvolutionShape::dimensions; ++d) {
    // Each factor is below 2^31.
    if (shape.size[d] > most / shape.input_dilation[d] ||
        shape.kernel[d] > most / shape.dilation[d] || shape.result[d] > most / shape.stride[d])
      return false;
    if (shape.padding[d] > most || shape.padding[d] < -most ||
        shape.result[d] * shape.stride[d] + shape.kernel[d] * shape.dilation[d] +
                std::abs(shape.padding[d]) >
            most)
      return false;
  }
  return depth <= most;
}

ConvolutionCounts convolution_counts(const ConvolutionShape& shape) {
  ConvolutionCounts counts{};
  for (int d = 0; d < ConvolutionShape::dimensions; ++d) {
    counts.result[d] = extent_of(shape.result[d], 0);
    counts.taps[d] = extent_of(shape.kernel[d], 0);
  }
  counts.channels = extent_of(shape.channels / shape.groups, 0);
  return counts;
}

void encode_depthwise(Encoder& encoder, const Convolution& convolution,
                      const ConvolutionCounts& counts, const array& in, const array& weights,
                      array& out) {
  constexpr int64_t pixels_per_thread = 4;
  const int64_t per_block = 16 / static_cast<int64_t>(in.itemsize());
  const int64_t blocks = divide_up(int64_t{convolution.channels}, per_block);
  Launch(encoder, "convolution",
         std::string("convolution_depthwise_") + dtype_name(out.dtype().val()))
      .input(in)
      .input(weights)
      .output(out)
      .value(convolution)
      .value(counts)
      .value(extent_of(blocks, 0))
      .over(blocks * divide_up(static_cast<int64_t>(convolution.rows), pixels_per_thread));
}

constexpr int64_t convolution_columns = 64;
// Where there are fewer threadgroups, the depth is split, in parts of at least
// `fewest_convolution_steps` tiles.
constexpr int64_t convolution_threadgroups = 264, fewest_convolution_steps = 16;

void encode_tiles(Encoder& encoder, Convolution convolution, const ConvolutionCounts& counts,
                  int64_t groups, const array& in, const array& weights, array& out) {
  const int64_t tile_rows = out.itemsize() == 2 ? 128 : 64;
  const int64_t step = 64 / static_cast<int64_t>(out.itemsize());
  const int64_t row_tiles = divide_up(static_cast<int64_t>(convolution.rows), tile_rows);
  const int64_t column_tiles = divide_up(int64_t{convolution.group_outputs}, convolution_columns);
  const int64_t wanted =
      std::clamp(convolution_threadgroups / (groups * row_tiles * column_tiles), int64_t{1},
                 std::max(int64_t{1}, convolution.depth / (step * fewest_convolution_steps)));
  const int64_t split_depth = divide_up(divide_up(int64_t{convolution.depth}, wanted), step) * step;
  const int64_t splits = divide_up(int64_t{convolution.depth}, split_depth);
  convolution.split_depth = static_cast<uint32_t>(split_depth);
  convolution.splits = static_cast<uint32_t>(splits);
  const bool is_complex = out.dtype() == complex64;
  const uint64_t numbers = out.size() * (is_complex ? 2 : 1);
  std::optional<array> partial;
  if (splits > 1)
    partial = make_temporary(encoder, static_cast<size_t>(splits) * numbers * sizeof(float));
  Launch(encoder, "convolution", std::string("convolution_tiles_") + dtype_name(out.dtype().val()))
      .input(in)
      .input(weights)
      .output(out)
      .output(partial ? *partial : out)
      .value(convolution)
      .value(counts)
      .over({grid_length(encoder, row_tiles, 256), grid_length(encoder, column_tiles, 1),
             grid_length(encoder, groups * splits, 1)},
            {256});
  if (!partial) return;
  const char* dtype = dtype_name(is_complex ? Dtype::Val::float32 : out.dtype().val());
  Launch(encoder, "convolution", std::string("convolution_sum_") + dtype)
      .input(*partial)
      .output(out)
      .value(numbers)
      .value(convolution.splits)
      .over(static_cast<int64_t>(numbers));
}

}  // namespace

void MetalBackend::convolution(Encoder& encoder, const ConvolutionShape& shape, const array& in,
                               const array& weights, array& out) {
  const int64_t group_channels = shape.channels / shape.groups;
  const int64_t group_outputs = shape.outputs / shape.groups;
  const int64_t depth = shape.kernel[0] * shape.kernel[1] * shape.kernel[2] * group_channels;
  if (!fits_kernels(shape, depth)) throw exec::NoKernel();
  encoder.allocate(out);
  if (out.size() == 0) return;
  if (depth == 0 || in.size() == 0) {
    const uint64_t zero = 0;
    return encoder.fill(out, &zero);
  }
  const array dense = make_dense(encoder, in), dense_weights = make_dense(encoder, weights);
  const int64_t per_block = 16 / static_cast<int64_t>(out.itemsize());
  Convolution convolution{};
  convolution.rows =
      static_cast<uint64_t>(shape.batch * shape.result[0] * shape.result[1] * shape.result[2]);
  convolution.depth = static_cast<uint32_t>(depth);
  convolution.splits = 1;
  convolution.channels = static_cast<uint32_t>(shape.channels);
  convolution.group_channels = static_cast<uint32_t>(group_channels);
  convolution.outputs = static_cast<uint32_t>(shape.outputs);
  convolution.group_outputs = static_cast<uint32_t>(group_outputs);
  convolution.flip = shape.flip;
  for (int d = 0; d < ConvolutionShape::dimensions; ++d) {
    convolution.size[d] = static_cast<int32_t>(shape.size[d]);
    convolution.taps[d] = static_cast<int32_t>(shape.kernel[d]);
    convolution.stride[d] = static_cast<int32_t>(shape.stride[d]);
    convolution.padding[d] = static_cast<int32_t>(shape.padding[d]);
    convolution.dilation[d] = static_cast<int32_t>(shape.dilation[d]);
    convolution.input_dilation[d] = static_cast<int32_t>(shape.input_dilation[d]);
    convolution.is_dilated = convolution.is_dilated || shape.input_dilation[d] != 1;
  }
  const bool is_depthwise =
      shape.groups > 1 && group_channels == 1 && group_outputs == 1 && out.dtype() != complex64;
  const int64_t neighbours = is_depthwise ? shape.channels : group_channels;
  convolution.aligned = is_aligned(dense, 16) && neighbours % per_block == 0 &&
                        (is_depthwise || is_aligned(dense_weights, 16));
  const ConvolutionCounts counts = convolution_counts(shape);
  if (is_depthwise) {
    encode_depthwise(encoder, convolution, counts, dense, dense_weights, out);
  } else {
    encode_tiles(encoder, convolution, counts, shape.groups, dense, dense_weights, out);
  }
}

}  // namespace holdfast::kernels::metal
