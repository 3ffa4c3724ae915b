// Low-bit weights: quantize, dequantize, and products with them.
#include <cstring>
#include <optional>

#include "kernels/cpu/quantization.h"
#include "kernels/cpu/simd/quantized_kernels.h"
#include "kernels/cpu/task_scratch.h"
#include "ops/dynamic_shape.h"
#include "ops/support.h"

namespace holdfast {

namespace {

using cpu::QuantizationMode;
using cpu::QuantizedFormat;

struct ModeRow {
  const char* name;
  QuantizationMode mode;
  int group_size, bits;  // defaults; fixed but for affine
};
constexpr ModeRow mode_rows[] = {{"affine", QuantizationMode::affine, 64, 4},
                                 {"mxfp4", QuantizationMode::mxfp4, 32, 4},
                                 {"mxfp8", QuantizationMode::mxfp8, 32, 8},
                                 {"nvfp4", QuantizationMode::nvfp4, 16, 4}};

QuantizedFormat checked_format(const char* op, std::optional<int> group_size,
                               std::optional<int> bits, const std::string& mode) {
  for (const ModeRow& row : mode_rows) {
    if (mode != row.name) continue;
    QuantizedFormat format{row.mode, bits.value_or(row.bits), group_size.value_or(row.group_size)};
    if (row.mode != QuantizationMode::affine) {
      if (format.bits != row.bits || format.group_size != row.group_size) {
        throw std::invalid_argument(text("[", op, "] mode ", mode, " has ", row.bits,
                                         " bits and groups of ", row.group_size, ", got ",
                                         format.bits, " bits and groups of ", format.group_size));
      }
    } else {
      bool known_bits = format.bits >= 1 && format.bits <= 8 && format.bits != 7;
      if (!known_bits) {
        throw std::invalid_argument(
            text("[", op, "] expected 1, 2, 3, 4, 5, 6 or 8 bits, got ", format.bits));
      }
      if (format.group_size != 32 && format.group_size != 64 && format.group_size != 128) {
        throw std::invalid_argument(
            text("[", op, "] expected groups of 32, 64 or 128, got ", format.group_size));
      }
    }
    return format;
  }
  throw std::invalid_argument(
      text("[", op, "] expected mode affine, mxfp4, mxfp8 or nvfp4, got \"", mode, "\""));
}

bool is_computable(Dtype dtype) {
  return dtype == float32 || dtype == float16 || dtype == bfloat16;
}

void check_global_scale(const char* op, const QuantizedFormat& format,
                        const std::optional<array>& global_scale) {
  if (!global_scale) return;
  if (format.mode != QuantizationMode::nvfp4) {
    throw std::invalid_argument(text("[", op, "] a global scale is for mode nvfp4 only"));
  }
  if (global_scale->size() != 1) {
    throw std::invalid_argument(
        text("[", op, "] expected one global scale, got shape ", global_scale->shape()));
  }
}

auto members_of(const QuantizedFormat& format) {
  return std::tie(format.mode, format.bits, format.group_size);
}

// --- quantize ---

// Inputs: the weights, and the global scale where there is one. Outputs: codes, scales, biases.
class Quantize final : public Recorded<Quantize, Op> {
 public:
  Quantize(Stream stream, const QuantizedFormat& format) : Recorded(stream), format_(format) {}
  void encode(Encoder& encoder, const std::vector<array>& inputs,
              std::vector<array>& outputs) override;
  std::vector<array> vjp(const std::vector<array>& primals, const std::vector<array>& cotangents,
                         const std::vector<int>& argnums,
                         const std::vector<array>& outputs) override;
  std::pair<std::vector<array>, std::vector<int>> vmap(const std::vector<array>& inputs,
                                                       const std::vector<int>& axes) override;
  const char* name() const override { return "Quantize"; }
  auto members() const { return members_of(format_); }

 private:
  QuantizedFormat format_;
};

void Quantize::encode(Encoder& encoder, const std::vector<array>& inputs,
                      std::vector<array>& outputs) {
  for (array& out : outputs) encoder.allocate(out);
  if (outputs[0].size() == 0) return;
  array w = make_dense(encoder, name(), inputs[0]);
  encoder.input(w);
  if (inputs.size() > 1) encoder.input(inputs[1]);
  for (array& out : outputs) encoder.output(out);
  bool affine = format_.mode == QuantizationMode::affine;
  int64_t length = w.shape(-1), rows = static_cast<int64_t>(w.size()) / length;
  int64_t groups = length / format_.group_size;
  int64_t code_bytes = format_.packed_bytes(length);
  auto item = static_cast<int64_t>(w.itemsize());
  Dtype::Val dtype = w.dtype();
  const char* from = w.data<char>();
  const float* global = inputs.size() > 1 ? inputs[1].data<float>() : nullptr;
  auto* codes = outputs[0].data<uint8_t>();
  char* scales = outputs[1].data<char>();
  char* biases = affine ? outputs[2].data<char>() : nullptr;
  encoder.native(
      name(), rows, static_cast<int64_t>(w.nbytes()) * 8,
      [=, format = format_](int64_t begin, int64_t end) {
        const cpu::simd::QuantizedKernels& kernels = cpu::simd::quantized_kernels();
        cpu::TaskScratch scratch(static_cast<size_t>(length + 2 * groups) * sizeof(float));
        auto* wide = static_cast<float*>(scratch.get());
        float* row_scales = wide + length;
        float* row_biases = row_scales + groups;
        for (int64_t row = begin; row < end; ++row) {
          kernels.widen(dtype, from + row * length * item, length, wide);
          auto* bytes = reinterpret_cast<uint8_t*>(scales) + row * groups;
          cpu::quantize_row(format, wide, length, codes + row * code_bytes, row_scales, row_biases,
                            bytes, global != nullptr ? *global : 0.0f);
          if (!affine) continue;
          kernels.narrow(dtype, row_scales, groups, scales + row * groups * item);
          kernels.narrow(dtype, row_biases, groups, biases + row * groups * item);
        }
      });
}

// Only the affine mode has scales and biases that are numbers. The bias is the weight e of the
// group that is furthest from zero, and the scale is e / round(e / scale); where several weights
// are e, they share. Groups of (almost) zeros have a constant scale.
std::vector<array> Quantize::vjp(const std::vector<array>& primals,
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
std::pair<std::vector<array>, std::vector<int>> Quantize::vmap(const std::vector<array>& inputs,
                                                               const std::vector<int>& axes) {
  if (inputs.size() > 1 && axes[1] >= 0) return {};
  array w = moveaxis(inputs[0], axes[0], 0, stream());
  const char* mode = mode_rows[static_cast<size_t>(format_.mode)].name;
  std::optional<array> global_scale;
  if (inputs.size() > 1) global_scale = inputs[1];
  std::vector<array> parts =
      quantize(w, format_.group_size, format_.bits, mode, global_scale, stream());
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
  std::vector<array> vjp(const std::vector<array>& primals, const std::vector<array>& cotangents,
                         const std::vector<int>& argnums,
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
  array& out = outputs[0];
  encoder.allocate(out);
  if (out.size() == 0) return;
  std::vector<array> dense;
  for (const array& input : inputs) dense.push_back(make_dense(encoder, name(), input));
  for (const array& input : dense) encoder.input(input);
  encoder.output(out);
  int64_t length = out.shape(-1), rows = static_cast<int64_t>(out.size()) / length;
  int64_t code_bytes = format_.packed_bytes(length);
  int64_t scale_bytes = length / format_.group_size * static_cast<int64_t>(dense[1].itemsize());
  const char* codes = dense[0].data<char>();
  const char* scales = dense[1].data<char>();
  const char* biases = dense.size() > 2 ? dense[2].data<char>() : nullptr;
  Dtype::Val dtype = dense[1].dtype(), to = out.dtype();
  char* target = out.data<char>();
  int64_t row_bytes = length * static_cast<int64_t>(out.itemsize());
  encoder.native(name(), rows, static_cast<int64_t>(out.nbytes()) * 2,
                 [=, format = format_](int64_t begin, int64_t end) {
                   for (int64_t row = begin; row < end; ++row) {
                     cpu::simd::QuantizedRow line{
                         codes + row * code_bytes, scales + row * scale_bytes,
                         biases == nullptr ? nullptr : biases + row * scale_bytes};
                     cpu::simd::quantized_kernels().dequantize(format, dtype, line, 0, length, to,
                                                               target + row * row_bytes);
                   }
                 });
}

// The cotangents of scales and biases, from that of scale * code + bias. Only the affine mode has
// scales that are numbers.
struct GroupCotangents {
  const QuantizedFormat& format;
  const array &codes, &scales;
  array cotangent;  // of the matrix
  Stream s;

  array summed(const array& a) const {
    return astype(sum(unflatten(a, -1, {-1, format.group_size}, s), -1, false, s), scales.dtype(),
                  s);
  }
  array of_scales() const {
    std::vector<array> unit{codes, ones_like(scales, s), zeros_like(scales, s)};
    array numbers = make_node<Dequantize>(cotangent.shape(), cotangent.dtype(), unit, s, format);
    return summed(multiply(cotangent, numbers, s));
  }
  array of_biases() const { return summed(cotangent); }
};

std::vector<array> Dequantize::vjp(const std::vector<array>& primals,
                                   const std::vector<array>& cotangents,
                                   const std::vector<int>& argnums, const std::vector<array>&) {
  GroupCotangents groups{format_, primals[0], primals[1], cotangents[0], stream()};
  std::vector<array> result;
  for (int argnum : argnums) {
    result.push_back(argnum == 1 ? groups.of_scales() : groups.of_biases());
  }
  return result;
}

// The number of columns that codes and scales stand for; checks them and the biases.
int checked_columns(const char* op, const QuantizedFormat& format, const array& w,
                    const array& scales, const std::optional<array>& biases) {
  bool affine = format.mode == QuantizationMode::affine;
  auto fail = [&](const auto&... parts) {
    throw std::invalid_argument(text("[", op, "] ", parts...));
  };
  if (w.dtype() != uint32) fail("expected packed weights of uint32, got ", w.dtype());
  if (w.ndim() < 2) fail("expected weights with two dimensions or more, got shape ", w.shape());
  if (affine != biases.has_value()) {
    fail("expected ", affine ? "biases with mode affine" : "no biases but with mode affine");
  }
  if (affine ? !is_computable(scales.dtype()) : scales.dtype() != uint8) {
    fail("expected scales of ", affine ? "float32, float16 or bfloat16" : "uint8", ", got ",
         scales.dtype());
  }
  int columns = safe_cast(int64_t{w.shape(-1)} * 32 / format.bits, op);
  Shape expected = w.shape();
  expected.back() = columns / format.group_size;
  if (columns % format.group_size != 0 || scales.shape() != expected ||
      (biases && biases->shape() != expected)) {
    fail("weights of shape ", w.shape(), " with ", format.bits, " bits in groups of ",
         format.group_size, " need scales and biases of shape ", expected, ", got ",
         scales.shape());
  }
  return columns;
}

// --- products ---

// Inputs: x, codes, scales, biases (affine), left and right indices (gather).
class QuantizedMatmul final : public Recorded<QuantizedMatmul, Op> {
 public:
  QuantizedMatmul(Stream stream, const QuantizedFormat& format, bool transposed, bool gathers)
      : Recorded(stream), format_(format), transposed_(transposed), gathers_(gathers) {}
  void encode(Encoder& encoder, const std::vector<array>& inputs,
              std::vector<array>& outputs) override;
  std::vector<array> vjp(const std::vector<array>& primals, const std::vector<array>& cotangents,
                         const std::vector<int>& argnums,
                         const std::vector<array>& outputs) override;
  std::pair<std::vector<array>, std::vector<int>> vmap(const std::vector<array>& inputs,
                                                       const std::vector<int>& axes) override;
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

// For each position of the broadcast shape, the row-major position in `shape`.
std::vector<uint32_t> broadcast_positions(const Shape& shape, const Shape& target) {
  Strides strides = broadcast_strides(shape, row_major_strides(shape), target);
  cpu::CollapsedLayout layout = cpu::collapse(span_of(target), span_of(strides));
  std::vector<uint32_t> result;
  for (int64_t i = 0; i < layout.size; ++i) {
    result.push_back(static_cast<uint32_t>(cpu::offset_at(layout, i)));
  }
  return result;
}

Shape batch_of(const array& a) { return Shape(a.shape().begin(), a.shape().end() - 2); }
int64_t count_of(const Shape& shape) {
  int64_t count = 1;
  for (int dim : shape) count *= dim;
  return count;
}

void QuantizedMatmul::encode(Encoder& encoder, const std::vector<array>& inputs,
                             std::vector<array>& outputs) {
  array& out = outputs[0];
  encoder.allocate(out);
  if (out.size() == 0) return;
  bool affine = format_.mode == QuantizationMode::affine;
  std::vector<array> dense;
  for (const array& input : inputs) dense.push_back(make_dense(encoder, name(), input));
  const array &x = dense[0], &w = dense[1];
  int64_t m = x.shape(-2), k = x.shape(-1), n = out.shape(-1);
  int64_t batch = static_cast<int64_t>(out.size()) / (m * n);
  int64_t left_count = count_of(batch_of(x)), right_count = count_of(batch_of(w));
  std::vector<uint32_t> left, right;
  if (!gathers_) {
    if (right_count == 1 && left_count == batch) {
      // One matrix for all: the batch is more rows.
      m *= batch;
      batch = left_count = 1;
    } else {
      left = broadcast_positions(batch_of(x), batch_of(out));
      right = broadcast_positions(batch_of(w), batch_of(out));
    }
  }
  cpu::QuantizedProductPlan plan(out.dtype(), format_, transposed_, batch, m, n, k, left_count,
                                 right_count);
  for (const array& input : dense) encoder.input(input);
  encoder.output(out);
  const void* from = x.data<char>();
  cpu::QuantizedMatrix matrix{w.data<char>(), dense[2].data<char>(),
                              affine ? dense[3].data<char>() : nullptr};
  size_t indices = affine ? 4 : 3;
  const uint32_t* given_left = gathers_ ? dense[indices].data<uint32_t>() : nullptr;
  const uint32_t* given_right = gathers_ ? dense[indices + 1].data<uint32_t>() : nullptr;
  void* to = out.data<char>();
  int64_t work = batch * m * n * k / 4 + static_cast<int64_t>(w.nbytes());
  int64_t tasks = plan.tasks();
  encoder.native(name(), tasks, work,
                 [=, plan = std::move(plan), left = std::move(left), right = std::move(right)](
                     int64_t begin, int64_t end) {
                   const uint32_t* lefts = left.empty() ? given_left : left.data();
                   const uint32_t* rights = right.empty() ? given_right : right.data();
                   cpu::TaskScratch scratch(plan.task_scratch_bytes());
                   for (int64_t task = begin; task < end; ++task) {
                     plan.run(task, from, matrix, lefts, rights, to, scratch.get());
                   }
                 });
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
  int depth = transposed ? columns : w.shape(-2), width = transposed ? w.shape(-2) : columns;
  if (x.shape(-1) != depth) {
    throw std::invalid_argument(text("[", op, "] last dimension of x (", x.shape(-1),
                                     ") must match the depth of the quantised matrix (", depth,
                                     "): shapes ", x.shape(), " and ", w.shape()));
  }
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
      Shape batch = batch_of(source);
      array result =
          given
              ? *given
              : reshape_here(arange(0, static_cast<double>(count_of(batch)), uint32, s), batch, s);
      if (!issubdtype(result.dtype(), integer)) {
        throw std::invalid_argument(
            text("[", op, "] expected integer ", what, ", got ", result.dtype()));
      }
      return astype(result, uint32, s);
    };
    array lefts = indices(left, rows, "lhs_indices"), rights = indices(right, w, "rhs_indices");
    shape = broadcast_shapes_for(op, lefts.shape(), rights.shape());
    inputs.push_back(broadcast_here(lefts, shape, s));
    inputs.push_back(broadcast_here(rights, shape, s));
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
  numbers =
      reshape_here(arange(0, static_cast<double>(numbers.size()), uint32, s), numbers.shape(), s);
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

std::vector<array> QuantizedMatmul::vjp(const std::vector<array>& primals,
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
std::pair<std::vector<array>, std::vector<int>> QuantizedMatmul::vmap(
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

constexpr float nvfp4_range = 448.0f * 6.0f;

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
  array out = multiply_quantized(op, rounded, codes, *scales, biases, left, right, gathers, true,
                                 format, s);
  for (const std::optional<array>& global : {global_x, global_w}) {
    if (!global) continue;
    array factor = divide(astype(*global, float32, s), array(nvfp4_range), s);
    out = astype(multiply(astype(out, float32, s), reshape(factor, {}, s), s), x.dtype(), s);
  }
  return out;
}

// --- 8-bit floats ---

class ConvertFp8 final : public Recorded<ConvertFp8, Op> {
 public:
  ConvertFp8(Stream stream, bool encodes) : Recorded(stream), encodes_(encodes) {}
  void encode(Encoder& encoder, const std::vector<array>& inputs,
              std::vector<array>& outputs) override {
    array& out = outputs[0];
    encoder.allocate(out);
    if (out.size() == 0) return;
    array in = make_dense(encoder, name(), inputs[0]);
    encoder.input(in);
    encoder.output(out);
    constexpr int64_t block = 4096;
    auto size = static_cast<int64_t>(out.size());
    const auto* from = in.data<char>();
    auto* to = out.data<char>();
    encoder.native(name(), (size + block - 1) / block, size * 8,
                   [=, encodes = encodes_](int64_t begin, int64_t end) {
                     for (int64_t i = begin * block; i < std::min(size, end * block); ++i) {
                       if (encodes) {
                         reinterpret_cast<uint8_t*>(to)[i] =
                             cpu::to_e4m3(reinterpret_cast<const float*>(from)[i]);
                       } else {
                         reinterpret_cast<float*>(to)[i] =
                             cpu::from_e4m3(reinterpret_cast<const uint8_t*>(from)[i]);
                       }
                     }
                   });
  }
  std::shared_ptr<Primitive> with_leading_axis() override {
    return std::make_shared<ConvertFp8>(stream(), encodes_);
  }
  std::vector<Shape> output_shapes(const std::vector<array>& inputs) override {
    return {inputs[0].shape()};
  }
  const char* name() const override { return encodes_ ? "ToFP8" : "FromFP8"; }
  static constexpr const char* recorded_as = "ConvertFP8";
  auto members() const { return std::tie(encodes_); }

 private:
  bool encodes_;
};

}  // namespace

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
  return array::make_arrays(std::move(shapes), dtypes,
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

array to_fp8(array x, StreamOrDevice s) {
  if (!issubdtype(x.dtype(), floating)) {
    throw std::invalid_argument(text("[to_fp8] expected a floating dtype, got ", x.dtype()));
  }
  Shape shape = x.shape();
  return make_node<ConvertFp8>(std::move(shape), uint8, {astype(std::move(x), float32, s)}, s,
                               true);
}

array from_fp8(array x, Dtype dtype, StreamOrDevice s) {
  if (x.dtype() != uint8) {
    throw std::invalid_argument(text("[from_fp8] expected uint8, got ", x.dtype()));
  }
  if (!issubdtype(dtype, floating)) {
    throw std::invalid_argument(text("[from_fp8] expected a floating result, got ", dtype));
  }
  Shape shape = x.shape();
  array wide = make_node<ConvertFp8>(std::move(shape), float32, {std::move(x)}, s, false);
  return astype(std::move(wide), dtype, s);
}

}  // namespace holdfast
