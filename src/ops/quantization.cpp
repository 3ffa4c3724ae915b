// Low-bit weights: quantize and dequantize.
#include <optional>

#include "ops/quantized.h"
#include "ops/support.h"

namespace holdfast {

using namespace quantized;

namespace {

// --- quantize ---

// Inputs: the weights, and the global scale where there is one. Outputs: codes, scales, biases.
class Quantize final : public Recorded<Quantize, Op> {
 public:
  Quantize(Stream stream, const QuantizedFormat& format) : Recorded(stream), format_(format) {}
  void encode(Encoder& encoder, const std::vector<array>& inputs,
              std::vector<array>& outputs) override;
  std::vector<array> vjp_rule(const std::vector<array>& primals,
                              const std::vector<array>& cotangents, const std::vector<int>& argnums,
                              const std::vector<array>& outputs) override;
  std::pair<std::vector<array>, std::vector<int>> vmap_rule(const std::vector<array>& inputs,
                                                            const std::vector<int>& axes) override;
  const char* name() const override { return "Quantize"; }
  auto members() const { return members_of(format_); }

 private:
  QuantizedFormat format_;
};

void Quantize::encode(Encoder& encoder, const std::vector<array>& inputs,
                      std::vector<array>& outputs) {
  kernels::backend_of(encoder).quantize(encoder, format_, inputs, outputs);
}

// Only the affine mode has scales and biases that are numbers. The bias is the weight e of the
// group that is furthest from zero, and the scale is e / round(e / scale); where several weights
// are e, they share. Groups of (almost) zeros have a constant scale.
std::vector<array> Quantize::vjp_rule(const std::vector<array>& primals,
                                      const std::vector<array>& cotangents, const std::vector<int>&,
                                      const std::vector<array>& outputs) {
  Stream s = stream();
  const array &w = primals[0], &scales = outputs[1], &biases = outputs[2];
  array zero(0, w.dtype());
  array is_zero = equal(biases, zero, s);
  array divisor = astype(where(is_zero, array(1, w.dtype()), scales, s), float32, s);
  array step = round(divide(astype(biases, float32, s), divisor, s), s);
  array factor = where(is_zero, zero, astype(reciprocal(step, s), w.dtype(), s), s);
  array of_edge =
      where(is_zero, zero, add(multiply(cotangents[1], factor, s), cotangents[2], s), s);
  array groups = unflatten(w, -1, {-1, format_.group_size}, s);
  array is_edge = astype(equal(groups, expand_dims(biases, -1, s), s), w.dtype(), s);
  array share = divide(is_edge, maximum(sum(is_edge, -1, true, s), array(1, w.dtype()), s), s);
  // Steps of a staircase: what decides where the edge is has no derivative.
  array whole = multiply(expand_dims(of_edge, -1, s), stop_gradient(share, s), s);
  return {flatten(whole, -2, -1, s)};
}

// Groups run along the last axis: more weights are more of the same.
std::pair<std::vector<array>, std::vector<int>> Quantize::vmap_rule(
    const std::vector<array>& inputs, const std::vector<int>& axes) {
  if (inputs.size() > 1 && axes[1] >= 0) return {};
  array w = moveaxis(inputs[0], axes[0], 0, stream());
  std::optional<array> global_scale;
  if (inputs.size() > 1) global_scale = inputs[1];
  std::vector<array> parts = quantize(w, format_.group_size, format_.bits, mode_name(format_.mode),
                                      global_scale, stream());
  std::vector<int> fronts(parts.size(), 0);
  return {std::move(parts), std::move(fronts)};
}

// --- dequantize ---

// Inputs: codes, scales, biases (affine). The global scale is multiplied by the caller.
class Dequantize final : public Recorded<Dequantize, Op> {
 public:
  Dequantize(Stream stream, const QuantizedFormat& format) : Recorded(stream), format_(format) {}
  void encode(Encoder& encoder, const std::vector<array>& inputs,
              std::vector<array>& outputs) override;
  std::vector<array> vjp_rule(const std::vector<array>& primals,
                              const std::vector<array>& cotangents, const std::vector<int>& argnums,
                              const std::vector<array>& outputs) override;
  std::shared_ptr<Primitive> with_leading_axis() override {
    return std::make_shared<Dequantize>(stream(), format_);
  }
  const char* name() const override { return "Dequantize"; }
  auto members() const { return members_of(format_); }

 private:
  QuantizedFormat format_;
};

void Dequantize::encode(Encoder& encoder, const std::vector<array>& inputs,
                        std::vector<array>& outputs) {
  kernels::backend_of(encoder).dequantize(encoder, format_, inputs, outputs[0]);
}

std::vector<array> Dequantize::vjp_rule(const std::vector<array>& primals,
                                        const std::vector<array>& cotangents,
                                        const std::vector<int>& argnums,
                                        const std::vector<array>&) {
  GroupCotangents groups{format_, primals[0], primals[1], cotangents[0], stream()};
  std::vector<array> result;
  for (int argnum : argnums) {
    result.push_back(argnum == 1 ? groups.of_scales() : groups.of_biases());
  }
  return result;
}

}  // namespace

namespace quantized {

// By groups, in the dtype of the scales.
static array summed(const GroupCotangents& of, const array& a) {
  array groups = unflatten(a, -1, {-1, of.format.group_size}, of.s);
  return astype(sum(groups, -1, false, of.s), of.scales.dtype(), of.s);
}

array GroupCotangents::of_scales() const {
  std::vector<array> unit{codes, ones_like(scales, s), zeros_like(scales, s)};
  array numbers = make_node<Dequantize>(cotangent.shape(), cotangent.dtype(), unit, s, format);
  return summed(*this, multiply(cotangent, numbers, s));
}
array GroupCotangents::of_biases() const { return summed(*this, cotangent); }

}  // namespace quantized

std::vector<array> quantize(const array& w, std::optional<int> group_size, std::optional<int> bits,
                            const std::string& mode, const std::optional<array>& global_scale,
                            StreamOrDevice s) {
  QuantizedFormat format = checked_format("quantize", group_size, bits, mode);
  if (!is_computable(w.dtype())) {
    throw std::invalid_argument(
        text("[quantize] expected float32, float16 or bfloat16, got ", w.dtype()));
  }
  if (w.ndim() < 2 || w.shape(-1) % format.group_size != 0) {
    throw std::invalid_argument(
        text("[quantize] expected two dimensions or more, the last one a multiple of the group "
             "size (",
             format.group_size, "), got shape ", w.shape()));
  }
  check_global_scale("quantize", format, global_scale);
  Shape codes = w.shape(), groups = w.shape();
  codes.back() = static_cast<ShapeElem>(int64_t{w.shape(-1)} * format.bits / 32);
  groups.back() = w.shape(-1) / format.group_size;
  bool affine = format.mode == QuantizationMode::affine;
  std::vector<Shape> shapes{codes, groups};
  std::vector<Dtype> dtypes{uint32, affine ? w.dtype() : uint8};
  if (affine) {
    shapes.push_back(groups);
    dtypes.push_back(w.dtype());
  }
  std::vector<array> inputs{w};
  if (global_scale) inputs.push_back(astype(*global_scale, float32, s));
  return detail::make_all_checked(std::move(shapes), dtypes,
                                  std::make_shared<Quantize>(to_stream(s), format), inputs);
}

array dequantize(const array& w, const array& scales, const std::optional<array>& biases,
                 std::optional<int> group_size, std::optional<int> bits, const std::string& mode,
                 const std::optional<array>& global_scale, std::optional<Dtype> dtype,
                 StreamOrDevice s) {
  QuantizedFormat format = checked_format("dequantize", group_size, bits, mode);
  check_global_scale("dequantize", format, global_scale);
  Shape shape = w.shape();
  int columns = checked_columns("dequantize", format, w, scales, biases);
  shape.back() = columns;
  Dtype result =
      dtype.value_or(format.mode == QuantizationMode::affine ? scales.dtype() : bfloat16);
  if (!is_computable(result)) {
    throw std::invalid_argument(
        text("[dequantize] expected dtype float32, float16 or bfloat16, got ", result));
  }
  std::vector<array> inputs{w, scales};
  if (biases) inputs.push_back(astype(*biases, scales.dtype(), s));
  if (!global_scale) {
    return make_node<Dequantize>(std::move(shape), result, std::move(inputs), s, format);
  }
  array wide = make_node<Dequantize>(std::move(shape), float32, std::move(inputs), s, format);
  array factor = divide(astype(*global_scale, float32, s), array(nvfp4_range), s);
  return astype(multiply(wide, reshape(factor, {}, s), s), result, s);
}

}  // namespace holdfast
