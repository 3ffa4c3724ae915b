// Convolutions: all forms lead to conv_general.
#include "kernels/cpu/convolution.h"
#include "kernels/cpu/task_scratch.h"
#include "ops/support.h"

namespace holdfast {

namespace {

// Inputs: input and weights, of one dtype.
class Convolution final : public Op {
 public:
  Convolution(Stream stream, const cpu::ConvolutionShape& shape) : Op(stream), shape_(shape) {}
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
  const char* name() const override { return "Convolution"; }

 private:
  cpu::ConvolutionShape shape_;
};

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
    int reach = dilation[d] * (weight.shape(static_cast<int>(d) + 1) - 1);
    low.push_back(reach - padding[d]);
    high.push_back(reach - padding[d] + output_padding[d]);
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
