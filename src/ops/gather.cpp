// Picking elements by index.
#include "ops/dynamic_shape.h"
#include "ops/support.h"

namespace holdfast {

namespace {

Shape taken_shape(const array& a, const array& indices, int axis) {
  if (indices.size() > 0 && a.shape(axis) == 0) {
    throw std::invalid_argument(
        text("[take] cannot take from an empty axis: axis ", axis, " of shape ", a.shape()));
  }
  Shape shape(a.shape().begin(), a.shape().begin() + axis);
  shape.insert(shape.end(), indices.shape().begin(), indices.shape().end());
  shape.insert(shape.end(), a.shape().begin() + axis + 1, a.shape().end());
  checked_size("take", shape, a.dtype());
  return shape;
}

class Gather final : public Recorded<Gather, Op> {
 public:
  Gather(Stream stream, int axis) : Recorded(stream), axis_(axis) {}
  void encode(Encoder& encoder, const std::vector<array>& inputs,
              std::vector<array>& outputs) override {
    kernels::backend_of(encoder).gather(encoder, {kernels::IndexKind::take, {&axis_, 1}}, inputs[0],
                                        {&inputs[1], 1}, outputs[0]);
  }
  std::vector<array> vjp_rule(const std::vector<array>& primals,
                              const std::vector<array>& cotangents, const std::vector<int>& argnums,
                              const std::vector<array>& outputs) override;
  std::pair<std::vector<array>, std::vector<int>> vmap_rule(const std::vector<array>& inputs,
                                                            const std::vector<int>& axes) override;
  std::vector<Shape> output_shapes(const std::vector<array>& inputs) override {
    return {taken_shape(inputs[0], inputs[1], axis_)};
  }
  const char* name() const override { return "Gather"; }
  static constexpr const char* recorded_as = "Take";
  auto members() const { return std::tie(axis_); }

 private:
  int axis_;
};

// Every taken slice is added to where it came from.
std::vector<array> Gather::vjp_rule(const std::vector<array>& primals,
                                    const std::vector<array>& cotangents, const std::vector<int>&,
                                    const std::vector<array>&) {
  const array &a = primals[0], &indices = primals[1];
  int count = static_cast<int>(indices.ndim());
  array updates = cotangents[0];
  for (int i = 0; i < count; ++i) updates = moveaxis(updates, axis_ + i, i, stream());
  updates = expand_dims(updates, count + axis_, stream());
  return {scatter_add(zeros_like(a, stream()), std::vector<array>{indices}, updates,
                      std::vector<int>{axis_}, stream())};
}

std::pair<std::vector<array>, std::vector<int>> Gather::vmap_rule(const std::vector<array>& inputs,
                                                                  const std::vector<int>& axes) {
  Stream s = stream();
  if (axes[1] < 0) {
    return {{take(moveaxis(inputs[0], axes[0], 0, s), inputs[1], axis_ + 1, s)}, {0}};
  }
  array indices = moveaxis(inputs[1], axes[1], 0, s);
  if (axes[0] < 0) return {{take(inputs[0], indices, axis_, s)}, {axis_}};
  // Each call takes from its own array: the number of the call is an index, too.
  array a = moveaxis(inputs[0], axes[0], 0, s);
  check_shape_known("take", a);
  Shape numbers(indices.ndim(), 1), sizes = a.shape();
  numbers[0] = a.shape(0);
  sizes[0] = sizes[static_cast<size_t>(axis_) + 1] = 1;
  array calls = reshape_here(arange(0, a.shape(0), 1, s), numbers, s);
  array taken = gather(a, {calls, indices}, {0, axis_ + 1}, sizes, s);
  int count = static_cast<int>(indices.ndim());
  taken = squeeze(taken, {count, count + axis_ + 1}, s);
  // (call, indices..., axes before, axes behind): the indices go between those.
  for (int i = 1; i < count; ++i) taken = moveaxis(taken, 1, count + axis_ - 1, s);
  return {{taken}, {0}};
}

// The indices say how long the axis is; all others broadcast.
Shape gathered_shape(const array& a, const array& indices, size_t axis) {
  Shape shape = a.shape(), others = indices.shape();
  shape[axis] = others[axis] = 1;
  shape = broadcast_shapes_for("take_along_axis", shape, others);
  shape[axis] = indices.shape()[axis];
  return shape;
}

// out[i, j, k] = a[i, indices[i, j, k], k]
class GatherAxis final : public Recorded<GatherAxis, Op> {
 public:
  GatherAxis(Stream stream, int axis) : Recorded(stream), axis_(axis) {}
  void encode(Encoder& encoder, const std::vector<array>& inputs,
              std::vector<array>& outputs) override {
    kernels::backend_of(encoder).gather(encoder, {kernels::IndexKind::along_axis, {&axis_, 1}},
                                        inputs[0], {&inputs[1], 1}, outputs[0]);
  }
  std::vector<array> vjp_rule(const std::vector<array>& primals,
                              const std::vector<array>& cotangents, const std::vector<int>& argnums,
                              const std::vector<array>& outputs) override;
  std::shared_ptr<Primitive> with_leading_axis() override {
    return std::make_shared<GatherAxis>(stream(), axis_ + 1);
  }
  std::vector<Shape> output_shapes(const std::vector<array>& inputs) override {
    return {gathered_shape(inputs[0], inputs[1], static_cast<size_t>(axis_))};
  }
  const char* name() const override { return "GatherAxis"; }
  auto members() const { return std::tie(axis_); }

 private:
  int axis_;
};

std::vector<array> GatherAxis::vjp_rule(const std::vector<array>& primals,
                                        const std::vector<array>& cotangents,
                                        const std::vector<int>&, const std::vector<array>&) {
  const array& a = primals[0];
  Shape shape = cotangents[0].shape();  // the array may have been broadcast along other axes
  shape[static_cast<size_t>(axis_)] = a.shape(axis_);
  array nothing = shape == a.shape() ? zeros_like(a, stream()) : zeros(shape, a.dtype(), stream());
  array sums = scatter_add_axis(nothing, primals[1], cotangents[0], axis_, stream());
  return {sum_like(sums, a, stream())};
}

void check_indices(const char* op, const array& indices) {
  if (!issubdtype(indices.dtype(), integer)) {
    throw std::invalid_argument(
        text("[", op, "] expected indices of integers, got ", indices.dtype()));
  }
}

}  // namespace

array take(const array& a, const array& indices, int axis, StreamOrDevice s) {
  int at = checked_axis("take", axis, a.ndim());
  check_indices("take", indices);
  return make_node<Gather>(taken_shape(a, indices, at), a.dtype(), {a, indices}, s, at);
}

array take(const array& a, int index, int axis, StreamOrDevice s) {
  int at = checked_axis("take", axis, a.ndim());
  if (index < -a.shape(at) || index >= a.shape(at)) {
    throw std::invalid_argument(
        text("[take] index ", index, " is out of range for axis ", at, " of shape ", a.shape()));
  }
  SliceNumbers one = cut_of(a, at, index, index == -1 ? to_the_end : index + 1);
  return squeeze(slice_by(a, one, s), at, s);
}

array take(const array& a, const array& indices, StreamOrDevice s) {
  return take(flatten(a, s), indices, 0, s);
}

array take(const array& a, int index, StreamOrDevice s) { return take(flatten(a, s), index, 0, s); }

array take_along_axis(const array& a, const array& indices, int axis, StreamOrDevice s) {
  int at = checked_axis("take_along_axis", axis, a.ndim());
  check_indices("take_along_axis", indices);
  if (indices.ndim() != a.ndim()) {
    throw std::invalid_argument(text("[take_along_axis] expected indices with ", a.ndim(),
                                     " dimensions, got shape ", indices.shape()));
  }
  Shape shape = gathered_shape(a, indices, static_cast<size_t>(at));
  checked_size("take_along_axis", shape, a.dtype());
  return make_node<GatherAxis>(std::move(shape), a.dtype(), {a, indices}, s, at);
}

}  // namespace holdfast
