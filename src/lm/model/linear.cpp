#include "lm/model/linear.h"

#include <algorithm>

#include <holdfast/ops.h>

#include "lm/support.h"

namespace holdfast::lm {
namespace {

Shape with_experts(int experts, int rows, int columns) {
  return experts > 0 ? Shape{experts, rows, columns} : Shape{rows, columns};
}

// The format follows from the shapes: the codes of `inputs` numbers fill words, groups have a
// scale.
void take_format(Weights& weights, const std::string& stem, int inputs, Linear& linear) {
  int words = linear.weight.shape(-1), groups = linear.scales->shape(-1);
  linear.bits = static_cast<int>(int64_t{words} * 32 / inputs);
  linear.group_size = groups > 0 ? inputs / groups : 0;
  bool is_affine = linear.biases.has_value();
  if (is_affine) {
    linear.mode = "affine";
  } else if (linear.bits == 8) {
    linear.mode = "mxfp8";
  } else {
    linear.mode = linear.group_size == 16 ? "nvfp4" : "mxfp4";
  }
  auto one_of = [](int value, std::initializer_list<int> values) {
    return std::find(values.begin(), values.end(), value) != values.end();
  };
  bool known = is_affine ? one_of(linear.bits, {2, 3, 4, 5, 6, 8}) &&
                               one_of(linear.group_size, {32, 64, 128})
                         : one_of(linear.bits, {4, 8}) && one_of(linear.group_size, {16, 32});
  if (!known || int64_t{linear.bits} * inputs != int64_t{words} * 32 ||
      linear.group_size * groups != inputs) {
    weights.fail(message("the quantised tensor \"", stem, ".weight\" has ", words,
                         " words in a row and ", groups, " scales for ", inputs,
                         " numbers, which is no format that is known"));
  }
}

void check_scales(Weights& weights, const std::string& stem, const Linear& linear) {
  for (const auto* each : {&linear.scales, &linear.biases}) {
    if (!each->has_value()) continue;
    Shape expected = linear.weight.shape();
    expected.back() = (*each)->shape(-1);
    if ((*each)->shape() != expected || (*each)->shape() != linear.scales->shape())
      weights.fail(message("the scales and biases of \"", stem, ".weight\" have other shapes"));
  }
}

std::optional<array> joined_arrays(const std::vector<Linear>& parts,
                                   std::optional<array> Linear::* member, int axis) {
  std::vector<array> all;
  for (const Linear& part : parts) {
    if (part.*member) all.push_back(*(part.*member));
  }
  if (all.empty()) return std::nullopt;
  return concatenate(std::move(all), axis);
}

}  // namespace

size_t Linear::bytes() const {
  size_t sum = weight.nbytes();
  for (const auto* each : {&scales, &biases, &bias}) {
    if (*each) sum += (*each)->nbytes();
  }
  return sum;
}

array Linear::operator()(const array& x) const {
  array y = quantised() ? quantized_matmul(x, weight, *scales, biases, true, group_size, bits, mode)
                        : matmul(x, swapaxes(weight, -1, -2));
  return bias ? add(std::move(y), *bias) : y;
}

array Linear::of_experts(const array& x, const array& experts) const {
  array rows = expand_dims(x, -2);
  array y = quantised() ? gather_qmm(rows, weight, *scales, biases, std::nullopt, experts, true,
                                     group_size, bits, mode)
                        : gather_mm(rows, swapaxes(weight, -1, -2), std::nullopt, experts);
  return squeeze(y, -2);
}

array Linear::rows(const array& indices, Dtype dtype) const {
  array codes = take(weight, indices, 0);
  if (!quantised()) return astype(codes, dtype);
  std::optional<array> offsets;
  if (biases) offsets = take(*biases, indices, 0);
  return dequantize(codes, take(*scales, indices, 0), offsets, group_size, bits, mode, std::nullopt,
                    dtype);
}

Linear take_linear(Weights& weights, const std::string& stem, int outputs, int inputs,
                   bool has_bias, Dtype dtype, int experts) {
  std::optional<array> bias;
  if (has_bias) {
    bias = weights.take_floats(stem + ".bias",
                               experts > 0 ? Shape{experts, outputs} : Shape{outputs}, dtype);
  }
  if (!weights.has(stem + ".scales")) {
    return {weights.take_floats(stem + ".weight", with_experts(experts, outputs, inputs), dtype),
            std::nullopt,
            std::nullopt,
            bias,
            0,
            0,
            ""};
  }
  const array* codes = weights.find(stem + ".weight");
  Shape expected =
      with_experts(experts, outputs, codes && codes->ndim() > 0 ? codes->shape(-1) : 1);
  Linear linear{weights.take(stem + ".weight", expected),
                weights.take(stem + ".scales"),
                std::nullopt,
                bias,
                0,
                0,
                ""};
  if (weights.has(stem + ".biases")) linear.biases = weights.take(stem + ".biases");
  if (linear.weight.dtype() != uint32)
    weights.fail(message("the quantised tensor \"", stem, ".weight\" must be uint32, got ",
                         linear.weight.dtype()));
  if (linear.scales->ndim() != linear.weight.ndim())
    weights.fail(message("the scales of \"", stem, ".weight\" have another number of dimensions"));
  check_scales(weights, stem, linear);
  take_format(weights, stem, inputs, linear);
  if (linear.mode == "affine") {
    linear.scales = astype(*linear.scales, dtype);
    linear.biases = astype(*linear.biases, dtype);
  }
  return linear;
}

void keep_linear(Weights& weights, Linear& linear, const std::string& name) {
  linear.weight = weights.keep(std::move(linear.weight), name);
  for (auto* each : {&linear.scales, &linear.biases, &linear.bias}) {
    if (*each) *each = weights.keep(std::move(**each), name);
  }
}

JoinedLinear::JoinedLinear(Weights& weights, std::vector<Linear> parts, const std::string& name) {
  int end = 0;
  for (size_t i = 0; i + 1 < parts.size(); ++i) ends_.push_back(end += parts[i].outputs());
  const Linear& first = parts.front();
  bool alike = std::all_of(parts.begin(), parts.end(), [&](const Linear& part) {
    return part.mode == first.mode && part.bits == first.bits &&
           part.group_size == first.group_size && part.bias.has_value() == first.bias.has_value();
  });
  if (alike && parts.size() > 1) {
    Linear joined{
        array(0.0f),      std::nullopt, std::nullopt, joined_arrays(parts, &Linear::bias, -1),
        first.group_size, first.bits,   first.mode};
    std::vector<array> codes;
    for (Linear& part : parts) codes.push_back(std::move(part.weight));
    joined.weight = concatenate(std::move(codes), -2);
    joined.scales = joined_arrays(parts, &Linear::scales, -2);
    joined.biases = joined_arrays(parts, &Linear::biases, -2);
    parts.clear();
    parts.push_back(std::move(joined));
  }
  products_ = std::move(parts);
  for (Linear& product : products_) keep_linear(weights, product, name);
}

std::vector<array> JoinedLinear::separate(const array& y) const {
  return ends_.empty() ? std::vector<array>{y} : split(y, ends_, -1);
}

std::vector<array> JoinedLinear::operator()(const array& x) const {
  if (products_.size() == 1) return separate(products_[0](x));
  std::vector<array> results;
  for (const Linear& product : products_) results.push_back(product(x));
  return results;
}

std::vector<array> JoinedLinear::of_experts(const array& x, const array& experts) const {
  if (products_.size() == 1) return separate(products_[0].of_experts(x, experts));
  std::vector<array> results;
  for (const Linear& product : products_) results.push_back(product.of_experts(x, experts));
  return results;
}

size_t JoinedLinear::bytes() const {
  size_t sum = 0;
  for (const Linear& product : products_) sum += product.bytes();
  return sum;
}

}  // namespace holdfast::lm
