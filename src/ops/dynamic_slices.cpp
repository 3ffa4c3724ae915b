// Slices in traces for any shape: the numbers stay as they were given, and mean for each array what
// they mean in a call of slice.
#include <algorithm>

#include "ops/dynamic_shape.h"
#include "ops/views.h"

namespace holdfast {

namespace {

struct Normalized {
  Shape start, size;
};

Normalized normalized(const SliceNumbers& numbers, const Shape& shape) {
  Normalized result;
  for (size_t i = 0; i < shape.size(); ++i) {
    SliceRange range =
        normalized_range(numbers.start[i], numbers.stop[i], numbers.steps[i], shape[i]);
    result.start.push_back(range.start);
    result.size.push_back(range.size);
  }
  return result;
}

SliceNumbers with_front(const SliceNumbers& numbers) {
  return {with_front(0, numbers.start), with_front(to_the_end, numbers.stop),
          with_front(1, numbers.steps)};
}

class SliceBy final : public Recorded<SliceBy, Single<ViewOp>> {
 public:
  SliceBy(Stream stream, SliceNumbers numbers) : Recorded(stream), numbers_(std::move(numbers)) {}
  void encode(Encoder& encoder, const std::vector<array>& inputs,
              std::vector<array>& outputs) override {
    Shape start = normalized(numbers_, inputs[0].shape()).start;
    Slice(stream(), std::move(start), numbers_.steps).encode(encoder, inputs, outputs);
  }
  array pull_back(const array& input, const array& cotangent, const array&) override {
    return slice_update_by(zeros_like(input, stream()), cotangent, numbers_, stream());
  }
  std::shared_ptr<Primitive> with_leading_axis() override {
    return std::make_shared<SliceBy>(stream(), with_front(numbers_));
  }
  std::vector<Shape> output_shapes(const std::vector<array>& inputs) override {
    return {normalized(numbers_, inputs[0].shape()).size};
  }
  const char* name() const override { return "SliceBy"; }
  auto members() const { return std::tie(numbers_.start, numbers_.stop, numbers_.steps); }

 private:
  SliceNumbers numbers_;
};

// Inputs: the array, what replaces the slice, of its shape.
class SliceUpdateBy final : public Recorded<SliceUpdateBy, Op> {
 public:
  SliceUpdateBy(Stream stream, SliceNumbers numbers)
      : Recorded(stream), numbers_(std::move(numbers)) {}
  void encode(Encoder& encoder, const std::vector<array>& inputs,
              std::vector<array>& outputs) override {
    array& out = outputs[0];
    copy_or_take(encoder, inputs[0], out);
    if (inputs[1].size() == 0) return;
    Shape start = normalized(numbers_, out.shape()).start;
    kernels::SliceRegion region = kernels::slice_region(out.strides(), start, numbers_.steps);
    kernels::backend_of(encoder).slice_update(encoder, region, kernels::UpdateMode::replace,
                                              inputs[1], nullptr, out);
  }
  std::vector<array> vjp_rule(const std::vector<array>& primals,
                              const std::vector<array>& cotangents, const std::vector<int>& argnums,
                              const std::vector<array>&) override {
    std::vector<array> result;
    for (int argnum : argnums) {
      result.push_back(
          argnum == 0
              ? slice_update_by(cotangents[0], zeros_like(primals[1], stream()), numbers_, stream())
              : slice_by(cotangents[0], numbers_, stream()));
    }
    return result;
  }
  std::shared_ptr<Primitive> with_leading_axis() override {
    return std::make_shared<SliceUpdateBy>(stream(), with_front(numbers_));
  }
  std::vector<Shape> output_shapes(const std::vector<array>& inputs) override {
    Shape expected = normalized(numbers_, inputs[0].shape()).size;
    if (inputs[1].shape() != expected) {
      throw std::invalid_argument(text("[slice_update] expected an update of the slice's shape ",
                                       expected, ", got ", inputs[1].shape()));
    }
    return {inputs[0].shape()};
  }
  const char* name() const override { return "SliceUpdateBy"; }
  auto members() const { return std::tie(numbers_.start, numbers_.stop, numbers_.steps); }

 private:
  SliceNumbers numbers_;
};

}  // namespace

void check_slice(const char* op, const array& a, const SliceNumbers& numbers) {
  const auto& [start, stop, steps] = numbers;
  if (start.size() != a.ndim() || stop.size() != a.ndim() || steps.size() != a.ndim()) {
    throw std::invalid_argument(text("[", op,
                                     "] expected one start, stop and stride for each axis "
                                     "of shape ",
                                     a.shape(), ", got ", start, ", ", stop, " and ", steps));
  }
  if (std::find(steps.begin(), steps.end(), 0) != steps.end()) {
    throw std::invalid_argument(text("[", op, "] strides must not be 0, got ", steps));
  }
}

SliceNumbers cut_of(const array& a, int axis, ShapeElem start, ShapeElem stop) {
  SliceNumbers numbers{Shape(a.ndim(), 0), Shape(a.ndim(), to_the_end), Shape(a.ndim(), 1)};
  numbers.start[static_cast<size_t>(axis)] = start;
  numbers.stop[static_cast<size_t>(axis)] = stop;
  return numbers;
}

array slice_by(const array& a, const SliceNumbers& numbers, StreamOrDevice s) {
  check_slice("slice", a, numbers);
  if (!has_open_shape(a)) return slice(a, numbers.start, numbers.stop, numbers.steps, s);
  Shape shape = normalized(numbers, a.shape()).size;
  return make_node<SliceBy>(std::move(shape), a.dtype(), {a}, s, numbers);
}

array slice_update_by(const array& src, const array& update, const SliceNumbers& numbers,
                      StreamOrDevice s) {
  check_slice("slice_update", src, numbers);
  if (!has_open_shape(src) && !has_open_shape(update)) {
    return slice_update(src, update, numbers.start, numbers.stop, numbers.steps, s);
  }
  array wanted = broadcast_like(update, slice_by(src, numbers, s), s);
  Shape expected = normalized(numbers, src.shape()).size;
  if (wanted.shape() != expected) {
    throw std::invalid_argument(text("[slice_update] an update of shape ", update.shape(),
                                     " cannot be broadcast to the slice of shape ", expected));
  }
  return make_node<SliceUpdateBy>(src.shape(), src.dtype(), {src, astype(wanted, src.dtype(), s)},
                                  s, numbers);
}

}  // namespace holdfast
