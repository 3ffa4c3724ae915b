#include "kernels/plan/reduce.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>

namespace holdfast::kernels {

bool has_identity(ReduceOp op) {
  return op == ReduceOp::sum || op == ReduceOp::prod || op == ReduceOp::all || op == ReduceOp::any;
}

Dtype::Val reduce_output_type(ReduceOp op, Dtype::Val input) {
  using Val = Dtype::Val;
  switch (op) {
    case ReduceOp::sum:
    case ReduceOp::prod:
      switch (input) {
        case Val::bool_:
        case Val::int8:
        case Val::int16:
          return Val::int32;
        case Val::uint8:
        case Val::uint16:
          return Val::uint32;
        default:
          return input;
      }
    case ReduceOp::min:
    case ReduceOp::max:
      return input;
    case ReduceOp::all:
    case ReduceOp::any:
      return Val::bool_;
    default:
      return Val::uint32;
  }
}

ReducedLayout reduced_layout(ReduceOp op, std::span<const int32_t> shape,
                             std::span<const int64_t> strides, std::span<const int> axes) {
  const bool keeps_order = op == ReduceOp::argmin || op == ReduceOp::argmax;
  int64_t base = 0;
  Dimensions kept_shape, kept_strides, reduced_shape, reduced_strides;
  const bool empty = element_count(shape) == 0;
  for (size_t dimension = 0; dimension < shape.size(); ++dimension) {
    bool reduced = std::find(axes.begin(), axes.end(), static_cast<int>(dimension)) != axes.end();
    int64_t extent = shape[dimension];
    int64_t stride = strides[dimension];
    if (!reduced) {
      kept_shape.push_back(extent);
      kept_strides.push_back(stride);
      continue;
    }
    if (stride < 0 && !keeps_order && !empty) {
      base += stride * (extent - 1);
      stride = -stride;
    }
    reduced_shape.push_back(extent);
    reduced_strides.push_back(stride);
  }
  if (!keeps_order && reduced_shape.size() > 1) {
    SmallVector<size_t, 4> order(reduced_shape.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      return reduced_strides[a] != reduced_strides[b] ? reduced_strides[a] > reduced_strides[b]
                                                      : a < b;
    });
    Dimensions sorted_shape, sorted_strides;
    for (size_t dimension : order) {
      sorted_shape.push_back(reduced_shape[dimension]);
      sorted_strides.push_back(reduced_strides[dimension]);
    }
    reduced_shape = std::move(sorted_shape);
    reduced_strides = std::move(sorted_strides);
  }
  return {base, collapse(std::span<const int64_t>(kept_shape), kept_strides),
          collapse(std::span<const int64_t>(reduced_shape), reduced_strides)};
}

bool ReducedLayout::has_columns() const {
  auto inner = [](const CollapsedLayout& layout) {
    return layout.shape.empty() || layout.size == 0 ? INT64_MAX : std::abs(layout.strides.back());
  };
  return reduced.size > 1 && inner(kept) < inner(reduced) && inner(kept) != 0 &&
         inner(reduced) != 1;
}

}  // namespace holdfast::kernels
