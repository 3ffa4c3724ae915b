// What the ops share: checks with good messages, layouts of views, and the encoding of copies.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <holdfast/array.h>
#include <holdfast/encoder.h>
#include <holdfast/ops.h>
#include <holdfast/utils.h>

#include "base/block_pool.h"
#include "base/text.h"
#include "graph/op.h"
#include "kernels/backend.h"
#include "kernels/plan/layout.h"
#include "kernels/staging.h"
#include "kernels/views.h"
#include "ops/recorded.h"

namespace holdfast {

// --- checks ---

// The axis counted from the front; std::out_of_range when there is no such axis.
int checked_axis(const char* op, int axis, size_t ndim);
// Each axis checked; sorted; std::invalid_argument when one appears twice.
std::vector<int> checked_axes(const char* op, const std::vector<int>& axes, size_t ndim);
std::vector<int> all_axes(const array& a);
// Throws when a dimension is negative or the number of bytes overflows (dimensions of 0 left out);
// gives the number of elements.
int64_t checked_size(const char* op, const Shape& shape, Dtype dtype);
// broadcast_shapes with the op's name in the error.
// Replaces the -1 in `shape`, if there is one, so that it has `size` elements, which are of `a`.
Shape inferred_shape(const char* op, const array& a, int64_t size, Shape shape);
Shape broadcast_shapes_for(const char* op, const Shape& a, const Shape& b);
// Integers and bool become float32, others stay.
Dtype at_least_float(Dtype dtype);

// --- layouts ---

// One axis of a slice, as Python cuts it: where it starts and how many elements it has.
struct SliceRange {
  ShapeElem start;
  ShapeElem size;
};
// Of start:stop:step over an axis of this size; step is not 0.
SliceRange normalized_range(int64_t start, int64_t stop, int64_t step, int64_t size);

// --- building and encoding ---

// The one input; std::invalid_argument when there is another number of them.
const array& only(const std::vector<array>& inputs);

// The arguments as a vector; temporaries are moved, not counted twice.
template <typename... Arrays>
std::vector<array> inputs_of(Arrays&&... arrays) {
  std::vector<array> inputs;
  inputs.reserve(sizeof...(arrays));
  (inputs.push_back(std::forward<Arrays>(arrays)), ...);
  return inputs;
}

// A node whose inputs the op has checked.
template <typename T, typename... Args>
array make_node(Shape shape, Dtype dtype, std::vector<array> inputs, StreamOrDevice s,
                Args&&... args) {
  return detail::make_checked(
      std::move(shape), dtype,
      std::allocate_shared<T>(PoolAllocator<T>(), to_stream(s), std::forward<Args>(args)...),
      std::move(inputs));
}

// --- for rules of derivatives and of vmap ---

// A primitive with one input and one output, whose vjp is pull_back.
template <class Base>
class Single : public Base {
 public:
  using Base::Base;
  virtual array pull_back(const array& input, const array& cotangent, const array& output) = 0;
  std::vector<array> vjp_rule(const std::vector<array>& primals,
                              const std::vector<array>& cotangents, const std::vector<int>&,
                              const std::vector<array>& outputs) final {
    return {pull_back(primals[0], cotangents[0], outputs[0])};
  }
};

// The sum over what was repeated when an array of `shape` was broadcast to a's shape.
array sum_to_shape(const array& a, const Shape& shape, StreamOrDevice s);
// a * conjugate(factor): the cotangent of x where out = factor * x.
array scaled_cotangent(const array& cotangent, const array& factor, StreamOrDevice s);
// `a` with the mapped axis in front, which is at `axis` now; -1: it has none, and is repeated.
array with_mapped_axis(const array& a, int axis, int size, StreamOrDevice s);
// Each axis one further back.
inline std::vector<int> one_further(std::vector<int> axes) {
  for (int& axis : axes) ++axis;
  return axes;
}
inline Shape with_front(ShapeElem first, const Shape& shape) {
  Shape result = shape;
  result.insert(result.begin(), first);
  return result;
}

}  // namespace holdfast
