// Slices, splits and joins.
#include <algorithm>
#include <memory>

#include "ops/dynamic_shape.h"
#include "ops/views.h"

namespace holdfast {

namespace {

// Slices whose start is known only when the op runs; they are copied.
class DynamicSlice final : public Recorded<DynamicSlice, Op> {
 public:
  DynamicSlice(Stream stream, std::vector<int> axes, Shape sizes)
      : Recorded(stream), axes_(std::move(axes)), sizes_(std::move(sizes)) {}
  void encode(Encoder& encoder, const std::vector<array>& inputs,
              std::vector<array>& outputs) override {
    kernels::backend_of(encoder).dynamic_slice(encoder, axes_, inputs[0], inputs[1], outputs[0]);
  }
  std::vector<array> vjp_rule(const std::vector<array>& primals,
                              const std::vector<array>& cotangents, const std::vector<int>& argnums,
                              const std::vector<array>& outputs) override;
  std::pair<std::vector<array>, std::vector<int>> vmap_rule(const std::vector<array>& inputs,
                                                            const std::vector<int>& axes) override;
  std::vector<Shape> output_shapes(const std::vector<array>& inputs) override {
    const Shape& shape = inputs[0].shape();
    if (!std::equal(sizes_.begin(), sizes_.end(), shape.begin(), shape.end(), std::less_equal())) {
      throw std::invalid_argument(
          text("[slice] a slice of shape ", sizes_, " does not fit into shape ", shape));
    }
    return {sizes_};
  }
  const char* name() const override { return "DynamicSlice"; }
  auto members() const { return std::tie(axes_, sizes_); }

 private:
  std::vector<int> axes_;
  Shape sizes_;
};

std::vector<array> DynamicSlice::vjp_rule(const std::vector<array>& primals,
                                          const std::vector<array>& cotangents,
                                          const std::vector<int>&, const std::vector<array>&) {
  return {
      slice_update(zeros_like(primals[0], stream()), cotangents[0], primals[1], axes_, stream())};
}

// One start for all is a slice of all; more are as many slices.
std::pair<std::vector<array>, std::vector<int>> DynamicSlice::vmap_rule(
    const std::vector<array>& inputs, const std::vector<int>& axes) {
  if (axes[1] >= 0) return {};
  array a = moveaxis(inputs[0], axes[0], 0, stream());
  return {{slice(a, inputs[1], one_further(axes_), with_front(a.shape(0), sizes_), stream())}, {0}};
}

class Concatenate final : public Recorded<Concatenate, Op> {
 public:
  Concatenate(Stream stream, int axis) : Recorded(stream), axis_(axis) {}
  void encode(Encoder& encoder, const std::vector<array>& inputs,
              std::vector<array>& outputs) override {
    kernels::backend_of(encoder).concatenate(encoder, axis_, inputs, outputs[0]);
  }
  std::vector<array> vjp_rule(const std::vector<array>& primals,
                              const std::vector<array>& cotangents, const std::vector<int>& argnums,
                              const std::vector<array>& outputs) override;
  std::shared_ptr<Primitive> with_leading_axis() override {
    return std::make_shared<Concatenate>(stream(), axis_ + 1);
  }
  std::vector<Shape> output_shapes(const std::vector<array>& inputs) override;
  const char* name() const override { return "Concatenate"; }
  auto members() const { return std::tie(axis_); }

 private:
  int axis_;
};

std::vector<Shape> Concatenate::output_shapes(const std::vector<array>& inputs) {
  Shape shape = inputs[0].shape();
  auto axis = static_cast<size_t>(axis_);
  for (size_t i = 1; i < inputs.size(); ++i) {
    for (size_t k = 0; k < shape.size(); ++k) {
      if (k != axis && inputs[i].shape()[k] != shape[k]) {
        throw std::invalid_argument(text("[concatenate] expected equal shapes beside axis ", axis_,
                                         ", got ", inputs[0].shape(), " and ", inputs[i].shape()));
      }
    }
    shape[axis] += inputs[i].shape()[axis];
  }
  return {shape};
}

std::vector<array> Concatenate::vjp_rule(const std::vector<array>& primals,
                                         const std::vector<array>& cotangents,
                                         const std::vector<int>& argnums,
                                         const std::vector<array>&) {
  for (const array& primal : primals) check_shape_known("concatenate", primal);
  Shape places;
  ShapeElem behind = 0;
  for (const array& primal : primals) places.push_back(behind += primal.shape(axis_));
  places.pop_back();
  std::vector<array> parts = split(cotangents[0], places, axis_, stream()), result;
  for (int argnum : argnums) result.push_back(parts[static_cast<size_t>(argnum)]);
  return result;
}

}  // namespace

// --- slice ---

array slice(const array& a, Shape start, Shape stop, Shape strides, StreamOrDevice s) {
  check_slice("slice", a, {start, stop, strides});
  if (has_open_shape(a)) {
    return slice_by(a, {std::move(start), std::move(stop), std::move(strides)}, s);
  }
  bool is_whole = true;
  Shape shape = a.shape();
  for (size_t i = 0; i < shape.size(); ++i) {
    SliceRange range = normalized_range(start[i], stop[i], strides[i], a.shape()[i]);
    start[i] = range.start;
    shape[i] = range.size;
    is_whole = is_whole && range.size == a.shape()[i] && (strides[i] == 1 || range.size <= 1);
  }
  if (is_whole) return a;
  return make_node<Slice>(std::move(shape), a.dtype(), {a}, s, std::move(start),
                          std::move(strides));
}

array slice(const array& a, Shape start, Shape stop, StreamOrDevice s) {
  Shape ones(a.ndim(), 1);
  return slice(a, std::move(start), std::move(stop), std::move(ones), s);
}

array slice(const array& a, const array& start, std::vector<int> axes, Shape slice_size,
            StreamOrDevice s) {
  if (slice_size.size() != a.ndim()) {
    throw std::invalid_argument(text("[slice] expected a slice size for each axis of shape ",
                                     a.shape(), ", got ", slice_size));
  }
  if (!issubdtype(start.dtype(), integer)) {
    throw std::invalid_argument(text("[slice] expected a start of integers, got ", start.dtype()));
  }
  if (start.ndim() > 1 || start.size() != axes.size()) {
    throw std::invalid_argument(
        text("[slice] expected a start with one value for each of the axes ", axes, ", got shape ",
             start.shape()));
  }
  checked_axes("slice", axes, a.ndim());
  for (int& axis : axes) axis = checked_axis("slice", axis, a.ndim());
  for (size_t i = 0; i < slice_size.size(); ++i) {
    if (slice_size[i] < 0 || slice_size[i] > a.shape()[i]) {
      throw std::invalid_argument(
          text("[slice] expected slice sizes within shape ", a.shape(), ", got ", slice_size));
    }
  }
  return make_node<DynamicSlice>(slice_size, a.dtype(), {a, start}, s, std::move(axes), slice_size);
}

// --- split and join ---

std::vector<array> split(const array& a, const Shape& indices, int axis, StreamOrDevice s) {
  int at = checked_axis("split", axis, a.ndim());
  if (indices.empty()) return {a};
  if (has_open_shape(a)) {
    std::vector<array> parts;
    for (size_t k = 0; k <= indices.size(); ++k) {
      parts.push_back(slice_by(
          a,
          cut_of(a, at, k == 0 ? 0 : indices[k - 1], k == indices.size() ? to_the_end : indices[k]),
          s));
    }
    return parts;
  }
  std::vector<Shape> shapes;
  Shape starts;
  ShapeElem size = a.shape(at);
  for (size_t k = 0; k <= indices.size(); ++k) {
    SliceRange range = normalized_range(k == 0 ? 0 : indices[k - 1],
                                        k == indices.size() ? size : indices[k], 1, size);
    starts.push_back(range.start);
    shapes.push_back(a.shape());
    shapes.back()[static_cast<size_t>(at)] = range.size;
  }
  std::vector<Dtype> dtypes(shapes.size(), a.dtype());
  return detail::make_all_checked(
      std::move(shapes), dtypes, std::make_shared<Split>(to_stream(s), std::move(starts), at), {a});
}

std::vector<array> split(const array& a, const Shape& indices, StreamOrDevice s) {
  return split(a, indices, 0, s);
}

std::vector<array> split(const array& a, int num_splits, int axis, StreamOrDevice s) {
  int at = checked_axis("split", axis, a.ndim());
  if (num_splits <= 0) {
    throw std::invalid_argument(text("[split] expected one split or more, got ", num_splits));
  }
  if (a.shape(at) % num_splits != 0) {
    throw std::invalid_argument(text("[split] axis ", at, " of shape ", a.shape(),
                                     " cannot be split into ", num_splits, " equal parts"));
  }
  if (has_open_shape(a)) {
    // The parts as an axis of their own.
    Shape recipe;
    for (int i = 0; i < static_cast<int>(a.ndim()); ++i) {
      if (i == at) recipe.push_back(num_splits);
      recipe.push_back(i == at ? -1 : same_as(i));
    }
    array together = reshape_by(a, std::move(recipe), s);
    std::vector<array> parts;
    for (int k = 0; k < num_splits; ++k) parts.push_back(take(together, k, at, s));
    return parts;
  }
  Shape indices;
  for (int k = 1; k < num_splits; ++k) indices.push_back(a.shape(at) / num_splits * k);
  return split(a, indices, at, s);
}

std::vector<array> split(const array& a, int num_splits, StreamOrDevice s) {
  return split(a, num_splits, 0, s);
}

std::vector<array> unstack(const array& a, int axis, StreamOrDevice s) {
  int at = checked_axis("unstack", axis, a.ndim());
  if (a.shape(at) == 0) return {};
  std::vector<array> parts = split(a, a.shape(at), at, s);
  for (array& part : parts) part = squeeze(part, at, s);
  return parts;
}

std::vector<array> unstack(const array& a, StreamOrDevice s) { return unstack(a, 0, s); }

array concatenate(std::vector<array> arrays, int axis, StreamOrDevice s) {
  if (arrays.empty())
    throw std::invalid_argument("[concatenate] expected one array or more, got none");
  if (arrays.size() == 1) return arrays[0];
  int at = checked_axis("concatenate", axis, arrays[0].ndim());
  Shape shape = arrays[0].shape();
  int64_t total = 0;
  for (const array& a : arrays) {
    Shape expected = a.ndim() == shape.size() ? a.shape() : Shape{};
    if (!expected.empty()) expected[static_cast<size_t>(at)] = shape[static_cast<size_t>(at)];
    if (expected != shape) {
      throw std::invalid_argument(text("[concatenate] expected shapes that match but for axis ", at,
                                       ", got ", shape, " and ", a.shape()));
    }
    total += a.shape(at);
  }
  shape[static_cast<size_t>(at)] = safe_cast(total, "concatenate");
  Dtype dtype = result_type(arrays);
  checked_size("concatenate", shape, dtype);
  for (array& a : arrays) a = astype(a, dtype, s);
  return make_node<Concatenate>(std::move(shape), dtype, std::move(arrays), s, at);
}

array concatenate(std::vector<array> arrays, StreamOrDevice s) {
  for (array& a : arrays) a = flatten(a, s);
  return concatenate(std::move(arrays), 0, s);
}

array stack(const std::vector<array>& arrays, int axis, StreamOrDevice s) {
  if (arrays.empty()) throw std::invalid_argument("[stack] expected one array or more, got none");
  int at = checked_axis("stack", axis, arrays[0].ndim() + 1);
  std::vector<array> expanded;
  for (const array& a : arrays) {
    if (a.shape() != arrays[0].shape()) {
      throw std::invalid_argument(text("[stack] expected arrays of one shape, got ",
                                       arrays[0].shape(), " and ", a.shape()));
    }
    expanded.push_back(expand_dims(a, at, s));
  }
  return concatenate(std::move(expanded), at, s);
}

array stack(const std::vector<array>& arrays, StreamOrDevice s) { return stack(arrays, 0, s); }

}  // namespace holdfast
