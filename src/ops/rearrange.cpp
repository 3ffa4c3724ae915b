// Ops that put elements elsewhere: flip, roll, tile, repeat, diagonals, padding.
#include <algorithm>

#include "ops/dynamic_shape.h"
#include "ops/views.h"

namespace holdfast {

// --- flip, roll ---

array flip(const array& a, const std::vector<int>& axes, StreamOrDevice s) {
  SliceNumbers numbers{Shape(a.ndim(), 0), Shape(a.ndim(), to_the_end), Shape(a.ndim(), 1)};
  for (int given : axes) {
    size_t at = static_cast<size_t>(checked_axis("flip", given, a.ndim()));
    numbers.start[at] = -1;
    numbers.stop[at] = to_the_front;
    numbers.steps[at] = -1;
  }
  return slice_by(a, numbers, s);
}
array flip(const array& a, int axis, StreamOrDevice s) {
  return flip(a, std::vector<int>{axis}, s);
}
array flip(const array& a, StreamOrDevice s) { return flip(a, all_axes(a), s); }

array roll(const array& a, const Shape& shift, const std::vector<int>& axes, StreamOrDevice s) {
  if (axes.empty()) return a;
  if (shift.size() < axes.size()) {
    throw std::invalid_argument(
        text("[roll] expected a shift for each of the axes ", axes, ", got ", shift));
  }
  array result = a;
  for (size_t i = 0; i < axes.size(); ++i) {
    int axis = checked_axis("roll", axes[i], a.ndim());
    check_shape_known("roll", a);
    int64_t size = a.shape(axis);
    if (size == 0) continue;
    int64_t by = ((shift[i] % size) + size) % size;
    if (by == 0) continue;
    std::vector<array> parts = split(result, Shape{static_cast<ShapeElem>(size - by)}, axis, s);
    result = concatenate({parts[1], parts[0]}, axis, s);
  }
  return result;
}
array roll(const array& a, int shift, const std::vector<int>& axes, StreamOrDevice s) {
  return roll(a, Shape(axes.size(), shift), axes, s);
}
array roll(const array& a, int shift, int axis, StreamOrDevice s) {
  return roll(a, Shape{shift}, std::vector<int>{axis}, s);
}
array roll(const array& a, const Shape& shift, int axis, StreamOrDevice s) {
  int64_t total = 0;
  for (ShapeElem part : shift) total += part;
  int64_t size = std::max<int64_t>(1, a.shape(checked_axis("roll", axis, a.ndim())));
  return roll(a, static_cast<int>(total % size), axis, s);
}
array roll(const array& a, int shift, StreamOrDevice s) {
  return reshape_here(roll(flatten(a, s), shift, 0, s), a.shape(), s);
}
array roll(const array& a, const Shape& shift, StreamOrDevice s) {
  return reshape_here(roll(flatten(a, s), shift, 0, s), a.shape(), s);
}

// --- tile, repeat: views that repeat, copied once ---

array tile(const array& arr, std::vector<int> reps, StreamOrDevice s) {
  Shape shape = arr.shape();
  while (reps.size() < shape.size()) reps.insert(reps.begin(), 1);
  while (shape.size() < reps.size()) shape.insert(shape.begin(), 1);
  // (repeats, size) for each axis, then merged.
  Shape expanded, repeated, merged;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (reps[i] < 0) {
      throw std::invalid_argument(text("[tile] repetitions must not be negative, got ", reps));
    }
    if (reps[i] != 1) {
      expanded.push_back(1);
      repeated.push_back(reps[i]);
    }
    expanded.push_back(shape[i]);
    repeated.push_back(shape[i]);
    merged.push_back(safe_cast(int64_t{reps[i]} * shape[i], "tile"));
  }
  checked_size("tile", merged, arr.dtype());
  return reshape_here(broadcast_here(reshape_here(arr, expanded, s), repeated, s), merged, s);
}

array repeat(const array& arr, int repeats, int axis, StreamOrDevice s) {
  int at = checked_axis("repeat", axis, arr.ndim());
  if (repeats < 0) {
    throw std::invalid_argument(
        text("[repeat] the number of repeats must not be negative, got ", repeats));
  }
  if (repeats == 1) return arr;
  Shape repeated = arr.shape(), merged = arr.shape();
  repeated.insert(repeated.begin() + at + 1, repeats);
  merged[static_cast<size_t>(at)] = safe_cast(int64_t{repeats} * arr.shape(at), "repeat");
  checked_size("repeat", merged, arr.dtype());
  return reshape_here(broadcast_here(expand_dims(arr, at + 1, s), repeated, s), merged, s);
}
array repeat(const array& arr, int repeats, StreamOrDevice s) {
  return repeat(flatten(arr, s), repeats, 0, s);
}

// --- diagonals ---

static Shape diagonal_shape(const array& a, int offset, int axis1, int axis2) {
  int64_t rows = a.shape(axis1), columns = a.shape(axis2), shift = offset;
  int64_t length = shift > 0 ? std::min(rows, columns - shift) : std::min(rows + shift, columns);
  Shape shape = a.shape();
  shape.erase(shape.begin() + std::max(axis1, axis2));
  shape.erase(shape.begin() + std::min(axis1, axis2));
  shape.push_back(static_cast<ShapeElem>(std::max<int64_t>(0, length)));
  return shape;
}

std::vector<Shape> Diagonal::output_shapes(const std::vector<array>& inputs) {
  return {diagonal_shape(inputs[0], offset_, axis1_, axis2_)};
}

void Diagonal::encode(Encoder&, const std::vector<array>& inputs, std::vector<array>& outputs) {
  const array& in = inputs[0];
  Strides strides = in.strides();
  int64_t first = strides[static_cast<size_t>(axis1_)],
          second = strides[static_cast<size_t>(axis2_)];
  // An empty diagonal begins nowhere.
  int64_t shift = outputs[0].size() == 0 ? 0 : offset_;
  int64_t offset = shift > 0 ? shift * second : -shift * first;
  strides.erase(strides.begin() + std::max(axis1_, axis2_));
  strides.erase(strides.begin() + std::min(axis1_, axis2_));
  strides.push_back(first + second);
  share(in, outputs[0], strides, offset);
}

array diagonal(const array& a, int offset, int axis1, int axis2, StreamOrDevice s) {
  if (a.ndim() < 2) {
    throw std::invalid_argument(
        text("[diagonal] expected two dimensions or more, got shape ", a.shape()));
  }
  int first = checked_axis("diagonal", axis1, a.ndim());
  int second = checked_axis("diagonal", axis2, a.ndim());
  if (first == second) {
    throw std::invalid_argument(text("[diagonal] expected two different axes, got ", axis1, " and ",
                                     axis2, " for shape ", a.shape()));
  }
  return make_node<Diagonal>(diagonal_shape(a, offset, first, second), a.dtype(), {a}, s, offset,
                             first, second);
}

array diag(const array& a, int k, StreamOrDevice s) {
  if (a.ndim() == 2) return diagonal(a, k, 0, 1, s);
  if (a.ndim() != 1) {
    throw std::invalid_argument(
        text("[diag] expected one or two dimensions, got shape ", a.shape()));
  }
  // Row i holds element i (of what lies k below, element i - |k|) where the diagonal crosses it.
  int64_t shift = k < 0 ? -int64_t{k} : k;
  ShapeElem size = safe_cast(a.shape(0) + shift, "diag");
  checked_size("diag", Shape{size, size}, a.dtype());
  int extra = static_cast<int>(shift);
  array column = pad(a, k < 0 ? std::pair<int, int>{extra, 0} : std::pair<int, int>{0, extra},
                     array(0, a.dtype()), "constant", s);
  return where(eye(size, size, k, bool_, s), expand_dims(column, 1, s), array(0, a.dtype()), s);
}

array trace(const array& a, int offset, int axis1, int axis2, Dtype dtype, StreamOrDevice s) {
  if (a.ndim() < 2) {
    throw std::invalid_argument(
        text("[trace] expected two dimensions or more, got shape ", a.shape()));
  }
  return sum(astype(diagonal(a, offset, axis1, axis2, s), dtype, s), -1, false, s);
}
array trace(const array& a, int offset, int axis1, int axis2, StreamOrDevice s) {
  Dtype dtype = a.dtype();
  // As sum does: small integers add up in 32 bits.
  if (!issubdtype(dtype, inexact) && dtype.size() < 4) {
    dtype = issubdtype(dtype, unsignedinteger) ? uint32 : int32;
  }
  return trace(a, offset, axis1, axis2, dtype, s);
}
array trace(const array& a, StreamOrDevice s) { return trace(a, 0, 0, 1, s); }

// --- pad ---

namespace {

class Pad final : public Recorded<Pad, Op> {
 public:
  Pad(Stream stream, Shape low, Shape high)
      : Recorded(stream), low_(std::move(low)), high_(std::move(high)) {}
  // inputs: the array, the value (one element).
  void encode(Encoder& encoder, const std::vector<array>& inputs,
              std::vector<array>& outputs) override {
    kernels::backend_of(encoder).pad(encoder, low_, inputs[0], inputs[1], outputs[0]);
  }
  std::vector<array> vjp_rule(const std::vector<array>& primals,
                              const std::vector<array>& cotangents, const std::vector<int>& argnums,
                              const std::vector<array>& outputs) override;
  std::pair<std::vector<array>, std::vector<int>> vmap_rule(const std::vector<array>& inputs,
                                                            const std::vector<int>& axes) override;
  std::vector<Shape> output_shapes(const std::vector<array>& inputs) override {
    Shape shape = inputs[0].shape();
    for (size_t i = 0; i < shape.size(); ++i) {
      shape[i] = safe_cast(int64_t{shape[i]} + low_[i] + high_[i], "pad");
    }
    return {shape};
  }
  const char* name() const override { return "Pad"; }
  auto members() const { return std::tie(low_, high_); }

 private:
  Shape low_, high_;
};

std::vector<array> Pad::vjp_rule(const std::vector<array>& primals,
                                 const std::vector<array>& cotangents,
                                 const std::vector<int>& argnums, const std::vector<array>&) {
  const array &a = primals[0], &cotangent = cotangents[0];
  SliceNumbers inside{low_, high_, Shape(a.ndim(), 1)};
  for (ShapeElem& stop : inside.stop) stop = stop == 0 ? to_the_end : -stop;
  std::vector<array> result;
  for (int argnum : argnums) {
    if (argnum == 0) {
      result.push_back(slice_by(cotangent, inside, stream()));
    } else {
      array border = slice_update_by(cotangent, array(0, a.dtype()), inside, stream());
      result.push_back(sum(border, false, stream()));
    }
  }
  return result;
}

// One value for all; with a value for each, they are padded one after the other.
std::pair<std::vector<array>, std::vector<int>> Pad::vmap_rule(const std::vector<array>& inputs,
                                                               const std::vector<int>& axes) {
  if (axes[1] >= 0) return {};
  array a = moveaxis(inputs[0], axes[0], 0, stream());
  std::vector<int> places = one_further(all_axes(a));
  places.pop_back();
  return {{pad(a, places, low_, high_, inputs[1], "constant", stream())}, {0}};
}

// Which element of an axis of `size` stands at each of the places -low … size + high.
array padded_places(const std::string& mode, int64_t low, int64_t size, int64_t high,
                    StreamOrDevice s) {
  array place = arange(static_cast<double>(-low), static_cast<double>(size + high), int64, s);
  auto constant = [](int64_t value) { return array(value, int64); };
  if (mode == "edge") return clip(place, constant(0), constant(size - 1), s);
  // Reflected, the elements come and go with this period.
  int64_t period = mode == "reflect" ? std::max<int64_t>(1, 2 * size - 2) : 2 * size;
  array folded = remainder(place, constant(period), s);
  array back = subtract(constant(mode == "reflect" ? period : period - 1), folded, s);
  return where(less(folded, constant(size), s), folded, back, s);
}

}  // namespace

array pad(const array& a, const std::vector<int>& axes, const Shape& low_pad_size,
          const Shape& high_pad_size, const array& pad_value, const std::string& mode,
          StreamOrDevice s) {
  if (axes.size() != low_pad_size.size() || axes.size() != high_pad_size.size()) {
    throw std::invalid_argument(text("[pad] expected a low and a high size for each of the axes ",
                                     axes, ", got ", low_pad_size, " and ", high_pad_size));
  }
  checked_axes("pad", axes, a.ndim());
  Shape low(a.ndim(), 0), high(a.ndim(), 0), shape = a.shape();
  for (size_t i = 0; i < axes.size(); ++i) {
    if (low_pad_size[i] < 0 || high_pad_size[i] < 0) {
      throw std::invalid_argument(text("[pad] sizes must not be negative, got ", low_pad_size,
                                       " and ", high_pad_size, " for axes ", axes));
    }
    size_t at = static_cast<size_t>(checked_axis("pad", axes[i], a.ndim()));
    low[at] = low_pad_size[i];
    high[at] = high_pad_size[i];
    shape[at] = safe_cast(int64_t{shape[at]} + low[at] + high[at], "pad");
  }
  if (mode != "constant" && mode != "edge" && mode != "reflect" && mode != "symmetric") {
    throw std::invalid_argument(
        text("[pad] expected the mode \"constant\", \"edge\", \"reflect\" "
             "or \"symmetric\", got \"",
             mode, "\""));
  }
  checked_size("pad", shape, a.dtype());
  if (shape == a.shape()) return a;
  if (mode == "constant") {
    if (pad_value.size() == 0) {
      throw std::invalid_argument("[pad] expected a value to pad with, got an empty array");
    }
    // The first element counts.
    array value = pad_value.size() == 1 ? reshape(pad_value, {}, s) : take(pad_value, 0, s);
    return make_node<Pad>(std::move(shape), a.dtype(), {a, astype(value, a.dtype(), s)}, s,
                          std::move(low), std::move(high));
  }
  check_shape_known("pad", a);
  array result = a;
  for (int axis = 0; axis < static_cast<int>(a.ndim()); ++axis) {
    size_t at = static_cast<size_t>(axis);
    int64_t size = a.shape(axis);
    if (low[at] == 0 && high[at] == 0) continue;
    if (size == 0) {
      throw std::invalid_argument(text("[pad] an axis without elements has no ", mode, ": axis ",
                                       axis, " of shape ", a.shape()));
    }
    result = take(result, padded_places(mode, low[at], size, high[at], s), axis, s);
  }
  return result;
}

array pad(const array& a, const std::vector<std::pair<int, int>>& pad_width, const array& pad_value,
          const std::string& mode, StreamOrDevice s) {
  if (pad_width.size() != a.ndim()) {
    throw std::invalid_argument(text("[pad] expected a pair of sizes for each axis of shape ",
                                     a.shape(), ", got ", pad_width.size()));
  }
  Shape low, high;
  for (auto [before, behind] : pad_width) {
    low.push_back(before);
    high.push_back(behind);
  }
  return pad(a, all_axes(a), low, high, pad_value, mode, s);
}
array pad(const array& a, const std::pair<int, int>& pad_width, const array& pad_value,
          const std::string& mode, StreamOrDevice s) {
  return pad(a, std::vector<std::pair<int, int>>(a.ndim(), pad_width), pad_value, mode, s);
}
array pad(const array& a, int pad_width, const array& pad_value, const std::string& mode,
          StreamOrDevice s) {
  return pad(a, std::pair<int, int>(pad_width, pad_width), pad_value, mode, s);
}

}  // namespace holdfast
