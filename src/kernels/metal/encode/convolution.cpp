#include <algorithm>

#include "kernels/metal/launch.h"
#include "kernels/metal/metal_backend.h"
#include "kernels/metal/parts.h"
#include "kernels/staging.h"

namespace holdfast::kernels::metal {
namespace {

#include "kernels/metal/support/convolution_parameters.h"

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
  Launch(encoder, "convolution", entry_of("convolution_depthwise", out))
      .with(in, weights, output(out), convolution, counts, extent_of(blocks, 0))
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
  convolution.split_depth = fit(split_depth);
  convolution.splits = fit(splits);
  encode_in_parts(encoder, splits, 1, out, [&](array& target) {
    Launch(encoder, "convolution", entry_of("convolution_tiles", out))
        .with(in, weights, output(target), convolution, counts)
        .over({grid_length(encoder, row_tiles, 256), grid_length(encoder, column_tiles, 1),
               grid_length(encoder, groups * splits, 1)},
              {256});
  });
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
  convolution.depth = fit(depth);
  convolution.splits = 1;
  convolution.channels = fit(shape.channels);
  convolution.group_channels = fit(group_channels);
  convolution.outputs = fit(shape.outputs);
  convolution.group_outputs = fit(group_outputs);
  convolution.flip = shape.flip;
  for (int d = 0; d < ConvolutionShape::dimensions; ++d) {
    convolution.size[d] = fit(shape.size[d]);
    convolution.taps[d] = fit(shape.kernel[d]);
    convolution.stride[d] = fit(shape.stride[d]);
    convolution.padding[d] = fit(shape.padding[d]);
    convolution.dilation[d] = fit(shape.dilation[d]);
    convolution.input_dilation[d] = fit(shape.input_dilation[d]);
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
