#include "ops/dynamic_shape.h"

#include <algorithm>

#include <holdfast/tracing.h>

#include "ops/reduction.h"
#include "ops/views.h"

namespace holdfast {

namespace {

Shape broadcast_of(const std::vector<array>& arrays) {
  Shape shape;
  for (const array& a : arrays) shape = broadcast_shapes_for("broadcast", shape, a.shape());
  return shape;
}

Shape shape_by(const array& a, const Shape& recipe) {
  Shape shape = recipe;
  for (ShapeElem& dim : shape) {
    if (dim >= -1) continue;
    size_t from = static_cast<size_t>(-2 - int64_t{dim});
    if (from >= a.ndim()) {
      throw std::invalid_argument(text("[reshape] no dimension ", from, " in shape ", a.shape()));
    }
    dim = a.shape()[from];
  }
  return inferred_shape("reshape", a, static_cast<int64_t>(a.size()), std::move(shape));
}

// Over which axes `a` is summed to become like `like`. The first `leading` ones are of both.
std::vector<int> summed_axes(const array& a, const array& like, int leading) {
  std::vector<int> axes;
  int added = static_cast<int>(a.ndim()) - static_cast<int>(like.ndim());
  bool fits = added >= 0 && leading >= 0 && leading <= static_cast<int>(like.ndim());
  for (int i = 0; fits && i < static_cast<int>(a.ndim()); ++i) {
    bool is_added = i >= leading && i < leading + added;
    int kept = is_added ? 1 : like.shape(i < leading ? i : i - added);
    if (is_added || kept != a.shape(i)) axes.push_back(i);
    fits = is_added || kept == a.shape(i) || kept == 1;
  }
  if (!fits) {
    throw std::invalid_argument(text("[sum_like] an array of shape ", a.shape(),
                                     " is no broadcast of one of shape ", like.shape()));
  }
  return axes;
}

// The first input, broadcast with all others and to `target`; of the others only shapes matter.
class BroadcastWith final : public Recorded<BroadcastWith, ViewOp> {
 public:
  BroadcastWith(Stream stream, Shape target) : Recorded(stream), target_(std::move(target)) {
    traits_.broadcasts = true;
  }
  void encode(Encoder&, const std::vector<array>& inputs, std::vector<array>& outputs) override {
    const array& in = inputs[0];
    share(in, outputs[0], broadcast_strides(in.shape(), in.strides(), outputs[0].shape()));
  }
  std::vector<array> vjp_rule(const std::vector<array>& primals,
                              const std::vector<array>& cotangents, const std::vector<int>&,
                              const std::vector<array>&) override {
    return {sum_like(cotangents[0], primals[0], stream())};
  }
  std::vector<Shape> output_shapes(const std::vector<array>& inputs) override {
    Shape shape = broadcast_shapes_for("broadcast", broadcast_of(inputs), target_);
    // More dimensions are in front of it when the trace is mapped.
    if (!std::equal(target_.rbegin(), target_.rend(), shape.rbegin())) {
      throw std::invalid_argument(text("[broadcast_to] an array of shape ", inputs[0].shape(),
                                       " cannot be broadcast to shape ", target_));
    }
    return {std::move(shape)};
  }
  const char* name() const override { return "BroadcastWith"; }
  auto members() const { return std::tie(target_); }

 private:
  Shape target_;  // the last dimensions, where they are given
};

// The first input, summed over what the second has not. The first `leading` dimensions are those of
// both.
class SumLike final : public Recorded<SumLike, Op> {
 public:
  SumLike(Stream stream, int leading) : Recorded(stream), leading_(leading) {}
  void encode(Encoder& encoder, const std::vector<array>& inputs,
              std::vector<array>& outputs) override {
    std::vector<int> axes = summed_axes(inputs[0], inputs[1], leading_);
    if (axes.empty()) {
      outputs[0].copy_shared_buffer(inputs[0]);
      return;
    }
    Reduce(stream(), Reduce::Sum, std::move(axes)).encode(encoder, inputs, outputs);
  }
  std::vector<array> vjp_rule(const std::vector<array>& primals,
                              const std::vector<array>& cotangents, const std::vector<int>&,
                              const std::vector<array>&) override {
    int added = static_cast<int>(primals[0].ndim() - primals[1].ndim());
    std::vector<int> axes;
    for (int i = 0; i < added; ++i) axes.push_back(leading_ + i);
    return {broadcast_like(expand_dims(cotangents[0], axes, stream()), primals[0], stream())};
  }
  std::shared_ptr<Primitive> with_leading_axis() override {
    return std::make_shared<SumLike>(stream(), leading_ + 1);
  }
  std::vector<Shape> output_shapes(const std::vector<array>& inputs) override {
    summed_axes(inputs[0], inputs[1], leading_);
    return {inputs[1].shape()};
  }
  const char* name() const override { return "SumLike"; }
  auto members() const { return std::tie(leading_); }

 private:
  int leading_;
};

// As Reshape, to the shape of the second input.
class ReshapeLike final : public Recorded<ReshapeLike, Op> {
 public:
  using Recorded::Recorded;
  void encode(Encoder& encoder, const std::vector<array>& inputs,
              std::vector<array>& outputs) override {
    Reshape(stream()).encode(encoder, inputs, outputs);
  }
  std::vector<array> vjp_rule(const std::vector<array>& primals,
                              const std::vector<array>& cotangents, const std::vector<int>&,
                              const std::vector<array>&) override {
    return {reshape_like(cotangents[0], primals[0], stream())};
  }
  std::shared_ptr<Primitive> with_leading_axis() override {
    return std::make_shared<ReshapeLike>(stream());
  }
  std::vector<Shape> output_shapes(const std::vector<array>& inputs) override {
    return {inferred_shape("reshape", inputs[0], static_cast<int64_t>(inputs[0].size()),
                           inputs[1].shape())};
  }
  const char* name() const override { return "ReshapeLike"; }
  auto members() const { return std::tie(); }
};

// As Reshape, by a recipe.
class ReshapeBy final : public Recorded<ReshapeBy, Single<Op>> {
 public:
  ReshapeBy(Stream stream, Shape recipe) : Recorded(stream), recipe_(std::move(recipe)) {}
  void encode(Encoder& encoder, const std::vector<array>& inputs,
              std::vector<array>& outputs) override {
    Reshape(stream()).encode(encoder, inputs, outputs);
  }
  array pull_back(const array& input, const array& cotangent, const array&) override {
    return reshape_like(cotangent, input, stream());
  }
  std::shared_ptr<Primitive> with_leading_axis() override {
    Shape recipe{same_as(0)};
    for (ShapeElem dim : recipe_) recipe.push_back(dim < -1 ? dim - 1 : dim);
    return std::make_shared<ReshapeBy>(stream(), std::move(recipe));
  }
  std::vector<Shape> output_shapes(const std::vector<array>& inputs) override {
    return {shape_by(inputs[0], recipe_)};
  }
  const char* name() const override { return "ReshapeBy"; }
  auto members() const { return std::tie(recipe_); }

 private:
  Shape recipe_;
};

}  // namespace

bool has_open_shape(const array& a) { return detail::in_dynamic_tracing() && a.is_tracer(); }

void check_shape_known(const char* op, const array& a) {
  if (!has_open_shape(a)) return;
  throw std::invalid_argument(text("[", op, "] computes with the sizes of its argument, which a ",
                                   "trace for any shape does not know; compile or export the ",
                                   "function without `shapeless`"));
}

array broadcast_with(const array& a, const std::vector<array>& others, const Shape& target,
                     StreamOrDevice s) {
  Shape shape = broadcast_shapes_for("broadcast", a.shape(), target);
  shape = broadcast_shapes_for("broadcast", shape, broadcast_of(others));
  if (!has_open_shape(a) && std::none_of(others.begin(), others.end(), has_open_shape)) {
    return broadcast_to(a, shape, s);
  }
  checked_size("broadcast", shape, a.dtype());
  std::vector<array> inputs = {a};
  for (const array& other : others) inputs.push_back(stop_gradient(other, s));
  return make_node<BroadcastWith>(std::move(shape), a.dtype(), std::move(inputs), s, target);
}

array broadcast_like(const array& a, const array& like, StreamOrDevice s) {
  return broadcast_with(a, {like}, {}, s);
}

array sum_like(const array& a, const array& like, StreamOrDevice s, int leading) {
  if (has_open_shape(a) || has_open_shape(like)) {
    return make_node<SumLike>(like.shape(), a.dtype(), {a, stop_gradient(like, s)}, s, leading);
  }
  if (leading == 0) return sum_to_shape(a, like.shape(), s);
  return reshape(sum(a, summed_axes(a, like, leading), true, s), like.shape(), s);
}

array reshape_like(const array& a, const array& like, StreamOrDevice s) {
  if (!has_open_shape(a) && !has_open_shape(like)) return reshape(a, like.shape(), s);
  return make_node<ReshapeLike>(like.shape(), a.dtype(), {a, stop_gradient(like, s)}, s);
}

array reshape_by(const array& a, Shape recipe, StreamOrDevice s) {
  Shape shape = shape_by(a, recipe);
  if (!has_open_shape(a)) return shape == a.shape() ? a : reshape(a, std::move(shape), s);
  return make_node<ReshapeBy>(std::move(shape), a.dtype(), {a}, s, std::move(recipe));
}

array as_one_batch(const array& a, StreamOrDevice s) {
  int rank = static_cast<int>(a.ndim());
  int64_t count = 1;
  for (int i = 0; i + 2 < rank; ++i) count *= a.shape(i);
  if (!has_open_shape(a)) return reshape(a, {safe_cast(count), a.shape(-2), a.shape(-1)}, s);
  return reshape_by(a, {-1, same_as(rank - 2), same_as(rank - 1)}, s);
}

array numbers_of_matrices(const array& a, StreamOrDevice s) {
  int rank = static_cast<int>(a.ndim());
  Shape batch(a.shape().begin(), a.shape().end() - 2);
  if (!has_open_shape(a)) {
    double count = 1;
    for (ShapeElem dim : batch) count *= dim;
    return reshape(arange(0, count, uint32, s), batch, s);
  }
  // Counted by a sum of ones, since no number may be taken from a shape.
  SliceNumbers corner = cut_of(a, rank - 1, 0, 1);
  corner.stop[static_cast<size_t>(rank - 2)] = 1;
  array like = squeeze(slice_by(a, corner, s), {rank - 2, rank - 1}, s);
  array ones = ones_like(flatten(like, s), uint32, s);
  return reshape_like(cumsum(ones, 0, false, false, std::nullopt, s), like, s);
}

array reshape_here(const array& a, Shape shape, StreamOrDevice s) {
  if (!has_open_shape(a)) return reshape(a, std::move(shape), s);
  shape = inferred_shape("reshape", a, static_cast<int64_t>(a.size()), std::move(shape));
  return make_node<Reshape>(std::move(shape), a.dtype(), {a}, s);
}

array broadcast_here(const array& a, const Shape& shape, StreamOrDevice s) {
  if (!has_open_shape(a)) return broadcast_to(a, shape, s);
  return make_node<Broadcast>(shape, a.dtype(), {a}, s);
}

}  // namespace holdfast
