// Convolutions: all forms lead to conv_general.
#include "kernels/plan/convolution.h"
#include "ops/support.h"

namespace holdfast {

namespace {

using kernels::ConvolutionShape;

// What a convolution was called with: a value for each spatial dimension.
struct Parameters {
  std::vector<int> stride, low, high, dilation, input_dilation;
  int groups;
  bool flip;
};

// For which shapes the numbers of the parameters are right.
enum class Follows : uint8_t {
  any,          // the user gave them
  same_kernel,  // they were computed from the size of the kernel
  nothing       // they were computed from the sizes of all
};

ConvolutionShape shape_of(const Parameters& parameters, const Shape& input, const Shape& weight) {
  auto fail = [](const auto&... parts) { throw std::invalid_argument(text("[conv] ", parts...)); };
  int channels = input.back(), outputs = weight[0], groups = parameters.groups;
  if (groups < 1 || channels % groups != 0 || outputs % groups != 0) {
    fail("channels (", channels, ") and outputs (", outputs,
         ") must be multiples of the number of groups, got ", groups);
  }
  if (weight.back() != channels / groups) {
    fail("last dimension of weight (", weight.back(), ") must be channels / groups (", channels,
         " / ", groups, "): shapes ", input, " and ", weight);
  }
  ConvolutionShape shape{};
  shape.batch = input[0];
  shape.channels = channels;
  shape.outputs = outputs;
  shape.groups = groups;
  shape.flip = parameters.flip;
  size_t missing = 5 - input.size();
  for (size_t d = 0; d < 3; ++d) {
    shape.size[d] = shape.kernel[d] = shape.result[d] = 1;
    shape.stride[d] = shape.dilation[d] = shape.input_dilation[d] = 1;
    shape.padding[d] = 0;
    if (d < missing) continue;
    size_t from = d - missing;
    shape.size[d] = input[from + 1];
    shape.kernel[d] = weight[from + 1];
    shape.stride[d] = parameters.stride[from];
    shape.padding[d] = parameters.low[from];
    shape.dilation[d] = parameters.dilation[from];
    shape.input_dilation[d] = parameters.input_dilation[from];
    int64_t spread = shape.size[d] == 0 ? 0 : (shape.size[d] - 1) * shape.input_dilation[d] + 1;
    int64_t reach = (shape.kernel[d] - 1) * shape.dilation[d] + 1;
    int64_t room = spread + parameters.low[from] + parameters.high[from] - reach;
    if (room < 0 || shape.kernel[d] == 0) {
      fail("the kernel does not fit the padded input: shapes ", input, " and ", weight);
    }
    shape.result[d] = room / shape.stride[d] + 1;
  }
  return shape;
}

Shape result_of(const ConvolutionShape& shape, size_t dimensions) {
  Shape result{static_cast<ShapeElem>(shape.batch)};
  for (size_t d = 3 - dimensions; d < 3; ++d) result.push_back(safe_cast(shape.result[d], "conv"));
  result.push_back(static_cast<ShapeElem>(shape.outputs));
  return result;
}

// Inputs: input and weights, of one dtype.
class Convolution final : public Recorded<Convolution, Op> {
 public:
  Convolution(Stream stream, Parameters parameters, Follows follows, Shape kernel)
      : Recorded(stream),
        parameters_(std::move(parameters)),
        follows_(follows),
        kernel_(std::move(kernel)) {}
  void encode(Encoder& encoder, const std::vector<array>& inputs,
              std::vector<array>& outputs) override {
    kernels::backend_of(encoder).convolution(
        encoder, shape_of(parameters_, inputs[0].shape(), inputs[1].shape()), inputs[0], inputs[1],
        outputs[0]);
  }
  std::vector<Shape> output_shapes(const std::vector<array>& inputs) override {
    const Shape &input = inputs[0].shape(), &weight = inputs[1].shape();
    if (follows_ == Follows::nothing) return Op::output_shapes(inputs);
    if (follows_ == Follows::same_kernel && weight != kernel_) {
      throw std::invalid_argument(text("[conv] a transposed convolution that was traced with ",
                                       "weights of shape ", kernel_, " takes no others, got ",
                                       weight));
    }
    Shape result = result_of(shape_of(parameters_, input, weight), input.size() - 2);
    checked_size("conv", result, inputs[0].dtype());
    return {std::move(result)};
  }
  std::vector<array> vjp_rule(const std::vector<array>& primals,
                              const std::vector<array>& cotangents, const std::vector<int>& argnums,
                              const std::vector<array>& outputs) override;
  std::pair<std::vector<array>, std::vector<int>> vmap_rule(const std::vector<array>& inputs,
                                                            const std::vector<int>& axes) override;
  const char* name() const override { return "Convolution"; }
  static constexpr const char* recorded_as = "GeneralConvolution";
  auto members() const {
    const Parameters& p = parameters_;
    return std::tie(p.stride, p.low, p.high, p.dilation, p.input_dilation, p.groups, p.flip);
  }

 private:
  // The convolution that gives `like`, of these two: low padding as given, high padding as needed.
  array with_result(const array& input, const array& weight, const Shape& like,
                    const std::vector<int>& stride, const std::vector<int>& low,
                    const std::vector<int>& dilation, const std::vector<int>& input_dilation,
                    bool flip);
  array of_input(const array& input, const array& weight, const array& cotangent);
  array of_weight(const array& input, const array& weight, const array& cotangent);

  const Parameters parameters_;
  const Follows follows_;
  const Shape kernel_;  // the shape of the weights
};

// `input` and `weight` have three to five dimensions, as many as each other.
array convolution(const array& input, const array& weight, Parameters parameters, Follows follows,
                  StreamOrDevice s) {
  Dtype dtype = promote_types(input.dtype(), weight.dtype());
  if (!issubdtype(dtype, inexact)) {
    throw std::invalid_argument(text("[conv] expected a floating or complex dtype, got ", dtype));
  }
  Shape result = result_of(shape_of(parameters, input.shape(), weight.shape()), input.ndim() - 2);
  checked_size("conv", result, dtype);
  return make_node<Convolution>(std::move(result), dtype,
                                {astype(input, dtype, s), astype(weight, dtype, s)}, s,
                                std::move(parameters), follows, weight.shape());
}

array Convolution::with_result(const array& input, const array& weight, const Shape& like,
                               const std::vector<int>& stride, const std::vector<int>& low,
                               const std::vector<int>& dilation,
                               const std::vector<int>& input_dilation, bool flip) {
  std::vector<int> high;
  for (size_t d = 0; d < stride.size(); ++d) {
    int axis = static_cast<int>(d) + 1;
    int spread = (input.shape(axis) - 1) * input_dilation[d] + 1;
    int reach = (weight.shape(axis) - 1) * dilation[d] + 1;
    high.push_back((like[d + 1] - 1) * stride[d] + reach - spread - low[d]);
  }
  Parameters parameters{stride, low, std::move(high), dilation, input_dilation, parameters_.groups,
                        flip};
  return convolution(input, weight, std::move(parameters), Follows::nothing, stream());
}

// Each element of the input is reached from the results that it went into, through the same weights
// seen from the other side.
array Convolution::of_input(const array& input, const array& weight, const array& cotangent) {
  Stream s = stream();
  size_t dimensions = input.ndim() - 2;
  const Parameters& p = parameters_;
  std::vector<int> low;
  for (size_t d = 0; d < dimensions; ++d) {
    low.push_back((weight.shape(static_cast<int>(d) + 1) - 1) * p.dilation[d] - p.low[d]);
  }
  // (groups, outputs, …, channels) with outputs and channels exchanged.
  array turned = unflatten(weight, 0, {p.groups, -1}, s);
  turned = flatten(swapaxes(turned, 1, -1, s), 0, 1, s);
  if (weight.dtype() == complex64) turned = conjugate(turned, s);
  return with_result(cotangent, turned, input.shape(), p.input_dilation, low, p.dilation, p.stride,
                     !p.flip);
}

// Each weight is reached from all places where it was used: the input, convolved with the
// cotangent, where the batch is what is summed over.
array Convolution::of_weight(const array& input, const array& weight, const array& cotangent) {
  Stream s = stream();
  const Parameters& p = parameters_;
  array images = input.dtype() == complex64 ? conjugate(input, s) : input;
  // (batch, …, groups, channels) becomes (channels, …, groups * batch).
  images = moveaxis(unflatten(images, -1, {p.groups, -1}, s), 0, -1, s);
  images = flatten(moveaxis(images, -2, 0, s), -2, -1, s);
  array kernels = swapaxes(cotangent, 0, -1, s);
  Shape like = weight.shape();
  array result =
      with_result(images, kernels, like, p.dilation, p.low, p.stride, p.input_dilation, false);
  result = swapaxes(result, 0, -1, s);
  if (!p.flip) return result;
  std::vector<int> axes;
  for (size_t d = 0; d < p.stride.size(); ++d) axes.push_back(static_cast<int>(d) + 1);
  return flip(result, axes, s);
}

std::vector<array> Convolution::vjp_rule(const std::vector<array>& primals,
                                         const std::vector<array>& cotangents,
                                         const std::vector<int>& argnums,
                                         const std::vector<array>&) {
  const array &input = primals[0], &weight = primals[1], &cotangent = cotangents[0];
  bool is_empty = input.size() == 0 || weight.size() == 0 || cotangent.size() == 0;
  std::vector<array> result;
  for (int argnum : argnums) {
    if (is_empty) {
      result.push_back(zeros_like(primals[static_cast<size_t>(argnum)], stream()));
    } else {
      result.push_back(argnum == 0 ? of_input(input, weight, cotangent)
                                   : of_weight(input, weight, cotangent));
    }
  }
  return result;
}

// More inputs are a larger batch. More weights are more outputs of each group, and with as many
// inputs they are more groups.
std::pair<std::vector<array>, std::vector<int>> Convolution::vmap_rule(
    const std::vector<array>& inputs, const std::vector<int>& axes) {
  Stream s = stream();
  Parameters p = parameters_;
  if (axes[1] < 0) {
    array images = moveaxis(inputs[0], axes[0], 0, s);
    int size = images.shape(0), batch = images.shape(1);
    if (size == 0) return {};
    array out = convolution(flatten(images, 0, 1, s), inputs[1], p, follows_, s);
    return {{unflatten(out, 0, {size, batch}, s)}, {0}};
  }
  array weights = moveaxis(inputs[1], axes[1], 0, s);
  int size = weights.shape(0), outputs = weights.shape(1);
  if (size == 0 || outputs == 0 || weights.size() == 0) return {};
  Follows follows = follows_ == Follows::any ? Follows::any : Follows::nothing;
  if (axes[0] < 0) {
    // (groups, size, outputs of a group), in the weights as in what comes out.
    array grouped = unflatten(weights, 1, {p.groups, -1}, s);
    grouped = flatten(moveaxis(grouped, 1, 0, s), 0, 2, s);
    array out = convolution(inputs[0], grouped, p, follows, s);
    out = moveaxis(unflatten(out, -1, {p.groups, size, -1}, s), -2, 0, s);
    return {{flatten(out, -2, -1, s)}, {0}};
  }
  array images = moveaxis(inputs[0], axes[0], -2, s);
  p.groups *= size;
  array out = convolution(flatten(images, -2, -1, s), flatten(weights, 0, 1, s), p, follows, s);
  return {{moveaxis(unflatten(out, -1, {size, outputs}, s), -2, 0, s)}, {0}};
}

// One value for each spatial dimension.
std::vector<int> each(const char* what, const std::vector<int>& given, size_t dimensions,
                      int otherwise, int lowest) {
  std::vector<int> result = given;
  if (given.empty()) result.assign(dimensions, otherwise);
  if (given.size() == 1) result.assign(dimensions, given[0]);
  if (result.size() != dimensions) {
    throw std::invalid_argument(text("[conv] expected one ", what, " for each of ", dimensions,
                                     " spatial dimensions, got ", given));
  }
  for (int value : result) {
    if (value < lowest) {
      throw std::invalid_argument(
          text("[conv] expected ", what, " of at least ", lowest, ", got ", given));
    }
  }
  return result;
}

void check_dimensions(const char* op, const array& input, size_t spatial) {
  if (input.ndim() != spatial + 2) {
    throw std::invalid_argument(text("[", op, "] expected input with ", spatial + 2,
                                     " dimensions (batch, spatial, channels), got shape ",
                                     input.shape()));
  }
}

Parameters checked(const array& input, const array& weight, const std::vector<int>& stride,
                   const std::vector<int>& low, const std::vector<int>& high,
                   const std::vector<int>& dilation, const std::vector<int>& input_dilation,
                   int groups, bool flip) {
  if (input.ndim() < 3 || input.ndim() > 5 || weight.ndim() != input.ndim()) {
    throw std::invalid_argument(
        text("[conv] expected input and weight with three to five dimensions, alike, got shapes ",
             input.shape(), " and ", weight.shape()));
  }
  size_t spatial = input.ndim() - 2;
  constexpr int any = std::numeric_limits<int>::min();
  return {each("stride", stride, spatial, 1, 1),
          each("padding", low, spatial, 0, any),
          each("padding", high, spatial, 0, any),
          each("kernel dilation", dilation, spatial, 1, 1),
          each("input dilation", input_dilation, spatial, 1, 1),
          groups,
          flip};
}

array transposed(const char* op, const array& input, const array& weight,
                 const std::vector<int>& stride, const std::vector<int>& padding,
                 const std::vector<int>& dilation, const std::vector<int>& output_padding,
                 int groups, StreamOrDevice s) {
  check_dimensions(op, input, stride.size());
  check_dimensions(op, weight, stride.size());
  std::vector<int> low, high;
  for (size_t d = 0; d < stride.size(); ++d) {
    int64_t reach = int64_t{dilation[d]} * (weight.shape(static_cast<int>(d) + 1) - 1);
    low.push_back(safe_cast(reach - padding[d], op));
    high.push_back(safe_cast(reach - padding[d] + output_padding[d], op));
  }
  Parameters parameters = checked(input, weight, {}, low, high, dilation, stride, groups, true);
  return convolution(input, weight, std::move(parameters), Follows::same_kernel, s);
}

std::vector<int> list(const std::pair<int, int>& p) { return {p.first, p.second}; }
std::vector<int> list(const std::tuple<int, int, int>& t) {
  return {std::get<0>(t), std::get<1>(t), std::get<2>(t)};
}

}  // namespace

array conv_general(array input, array weight, std::vector<int> stride, std::vector<int> padding_lo,
                   std::vector<int> padding_hi, std::vector<int> kernel_dilation,
                   std::vector<int> input_dilation, int groups, bool flip, StreamOrDevice s) {
  Parameters parameters = checked(input, weight, stride, padding_lo, padding_hi, kernel_dilation,
                                  input_dilation, groups, flip);
  return convolution(input, weight, std::move(parameters), Follows::any, s);
}

array conv1d(const array& input, const array& weight, int stride, int padding, int dilation,
             int groups, StreamOrDevice s) {
  check_dimensions("conv1d", input, 1);
  return conv_general(input, weight, std::vector<int>{stride}, std::vector<int>{padding},
                      std::vector<int>{dilation}, {}, groups, false, s);
}
array conv2d(const array& input, const array& weight, const std::pair<int, int>& stride,
             const std::pair<int, int>& padding, const std::pair<int, int>& dilation, int groups,
             StreamOrDevice s) {
  check_dimensions("conv2d", input, 2);
  return conv_general(input, weight, list(stride), list(padding), list(dilation), {}, groups, false,
                      s);
}
array conv3d(const array& input, const array& weight, const std::tuple<int, int, int>& stride,
             const std::tuple<int, int, int>& padding, const std::tuple<int, int, int>& dilation,
             int groups, StreamOrDevice s) {
  check_dimensions("conv3d", input, 3);
  return conv_general(input, weight, list(stride), list(padding), list(dilation), {}, groups, false,
                      s);
}

array conv_transpose1d(const array& input, const array& weight, int stride, int padding,
                       int dilation, int output_padding, int groups, StreamOrDevice s) {
  return transposed("conv_transpose1d", input, weight, {stride}, {padding}, {dilation},
                    {output_padding}, groups, s);
}
array conv_transpose2d(const array& input, const array& weight, const std::pair<int, int>& stride,
                       const std::pair<int, int>& padding, const std::pair<int, int>& dilation,
                       const std::pair<int, int>& output_padding, int groups, StreamOrDevice s) {
  return transposed("conv_transpose2d", input, weight, list(stride), list(padding), list(dilation),
                    list(output_padding), groups, s);
}
array conv_transpose3d(const array& input, const array& weight,
                       const std::tuple<int, int, int>& stride,
                       const std::tuple<int, int, int>& padding,
                       const std::tuple<int, int, int>& dilation,
                       const std::tuple<int, int, int>& output_padding, int groups,
                       StreamOrDevice s) {
  return transposed("conv_transpose3d", input, weight, list(stride), list(padding), list(dilation),
                    list(output_padding), groups, s);
}

}  // namespace holdfast
