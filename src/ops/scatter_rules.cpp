// Derivatives of gather and scatter, and their forms for mapped arrays.
#include <algorithm>

#include "ops/dynamic_shape.h"
#include "ops/scatter.h"

namespace holdfast {

namespace {

std::vector<array> from(const std::vector<array>& inputs, size_t first) {
  return {inputs.begin() + static_cast<std::ptrdiff_t>(first), inputs.end()};
}

// The index arrays of a mapped call.
struct MappedIndices {
  std::vector<array> indices;  // with the mapped axis in front, where there is one
  bool are_mapped = false;
  int rank = 0;  // of the places of one call

  MappedIndices(const std::vector<array>& inputs, const std::vector<int>& axes, size_t first,
                Stream s) {
    for (size_t i = first; i < inputs.size(); ++i) {
      bool is_mapped = axes[i] >= 0;
      are_mapped = are_mapped || is_mapped;
      rank = std::max(rank, static_cast<int>(inputs[i].ndim()) - is_mapped);
    }
    for (size_t i = first; i < inputs.size(); ++i) {
      indices.push_back(inputs[i]);
      if (axes[i] < 0) continue;
      array front = moveaxis(inputs[i], axes[i], 0, s);
      Shape shape = front.shape();
      shape.insert(shape.begin() + 1, static_cast<size_t>(rank + 1) - front.ndim(), 1);
      indices.back() = reshape_here(front, std::move(shape), s);
    }
  }

  // With the number of the call as one more index.
  std::vector<array> with_calls(int size, Stream s) const {
    Shape shape(static_cast<size_t>(rank) + 1, 1);
    shape[0] = size;
    std::vector<array> result = {reshape_here(arange(0, size, 1, s), shape, s)};
    result.insert(result.end(), indices.begin(), indices.end());
    return result;
  }
};

std::vector<int> with_first_axis(const std::vector<int>& axes) {
  std::vector<int> result = one_further(axes);
  result.insert(result.begin(), 0);
  return result;
}

int size_of(const std::vector<array>& inputs, const std::vector<int>& axes) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (axes[i] >= 0) return inputs[i].shape(axes[i]);
  }
  return 0;
}

array only_where(const array& condition, const array& a, Stream s) {
  return where(condition, a, array(0, a.dtype()), s);
}

}  // namespace

// --- gather ---

std::vector<array> GatherGeneral::vjp_rule(const std::vector<array>& primals,
                                           const std::vector<array>& cotangents,
                                           const std::vector<int>&, const std::vector<array>&) {
  return {scatter_add(zeros_like(primals[0], stream()), from(primals, 1), cotangents[0], axes_,
                      stream())};
}

std::pair<std::vector<array>, std::vector<int>> GatherGeneral::vmap_rule(
    const std::vector<array>& inputs, const std::vector<int>& axes) {
  Stream s = stream();
  MappedIndices mapped(inputs, axes, 1, s);
  if (axes[0] < 0) return {{gather(inputs[0], mapped.indices, axes_, slice_sizes_, s)}, {0}};
  array a = moveaxis(inputs[0], axes[0], 0, s);
  check_shape_known("gather", a);
  if (!mapped.are_mapped) {
    Shape sizes = with_front(a.shape(0), slice_sizes_);
    return {{gather(a, mapped.indices, one_further(axes_), sizes, s)}, {mapped.rank}};
  }
  array taken = gather(a, mapped.with_calls(a.shape(0), s), with_first_axis(axes_),
                       with_front(1, slice_sizes_), s);
  return {{squeeze(taken, mapped.rank + 1, s)}, {0}};
}

// --- scatter ---

std::vector<array> Scatter::vjp_rule(const std::vector<array>& primals,
                                     const std::vector<array>& cotangents,
                                     const std::vector<int>& argnums,
                                     const std::vector<array>& outputs) {
  Stream s = stream();
  const array &a = primals[0], &updates = primals[1], &cotangent = cotangents[0];
  std::vector<array> indices = from(primals, 2);
  size_t rank = updates.ndim() - a.ndim();
  auto tail = updates.shape().begin() + static_cast<std::ptrdiff_t>(rank);
  Shape places(updates.shape().begin(), tail), sizes(tail, updates.shape().end());
  auto fetched = [&](const array& x) {
    check_shape_known(name(), updates);
    check_shape_known(name(), a);
    return gather(x, indices, axes_, sizes, s);
  };

  auto of_array = [&] {
    switch (mode_) {
      case UpdateMode::add:
        return cotangent;
      case UpdateMode::replace:
        return scatter(cotangent, indices, zeros_like(updates, s), axes_, s);
      case UpdateMode::multiply:
        return scaled_cotangent(cotangent,
                                scatter_prod(ones_like(a, s), indices, updates, axes_, s), s);
      default:
        return only_where(equal(a, outputs[0], s), cotangent, s);
    }
  };
  auto of_updates = [&] {
    array back = fetched(cotangent);
    switch (mode_) {
      case UpdateMode::add:
        return back;
      case UpdateMode::replace: {
        // Only the last update of an element is seen.
        int count = 1;
        for (ShapeElem dim : places) count *= dim;
        Shape shape = places;
        shape.insert(shape.end(), a.ndim(), 1);
        array numbers =
            broadcast_here(reshape_here(arange(0, count, 1, s), shape, s), updates.shape(), s);
        array last = scatter(full(a.shape(), array(-1), s), indices, numbers, axes_, s);
        return only_where(equal(fetched(last), numbers, s), back, s);
      }
      case UpdateMode::multiply: {
        // The product of all others; zeros are counted, since nothing can be divided by them.
        array is_zero = equal(updates, array(0, updates.dtype()), s);
        array filled = where(is_zero, array(1, updates.dtype()), updates, s);
        array count = astype(is_zero, int32, s);
        array zeros_there =
            fetched(scatter_add(zeros(a.shape(), int32, s), indices, count, axes_, s));
        array others = divide(fetched(scatter_prod(a, indices, filled, axes_, s)), filled, s);
        return scaled_cotangent(back, only_where(equal(zeros_there, count, s), others, s), s);
      }
      default:
        return only_where(equal(updates, fetched(outputs[0]), s), back, s);
    }
  };
  std::vector<array> result;
  for (int argnum : argnums) result.push_back(argnum == 0 ? of_array() : of_updates());
  return result;
}

std::pair<std::vector<array>, std::vector<int>> Scatter::vmap_rule(const std::vector<array>& inputs,
                                                                   const std::vector<int>& axes) {
  Stream s = stream();
  int size = size_of(inputs, axes);
  MappedIndices mapped(inputs, axes, 2, s);
  array a = with_mapped_axis(inputs[0], axes[0], size, s);
  array updates = with_mapped_axis(inputs[1], axes[1], size, s);
  auto write = [&](const std::vector<array>& indices, const array& values,
                   std::vector<int> places) {
    std::vector<array> all = {a, values};
    all.insert(all.end(), indices.begin(), indices.end());
    return detail::make_checked(a.shape(), a.dtype(),
                                std::make_shared<Scatter>(s, mode_, std::move(places)),
                                std::move(all));
  };
  if (!mapped.are_mapped) {
    array moved = moveaxis(updates, 0, mapped.rank, s);
    return {{write(mapped.indices, moved, one_further(axes_))}, {0}};
  }
  std::vector<array> indices = mapped.with_calls(size, s);
  for (array& index : indices) index = astype(index, inputs[2].dtype(), s);
  return {{write(indices, expand_dims(updates, mapped.rank + 1, s), with_first_axis(axes_))}, {0}};
}

std::vector<array> ScatterAxis::vjp_rule(const std::vector<array>& primals,
                                         const std::vector<array>& cotangents,
                                         const std::vector<int>& argnums,
                                         const std::vector<array>&) {
  Stream s = stream();
  const array &a = primals[0], &indices = primals[1], &cotangent = cotangents[0];
  bool replaces = mode_ == UpdateMode::replace;
  std::vector<array> result;
  for (int argnum : argnums) {
    if (argnum == 0) {
      result.push_back(replaces ? put_along_axis(cotangent, indices, array(0, a.dtype()), axis_, s)
                                : cotangent);
      continue;
    }
    array back = take_along_axis(cotangent, indices, axis_, s);
    if (replaces) {
      // Only the last value for an element is seen.
      Shape shape(a.ndim(), 1);
      shape[static_cast<size_t>(axis_)] = indices.shape(axis_);
      array numbers = reshape_here(arange(0, indices.shape(axis_), 1, s), shape, s);
      array last = put_along_axis(full(a.shape(), array(-1), s), indices, numbers, axis_, s);
      back = only_where(equal(take_along_axis(last, indices, axis_, s), numbers, s), back, s);
    }
    result.push_back(back);
  }
  return result;
}

}  // namespace holdfast
