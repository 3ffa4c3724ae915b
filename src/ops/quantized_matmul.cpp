// Products with quantised matrices.
#include <optional>

#include "ops/dynamic_shape.h"
#include "ops/inner.h"
#include "ops/quantized.h"
#include "ops/support.h"

namespace holdfast {

using namespace quantized;

namespace {

// Inputs: x, codes, scales, biases (affine), left and right indices (gather).
class QuantizedMatmul final : public Recorded<QuantizedMatmul, Op> {
 public:
  QuantizedMatmul(Stream stream, const QuantizedFormat& format, bool transposed, bool gathers)
      : Recorded(stream), format_(format), transposed_(transposed), gathers_(gathers) {}
  void encode(Encoder& encoder, const std::vector<array>& inputs,
              std::vector<array>& outputs) override;
  std::vector<array> vjp_rule(const std::vector<array>& primals,
                              const std::vector<array>& cotangents, const std::vector<int>& argnums,
                              const std::vector<array>& outputs) override;
  std::pair<std::vector<array>, std::vector<int>> vmap_rule(const std::vector<array>& inputs,
                                                            const std::vector<int>& axes) override;
  std::vector<Shape> output_shapes(const std::vector<array>& inputs) override;
  const char* name() const override { return gathers_ ? "GatherQMM" : "QuantizedMatmul"; }
  static constexpr const char* recorded_as = "QuantizedMatmul";
  auto members() const {
    return std::tuple_cat(members_of(format_), std::tie(transposed_, gathers_));
  }

 private:
  array of_x(const std::vector<array>& primals, const array& cotangent);
  array of_matrix(const std::vector<array>& primals, const array& cotangent);

  QuantizedFormat format_;
  bool transposed_, gathers_;
};

Shape batch_of(const array& a) { return Shape(a.shape().begin(), a.shape().end() - 2); }
int64_t count_of(const Shape& shape) {
  int64_t count = 1;
  for (int dim : shape) count *= dim;
  return count;
}

void QuantizedMatmul::encode(Encoder& encoder, const std::vector<array>& inputs,
                             std::vector<array>& outputs) {
  kernels::backend_of(encoder).quantized_matmul(encoder, {format_, transposed_, gathers_}, inputs,
                                                outputs[0]);
}

// The columns of the product.
int checked_width(const char* op, const array& x, const array& w, int columns, bool transposed) {
  int depth = transposed ? columns : w.shape(-2), width = transposed ? w.shape(-2) : columns;
  if (x.shape(-1) != depth) {
    throw std::invalid_argument(text("[", op, "] last dimension of x (", x.shape(-1),
                                     ") must match the depth of the quantised matrix (", depth,
                                     "): shapes ", x.shape(), " and ", w.shape()));
  }
  return width;
}

std::vector<Shape> QuantizedMatmul::output_shapes(const std::vector<array>& inputs) {
  const char* op = gathers_ ? "gather_qmm" : "quantized_matmul";
  const array &x = inputs[0], &w = inputs[1];
  std::optional<array> biases;
  if (inputs.size() > (gathers_ ? 5u : 3u)) biases = inputs[3];
  int columns = checked_columns(op, format_, w, inputs[2], biases);
  int width = checked_width(op, x, w, columns, transposed_);
  Shape shape =
      gathers_ ? inputs.back().shape() : broadcast_shapes_for(op, batch_of(x), batch_of(w));
  shape.push_back(x.shape(-2));
  shape.push_back(width);
  checked_size(op, shape, x.dtype());
  return {std::move(shape)};
}

array multiply_quantized(const char* op, const array& x, const array& w, const array& scales,
                         const std::optional<array>& biases, const std::optional<array>& left,
                         const std::optional<array>& right, bool gathers, bool transposed,
                         const QuantizedFormat& format, StreamOrDevice s) {
  int columns = checked_columns(op, format, w, scales, biases);
  if (x.ndim() < (gathers ? 2u : 1u)) {
    throw std::invalid_argument(text("[", op, "] expected x with ",
                                     gathers ? "two dimensions" : "one dimension",
                                     " or more, got shape ", x.shape()));
  }
  int width = checked_width(op, x, w, columns, transposed);
  if (!biases && !issubdtype(x.dtype(), floating)) {
    throw std::invalid_argument(text("[", op, "] expected x of a floating dtype, got ", x.dtype()));
  }
  Dtype dtype = at_least_float(x.dtype());
  if (biases) dtype = promote_types(promote_types(dtype, scales.dtype()), biases->dtype());
  if (!is_computable(dtype)) {
    throw std::invalid_argument(
        text("[", op, "] expected float32, float16 or bfloat16, got ", dtype));
  }
  array rows = astype(x.ndim() == 1 ? expand_dims(x, 0, s) : x, dtype, s);
  std::vector<array> inputs{rows, w, biases ? astype(scales, dtype, s) : scales};
  if (biases) inputs.push_back(astype(*biases, dtype, s));
  Shape shape;
  if (gathers) {
    auto indices = [&](const std::optional<array>& given, const array& source, const char* what) {
      array result = given ? *given : numbers_of_matrices(source, s);
      if (!issubdtype(result.dtype(), integer)) {
        throw std::invalid_argument(
            text("[", op, "] expected integer ", what, ", got ", result.dtype()));
      }
      return astype(result, uint32, s);
    };
    array lefts = indices(left, rows, "lhs_indices"), rights = indices(right, w, "rhs_indices");
    shape = broadcast_shapes_for(op, lefts.shape(), rights.shape());
    inputs.push_back(broadcast_like(lefts, rights, s));
    inputs.push_back(broadcast_like(rights, lefts, s));
  } else {
    shape = broadcast_shapes_for(op, batch_of(rows), batch_of(w));
  }
  shape.push_back(rows.shape(-2));
  shape.push_back(width);
  checked_size(op, shape, dtype);
  array out = make_node<QuantizedMatmul>(std::move(shape), dtype, std::move(inputs), s, format,
                                         transposed, gathers);
  return x.ndim() == 1 ? squeeze(out, -2, s) : out;
}

// --- derivatives of products ---

// Adds up matrices that were taken by number from the batch of `shape`.
array put_back(const array& matrices, const array& numbers, const Shape& shape, Stream s) {
  ShapeElem count = 1;
  for (size_t i = 0; i + 2 < shape.size(); ++i) count *= shape[i];
  Shape flat{count, shape[shape.size() - 2], shape.back()};
  int places = static_cast<int>(numbers.ndim());
  array sums = scatter_add(zeros(flat, matrices.dtype(), s), std::vector<array>{numbers},
                           expand_dims(matrices, places, s), std::vector<int>{0}, s);
  return reshape_here(sums, shape, s);
}

// The product with the same matrix, seen from the other side.
array QuantizedMatmul::of_x(const std::vector<array>& primals, const array& cotangent) {
  Stream s = stream();
  const array& x = primals[0];
  std::vector<array> inputs = primals;
  inputs[0] = cotangent;
  Shape shape = cotangent.shape();
  shape.back() = x.shape(-1);
  if (!gathers_) {
    array back = make_node<QuantizedMatmul>(std::move(shape), x.dtype(), std::move(inputs), s,
                                            format_, !transposed_, false);
    return sum_like(back, x, s);
  }
  array& numbers = inputs[inputs.size() - 2];
  array taken_from = numbers;
  check_shape_known("gather_qmm", x);
  numbers = reshape(arange(0, static_cast<double>(numbers.size()), uint32, s), numbers.shape(), s);
  array back = make_node<QuantizedMatmul>(std::move(shape), x.dtype(), std::move(inputs), s,
                                          format_, !transposed_, true);
  return put_back(back, taken_from, x.shape(), s);
}

array QuantizedMatmul::of_matrix(const std::vector<array>& primals, const array& cotangent) {
  Stream s = stream();
  array x = primals[0];
  size_t indices = primals.size() - 2;
  if (gathers_) {
    ShapeElem count = static_cast<ShapeElem>(count_of(batch_of(x)));
    x = take(reshape_here(x, {count, x.shape(-2), x.shape(-1)}, s), primals[indices], 0, s);
  }
  array product = transposed_ ? matmul(swapaxes(cotangent, -1, -2, s), x, s)
                              : matmul(swapaxes(x, -1, -2, s), cotangent, s);
  Shape shape = batch_of(primals[1]);
  shape.push_back(product.shape(-2));
  shape.push_back(product.shape(-1));
  return gathers_ ? put_back(product, primals[indices + 1], shape, s)
                  : sum_to_shape(product, shape, s);
}

std::vector<array> QuantizedMatmul::vjp_rule(const std::vector<array>& primals,
                                             const std::vector<array>& cotangents,
                                             const std::vector<int>& argnums,
                                             const std::vector<array>&) {
  std::vector<array> result;
  for (int argnum : argnums) {
    if (argnum == 0) {
      result.push_back(of_x(primals, cotangents[0]));
      continue;
    }
    GroupCotangents groups{format_, primals[1], primals[2], of_matrix(primals, cotangents[0]),
                           stream()};
    result.push_back(argnum == 2 ? groups.of_scales() : groups.of_biases());
  }
  return result;
}

// More of x is a larger batch; other matrices are multiplied one after the other.
std::pair<std::vector<array>, std::vector<int>> QuantizedMatmul::vmap_rule(
    const std::vector<array>& inputs, const std::vector<int>& axes) {
  for (size_t i = 1; i < axes.size(); ++i) {
    if (axes[i] >= 0) return {};
  }
  if (gathers_) return {};
  array x = moveaxis(inputs[0], axes[0], 0, stream());
  Shape shape = x.shape();
  while (shape.size() < inputs[1].ndim() + 1) shape.insert(shape.begin() + 1, 1);
  std::optional<array> biases;
  if (inputs.size() > 3) biases = inputs[3];
  return {{multiply_quantized("quantized_matmul", reshape_here(x, shape, stream()), inputs[1],
                              inputs[2], biases, std::nullopt, std::nullopt, false, transposed_,
                              format_, stream())},
          {0}};
}

// x quantised and back, without the global scale; the product's factor for that is multiplied
// later.
array rounded_to_format(const array& x, const QuantizedFormat& format, const std::string& mode,
                        const std::optional<array>& global_scale, StreamOrDevice s) {
  array rows = x.ndim() == 1 ? expand_dims(x, 0, s) : x;
  std::vector<array> parts = quantize(rows, format.group_size, format.bits, mode, global_scale, s);
  std::optional<array> biases;
  if (parts.size() > 2) biases = parts[2];
  array result = dequantize(parts[0], parts[1], biases, format.group_size, format.bits, mode,
                            std::nullopt, x.dtype(), s);
  return x.ndim() == 1 ? squeeze(result, 0, s) : result;
}

array multiply_both_quantized(const char* op, const array& x, const array& w,
                              const std::optional<array>& w_scales,
                              const std::optional<array>& left, const std::optional<array>& right,
                              bool gathers, const std::optional<int>& group_size,
                              const std::optional<int>& bits, const std::string& mode,
                              const std::optional<array>& global_x,
                              const std::optional<array>& global_w, StreamOrDevice s) {
  QuantizedFormat format = checked_format(op, group_size, bits, mode);
  check_global_scale(op, format, global_x);
  check_global_scale(op, format, global_w);
  if (!is_computable(x.dtype())) {
    throw std::invalid_argument(
        text("[", op, "] expected x of float32, float16 or bfloat16, got ", x.dtype()));
  }
  array codes = w;
  std::optional<array> scales = w_scales, biases;
  if (!w_scales) {
    std::vector<array> parts = quantize(w, group_size, bits, mode, global_w, s);
    codes = parts[0];
    scales = parts[1];
    if (parts.size() > 2) biases = parts[2];
  }
  array rounded = rounded_to_format(x, format, mode, global_x, s);
  // Half types are rounded once, after the factors.
  if (global_x || global_w) rounded = astype(rounded, float32, s);
  array out = multiply_quantized(op, rounded, codes, *scales, biases, left, right, gathers, true,
                                 format, s);
  for (const std::optional<array>& global : {global_x, global_w}) {
    if (!global) continue;
    array factor = divide(astype(*global, float32, s), array(nvfp4_range), s);
    out = multiply(out, reshape(factor, {}, s), s);
  }
  return global_x || global_w ? astype(out, x.dtype(), s) : out;
}

}  // namespace

array quantized_matmul(const array& x, const array& w, const array& scales,
                       const std::optional<array>& biases, bool transpose,
                       std::optional<int> group_size, std::optional<int> bits,
                       const std::string& mode, StreamOrDevice s) {
  return multiply_quantized("quantized_matmul", x, w, scales, biases, std::nullopt, std::nullopt,
                            false, transpose,
                            checked_format("quantized_matmul", group_size, bits, mode), s);
}

array gather_qmm(const array& x, const array& w, const array& scales,
                 const std::optional<array>& biases, const std::optional<array>& lhs_indices,
                 const std::optional<array>& rhs_indices, bool transpose,
                 std::optional<int> group_size, std::optional<int> bits, const std::string& mode,
                 bool /*sorted_indices*/, StreamOrDevice s) {
  return multiply_quantized("gather_qmm", x, w, scales, biases, lhs_indices, rhs_indices, true,
                            transpose, checked_format("gather_qmm", group_size, bits, mode), s);
}

array quantized::gather_scaled_qmm(
    const array& x, const array& w, const array& scales, const std::optional<array>& biases,
    const std::optional<array>& lhs_indices, const std::optional<array>& rhs_indices,
    bool transpose, std::optional<int> group_size, std::optional<int> bits, const std::string& mode,
    const std::optional<array>& global_scale, bool sorted_indices, StreamOrDevice s) {
  auto multiplied = [&](const array& left) {
    return gather_qmm(left, w, scales, biases, lhs_indices, rhs_indices, transpose, group_size,
                      bits, mode, sorted_indices, s);
  };
  if (!global_scale) return multiplied(x);
  array product = multiplied(is_half(x.dtype()) ? astype(x, float32, s) : x);
  Shape matrices(w.shape().begin(), w.shape().end() - 2);
  if (mode != mode_name(QuantizationMode::nvfp4) || global_scale->shape() != matrices) {
    throw std::invalid_argument(
        text("[gather_qmm] expected a global scale in mode nvfp4 only, one for each matrix of w (",
             matrices, "), got mode ", mode, " and shape ", global_scale->shape()));
  }
  array factors = divide(astype(*global_scale, float32, s), array(nvfp4_range), s);
  if (rhs_indices) factors = take(flatten(factors, s), *rhs_indices, s);
  factors = expand_dims(factors, {-2, -1}, s);
  return astype(multiply(product, factors, s), x.dtype(), s);
}

array qqmm(const array& x, const array& w, const std::optional<array>& w_scales,
           std::optional<int> group_size, std::optional<int> bits, const std::string& mode,
           const std::optional<array>& global_scale_x, const std::optional<array>& global_scale_w,
           StreamOrDevice s) {
  return multiply_both_quantized("qqmm", x, w, w_scales, std::nullopt, std::nullopt, false,
                                 group_size, bits, mode, global_scale_x, global_scale_w, s);
}

array gather_qqmm(const array& x, const array& w, const std::optional<array>& scales_w,
                  const std::optional<array>& lhs_indices, const std::optional<array>& rhs_indices,
                  std::optional<int> group_size, std::optional<int> bits, const std::string& mode,
                  const std::optional<array>& global_scale_x,
                  const std::optional<array>& global_scale_w, bool /*sorted_indices*/,
                  StreamOrDevice s) {
  return multiply_both_quantized("gather_qqmm", x, w, scales_w, lhs_indices, rhs_indices, true,
                                 group_size, bits, mode, global_scale_x, global_scale_w, s);
}

}  // namespace holdfast
