// Convolutions: all forms lead to conv_general.
#include "kernels/cpu/convolution.h"
#include "kernels/cpu/task_scratch.h"
#include "ops/support.h"

namespace holdfast {

namespace {

// Inputs: input and weights, of one dtype.
class Convolution final : public Recorded<Convolution, Op> {
 public:
  Convolution(Stream stream, const cpu::ConvolutionShape& shape)
      : Recorded(stream), shape_(shape) {}
  void encode(Encoder& encoder, const std::vector<array>& inputs,
              std::vector<array>& outputs) override {
    array& out = outputs[0];
    encoder.allocate(out);
    if (out.size() == 0) return;
    array input = make_dense(encoder, name(), inputs[0]);
    array weights = make_dense(encoder, name(), inputs[1]);
    cpu::ConvolutionPlan plan(out.dtype(), shape_);
    encoder.input(input);
    encoder.input(weights);
    encoder.output(out);
    const void* from = input.data<char>();
    const void* with = weights.data<char>();
    void* to = out.data<char>();
    int64_t depth = static_cast<int64_t>(weights.size()) / shape_.outputs;
    int64_t work =
        static_cast<int64_t>(out.size()) * depth / 8 + static_cast<int64_t>(out.nbytes());
    int64_t tasks = plan.tasks();
    encoder.native(name(), tasks, work, [=, plan = std::move(plan)](int64_t begin, int64_t end) {
      cpu::TaskScratch scratch(plan.task_scratch_bytes());
      for (int64_t task = begin; task < end; ++task) {
        plan.run(task, from, with, to, scratch.get());
      }
    });
  }
  std::vector<array> vjp(const std::vector<array>& primals, const std::vector<array>& cotangents,
                         const std::vector<int>& argnums,
                         const std::vector<array>& outputs) override;
  std::pair<std::vector<array>, std::vector<int>> vmap(const std::vector<array>& inputs,
                                                       const std::vector<int>& axes) override;
  const char* name() const override { return "Convolution"; }
  auto members() const {
    return std::tuple(spatial(shape_.stride, 3), spatial(shape_.padding, 3),
                      spatial(shape_.dilation, 3), spatial(shape_.input_dilation, 3),
                      static_cast<int>(shape_.groups), shape_.flip);
  }

 private:
  // The convolution that gives `like`, of these two: low padding as given, high padding as needed.
  array with_result(const array& input, const array& weight, const Shape& like,
                    const std::vector<int>& stride, const std::vector<int>& low,
                    const std::vector<int>& dilation, const std::vector<int>& input_dilation,
                    bool flip);
  array of_input(const array& input, const array& weight, const array& cotangent);
  array of_weight(const array& input, const array& weight, const array& cotangent);
  // A column of shape_ for the spatial dimensions that there are.
  std::vector<int> spatial(const int64_t (&column)[3], size_t dimensions) const {
    return {column + 3 - dimensions, column + 3};
  }

  cpu::ConvolutionShape shape_;
};

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
  return conv_general(input, weight, stride, low, high, dilation, input_dilation,
                      static_cast<int>(shape_.groups), flip, stream());
}

// Each element of the input is reached from the results that it went into, through the same weights
// seen from the other side.
array Convolution::of_input(const array& input, const array& weight, const array& cotangent) {
  Stream s = stream();
  size_t dimensions = input.ndim() - 2;
  std::vector<int> stride = spatial(shape_.stride, dimensions),
                   dilation = spatial(shape_.dilation, dimensions),
                   padding = spatial(shape_.padding, dimensions), low;
  for (size_t d = 0; d < dimensions; ++d) {
    low.push_back((weight.shape(static_cast<int>(d) + 1) - 1) * dilation[d] - padding[d]);
  }
  // (groups, outputs, …, channels) with outputs and channels exchanged.
  int groups = static_cast<int>(shape_.groups);
  array turned = unflatten(weight, 0, {groups, -1}, s);
  turned = flatten(swapaxes(turned, 1, -1, s), 0, 1, s);
  if (weight.dtype() == complex64) turned = conjugate(turned, s);
  return with_result(cotangent, turned, input.shape(), spatial(shape_.input_dilation, dimensions),
                     low, dilation, stride, !shape_.flip);
}

// Each weight is reached from all places where it was used: the input, convolved with the
// cotangent, where the batch is what is summed over.
array Convolution::of_weight(const array& input, const array& weight, const array& cotangent) {
  Stream s = stream();
  size_t dimensions = input.ndim() - 2;
  int groups = static_cast<int>(shape_.groups);
  array images = input.dtype() == complex64 ? conjugate(input, s) : input;
  // (batch, …, groups, channels) becomes (channels, …, groups * batch).
  images = moveaxis(unflatten(images, -1, {groups, -1}, s), 0, -1, s);
  images = flatten(moveaxis(images, -2, 0, s), -2, -1, s);
  array kernels = swapaxes(cotangent, 0, -1, s);
  Shape like = weight.shape();
  array result =
      with_result(images, kernels, like, spatial(shape_.dilation, dimensions),
                  spatial(shape_.padding, dimensions), spatial(shape_.stride, dimensions),
                  spatial(shape_.input_dilation, dimensions), false);
  result = swapaxes(result, 0, -1, s);
  if (!shape_.flip) return result;
  std::vector<int> axes;
  for (size_t d = 0; d < dimensions; ++d) axes.push_back(static_cast<int>(d) + 1);
  return flip(result, axes, s);
}

std::vector<array> Convolution::vjp(const std::vector<array>& primals,
                                    const std::vector<array>& cotangents,
                                    const std::vector<int>& argnums, const std::vector<array>&) {
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

// More inputs are a larger batch; more weights are as many convolutions.
std::pair<std::vector<array>, std::vector<int>> Convolution::vmap(const std::vector<array>& inputs,
                                                                  const std::vector<int>& axes) {
  if (axes[1] >= 0) return {};
  Stream s = stream();
  array input = moveaxis(inputs[0], axes[0], 0, s);
  int size = input.shape(0);
  if (size == 0) return {};
  cpu::ConvolutionShape shape = shape_;
  shape.batch *= size;
  array images = flatten(input, 0, 1, s);
  Shape result{images.shape(0)};
  size_t dimensions = images.ndim() - 2;
  for (int dim : spatial(shape_.result, dimensions)) result.push_back(dim);
  result.push_back(static_cast<ShapeElem>(shape_.outputs));
  array out =
      make_node<Convolution>(std::move(result), images.dtype(), {images, inputs[1]}, s, shape);
  return {{unflatten(out, 0, {size, inputs[0].shape(axes[0] == 0 ? 1 : 0)}, s)}, {0}};
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
  return conv_general(input, weight, {}, low, high, dilation, stride, groups, true, s);
}

std::vector<int> list(const std::pair<int, int>& p) { return {p.first, p.second}; }
std::vector<int> list(const std::tuple<int, int, int>& t) {
  return {std::get<0>(t), std::get<1>(t), std::get<2>(t)};
}

}  // namespace

array conv_general(array input, array weight, std::vector<int> stride, std::vector<int> padding_lo,
                   std::vector<int> padding_hi, std::vector<int> kernel_dilation,
                   std::vector<int> input_dilation, int groups, bool flip, StreamOrDevice s) {
  auto fail = [](const auto&... parts) { throw std::invalid_argument(text("[conv] ", parts...)); };
  if (input.ndim() < 3 || input.ndim() > 5 || weight.ndim() != input.ndim()) {
    fail("expected input and weight with three to five dimensions, alike, got shapes ",
         input.shape(), " and ", weight.shape());
  }
  size_t spatial = input.ndim() - 2;
  stride = each("stride", stride, spatial, 1, 1);
  constexpr int any = std::numeric_limits<int>::min();
  padding_lo = each("padding", padding_lo, spatial, 0, any);
  padding_hi = each("padding", padding_hi, spatial, 0, any);
  kernel_dilation = each("kernel dilation", kernel_dilation, spatial, 1, 1);
  input_dilation = each("input dilation", input_dilation, spatial, 1, 1);
  int channels = input.shape(-1), outputs = weight.shape(0);
  if (groups < 1 || channels % groups != 0 || outputs % groups != 0) {
    fail("channels (", channels, ") and outputs (", outputs,
         ") must be multiples of the number of groups, got ", groups);
  }
  if (weight.shape(-1) != channels / groups) {
    fail("last dimension of weight (", weight.shape(-1), ") must be channels / groups (", channels,
         " / ", groups, "): shapes ", input.shape(), " and ", weight.shape());
  }
  Dtype dtype = promote_types(input.dtype(), weight.dtype());
  if (!issubdtype(dtype, inexact)) fail("expected a floating or complex dtype, got ", dtype);
  cpu::ConvolutionShape shape{};
  shape.batch = input.shape(0);
  shape.channels = channels;
  shape.outputs = outputs;
  shape.groups = groups;
  shape.flip = flip;
  Shape result{input.shape(0)};
  for (size_t d = 0; d < 3; ++d) {
    shape.size[d] = shape.kernel[d] = shape.result[d] = 1;
    shape.stride[d] = shape.dilation[d] = shape.input_dilation[d] = 1;
    shape.padding[d] = 0;
    size_t missing = 3 - spatial;
    if (d < missing) continue;
    size_t from = d - missing;
    int axis = static_cast<int>(from) + 1;
    shape.size[d] = input.shape(axis);
    shape.kernel[d] = weight.shape(axis);
    shape.stride[d] = stride[from];
    shape.padding[d] = padding_lo[from];
    shape.dilation[d] = kernel_dilation[from];
    shape.input_dilation[d] = input_dilation[from];
    int64_t spread = shape.size[d] == 0 ? 0 : (shape.size[d] - 1) * shape.input_dilation[d] + 1;
    int64_t reach = (shape.kernel[d] - 1) * shape.dilation[d] + 1;
    int64_t room = spread + padding_lo[from] + padding_hi[from] - reach;
    if (room < 0 || shape.kernel[d] == 0) {
      fail("the kernel does not fit the padded input: shapes ", input.shape(), " and ",
           weight.shape());
    }
    shape.result[d] = room / shape.stride[d] + 1;
    result.push_back(safe_cast(shape.result[d], "conv"));
  }
  result.push_back(outputs);
  checked_size("conv", result, dtype);
  return make_node<Convolution>(
      std::move(result), dtype,
      {astype(std::move(input), dtype, s), astype(std::move(weight), dtype, s)}, s, shape);
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
