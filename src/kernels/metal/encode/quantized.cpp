#include <algorithm>
#include <bit>
#include <optional>

#include "base/text.h"
#include "kernels/metal/launch.h"
#include "kernels/metal/metal_backend.h"
#include "kernels/metal/parts.h"
#include "kernels/staging.h"
#include "kernels/views.h"

namespace holdfast::kernels::metal {
namespace {

// As in support/quantized.h.
struct Format {
  uint32_t mode, bits, group_shift, scale_type;
};
// As in quantization.metal.
struct Quantization {
  Format format;
  uint64_t size;
};
// As in quantized_matmul.metal.
struct QuantizedSettings {
  Format format;
  uint32_t rows, columns, depth;
  uint32_t left_count, right_count;
  uint32_t selection;
  int32_t dimensions;
  uint32_t parts, part_depth;
  uint64_t out_rows;
  bool transposed, x_aligned, wide;
};
enum Selection : uint32_t { by_layout, by_index, grouped };
struct Grouping {
  uint32_t pairs, left_count, right_count, rows, tiles;
};
constexpr int64_t most_matrices = 2048;  // of group_pairs

uint32_t scale_type(const QuantizedFormat& format, const array& scales) {
  switch (format.mode) {
    case QuantizationMode::affine:
      return scales.dtype() == float32 ? 0 : scales.dtype() == float16 ? 1 : 2;
    case QuantizationMode::nvfp4:
      return 4;
    default:
      return 3;
  }
}

Format kernel_format(const QuantizedFormat& format, const array& scales) {
  return {static_cast<uint32_t>(format.mode), static_cast<uint32_t>(format.bits),
          fit(std::countr_zero(static_cast<unsigned>(format.group_size))),
          scale_type(format, scales)};
}

// Row-contiguous, from a multiple of 16 bytes on.
array make_aligned(Encoder& encoder, const array& in) {
  if (in.flags().row_contiguous && is_aligned(in, 16)) return in;
  array dense(in.shape(), in.dtype(), nullptr, {});
  encode_copy(encoder, in, dense);
  return dense;
}

std::vector<array> all_aligned(Encoder& encoder, const std::vector<array>& inputs) {
  std::vector<array> result;
  for (const array& input : inputs) result.push_back(make_aligned(encoder, input));
  return result;
}

}  // namespace

void MetalBackend::quantize(Encoder& encoder, const QuantizedFormat& format,
                            const std::vector<array>& inputs, std::vector<array>& outputs) {
  for (array& out : outputs) encoder.allocate(out);
  if (outputs[0].size() == 0) return;
  const array w = make_aligned(encoder, inputs[0]);
  const Quantization settings{kernel_format(format, outputs[1]), w.size()};
  const uint32_t has_global = inputs.size() > 1 ? 1 : 0;
  Launch(encoder, "quantization", entry_of("quantize", w))
      .with(w, inputs.back(), output(outputs[0]), output(outputs[1]), output(outputs.back()),
            settings, has_global)
      .over(static_cast<int64_t>(w.size() / 8));
}

void MetalBackend::dequantize(Encoder& encoder, const QuantizedFormat& format,
                              const std::vector<array>& inputs, array& out) {
  encoder.allocate(out);
  if (out.size() == 0) return;
  const std::vector<array> dense = all_aligned(encoder, inputs);
  const Quantization settings{kernel_format(format, dense[1]), out.size()};
  Launch(encoder, "quantization", entry_of("dequantize", out))
      .with(dense[0], dense[1], dense.back(), output(out), settings)
      .over(static_cast<int64_t>(out.size() / 8));
}

void MetalBackend::convert_fp8(Encoder& encoder, const array& in, array& out) {
  constexpr int64_t per_thread = 16;
  encoder.allocate(out);
  if (out.size() == 0) return;
  const array dense = make_dense(encoder, in);
  Launch(encoder, "quantization", out.dtype() == uint8 ? "to_fp8" : "from_fp8")
      .with(dense, output(out), uint64_t{out.size()}, is_aligned(dense, 16))
      .over(divide_up(static_cast<int64_t>(out.size()), per_thread));
}

namespace {

// The matrices of `a` by their numbers, for each of the broadcast batch.
Extents matrix_extents(const array& a, const array& out) {
  const Shape batch(a.shape().begin(), a.shape().end() - 2);
  const Shape target(out.shape().begin(), out.shape().end() - 2);
  const Strides strides = broadcast_strides(batch, row_major_strides(batch), target);
  Extents result;
  for (size_t i = 0; i < target.size(); ++i) {
    if (target[i] > 1) result.push_back(extent_of(target[i], strides[i]));
  }
  return result;
}

int64_t matrices_of(const array& a) {
  return static_cast<int64_t>(a.size()) / std::max<int64_t>(1, int64_t{a.shape(-2)} * a.shape(-1));
}

// One call of quantized_matmul.
class QuantizedCall {
 public:
  QuantizedCall(Encoder& encoder, const QuantizedProduct& product, const std::vector<array>& inputs,
                array& out)
      : encoder_(encoder),
        inputs_(all_aligned(encoder, inputs)),
        out_(out),
        rows_(out.shape(-2)),
        columns_(out.shape(-1)),
        depth_(inputs[0].shape(-1)),
        batch_(static_cast<int64_t>(out.size()) / (rows_ * columns_)),
        left_count_(matrices_of(inputs[0])),
        right_count_(matrices_of(inputs[1])),
        transposed_(product.transposed),
        format_(kernel_format(product.format, inputs_[2])) {
    if (product.gathers) {
      selection_ = by_index;
      // Weights that several rows of x meet are read once for all of them.
      if (rows_ == 1 && batch_ >= 8 && 2 * batch_ >= right_count_ && right_count_ <= most_matrices)
        selection_ = grouped;
    } else if (right_count_ == 1 && left_count_ == batch_) {
      rows_ *= batch_;
      batch_ = left_count_ = 1;
    } else {
      left_batch_ = matrix_extents(inputs[0], out);
      right_batch_ = matrix_extents(inputs[1], out);
    }
  }

  void encode() {
    constexpr int64_t few_rows = 8;
    const int64_t rows_met =  // by a matrix, about
        selection_ == grouped ? divide_up(batch_, right_count_) : rows_;
    const bool is_half = out_.dtype() != float32;
    if (is_half && transposed_ && rows_met <= few_rows && depth_ % 32 == 0) {
      encode_few();
    } else {
      encode_tiles(rows_met, !is_half);
    }
  }

 private:
  // As in quantized_few.
  void encode_few() {
    constexpr int64_t side = 32, chunk = 128;
    const int64_t group_size = int64_t{1} << format_.group_shift;
    const int64_t rows = group_size >= 128 ? 8 : group_size == 64 ? 4 : 2;
    const int64_t tiles = group(rows), products = selection_ == grouped ? 1 : batch_;
    const int64_t columns = divide_up(columns_, side);
    const int64_t simdgroups = std::min<int64_t>(
        columns * tiles * products < 2 * busy_threadgroups ? 16 : 8, divide_up(depth_, chunk));
    QuantizedSettings settings = this->settings();
    settings.parts = fit(simdgroups);
    static constexpr const char* modes[] = {"affine", "mxfp4", "mxfp8", "nvfp4"};
    std::string name = std::string("quantized_few_") + modes[format_.mode];
    if (format_.mode == 0) name += std::to_string(format_.bits);
    const auto threads = static_cast<uint32_t>(simdgroups * 32);
    launch(entry_of(name, out_), settings, out_,
           {grid_length(encoder_, columns, threads), grid_length(encoder_, tiles, 1),
            grid_length(encoder_, products, 1)},
           {threads});
  }

  void encode_tiles(int64_t rows_met, bool is_float) {
    const int64_t tile = is_float ? 64 : rows_met > 32 ? 128 : 32;
    const int64_t side = is_float ? 64 : 128;
    const int64_t tiles = group(tile), products = selection_ == grouped ? 1 : batch_;
    const int64_t column_tiles = divide_up(columns_, side);
    const DepthCut cut(depth_, column_tiles * tiles * products, 32);
    QuantizedSettings settings = this->settings();
    settings.parts = fit(cut.parts);
    settings.part_depth = fit(cut.part);
    settings.wide = cut.parts > 1;
    std::string name = "quantized_any";
    if (!is_float) name = "quantized_tiles_" + std::to_string(tile) + (transposed_ ? "_t" : "_n");
    encode_in_parts(encoder_, cut.parts, 1, out_, [&](array& target) {
      launch(entry_of(name, out_), settings, target,
             {grid_length(encoder_, column_tiles * cut.parts, 256), grid_length(encoder_, tiles, 1),
              grid_length(encoder_, products, 1)},
             {256});
    });
  }

  QuantizedSettings settings() const {
    return {format_,
            fit(rows_),
            fit(columns_),
            fit(depth_),
            fit(left_count_),
            fit(right_count_),
            fit(selection_),
            fit(left_batch_.size()),
            1,
            fit(depth_),
            fit(rows_ * batch_),
            transposed_,
            depth_ * static_cast<int64_t>(out_.itemsize()) % 16 == 0,
            false};
  }

  // Tiles of so many rows, for each product or, of pairs that are grouped, for all of them.
  int64_t group(int64_t rows) {
    if (selection_ != grouped) return divide_up(rows_, rows);
    const int64_t tiles = std::min(batch_, batch_ / rows + std::min(batch_, right_count_));
    tiles_ = make_temporary(encoder_, static_cast<size_t>(tiles) * 16);
    pairs_ = make_temporary(encoder_, static_cast<size_t>(batch_) * 8);
    const Grouping grouping{fit(batch_), fit(left_count_), fit(right_count_), fit(rows),
                            fit(tiles)};
    Launch(encoder_, "quantized_matmul", "group_pairs")
        .with(lefts(), rights(), output(*tiles_), output(*pairs_), grouping)
        .errors({text("[gather_qmm] expected lhs_indices below ", left_count_, ", got {}"),
                 text("[gather_qmm] expected rhs_indices below ", right_count_, ", got {}")})
        .over(1024, 1024);
    return tiles;
  }

  void launch(const std::string& entry, const QuantizedSettings& settings, array& target,
              Encoder::Grid grid, Encoder::Grid threadgroup) {
    // Arguments that the selection does not use are any array.
    Launch(encoder_, "quantized_matmul", entry)
        .with(inputs_[0], inputs_[1], inputs_[2], inputs_[std::min<size_t>(3, inputs_.size() - 1)],
              output(target), settings, left_batch_, right_batch_, lefts(), rights(),
              tiles_ ? *tiles_ : inputs_[0], pairs_ ? *pairs_ : inputs_[0])
        .errors({text("[gather_qmm] expected lhs_indices below ", left_count_, ", got {}"),
                 text("[gather_qmm] expected rhs_indices below ", right_count_, ", got {}")})
        .over(grid, threadgroup);
  }

  const array& lefts() const { return inputs_[inputs_.size() - 2]; }
  const array& rights() const { return inputs_[inputs_.size() - 1]; }

  Encoder& encoder_;
  std::vector<array> inputs_;
  array& out_;
  int64_t rows_, columns_, depth_, batch_, left_count_, right_count_;
  bool transposed_;
  Format format_;
  Selection selection_ = by_layout;
  Extents left_batch_, right_batch_;
  std::optional<array> tiles_, pairs_;
};

}  // namespace

void MetalBackend::quantized_matmul(Encoder& encoder, const QuantizedProduct& product,
                                    const std::vector<array>& inputs, array& out) {
  encoder.allocate(out);
  if (out.size() == 0) return;
  if (inputs[0].shape(-1) == 0) {
    const uint64_t zero = 0;
    encoder.fill(out, &zero);
    return;
  }
  QuantizedCall(encoder, product, inputs, out).encode();
}

}  // namespace holdfast::kernels::metal
