#include "devices/cpu/jit/compiler/widen/shape.h"

#include <algorithm>

#include "devices/cpu/jit/kernel_abi.h"

namespace holdfast::jit {

Shape shape_with(Shape::Kind kind, int64_t stride, uint64_t alignment) {
  Shape shape;
  shape.kind = kind;
  shape.stride = stride;
  shape.alignment = static_cast<uint32_t>(std::min<uint64_t>(alignment, most_shape_alignment));
  return shape;
}
Shape uniform_shape(uint64_t alignment) { return shape_with(Shape::uniform, 0, alignment); }
Shape varying_shape() { return shape_with(Shape::varying, 0, 1); }
Shape linear_shape(int64_t stride, uint64_t alignment) {
  if (stride == 0) return uniform_shape(alignment);
  if (stride > most_stride || stride < -most_stride) return varying_shape();
  return shape_with(Shape::linear, stride, alignment);
}

Shape join(Shape a, Shape b) {
  if (a.kind == Shape::unknown) return b;
  if (b.kind == Shape::unknown) return a;
  if (!a.moves_like(b)) return varying_shape();
  a.alignment = std::min(a.alignment, b.alignment);
  if (a.base != b.base || !b.is_fixed) {
    a.is_fixed = false;
    a.base = 0;
  }
  return a;
}

Shape without_values(Shape shape) {
  shape.is_fixed = false;
  shape.base = 0;
  return shape;
}

uint64_t alignment_of(uint64_t value) {
  return value == 0 ? most_shape_alignment : value & (~value + 1);
}

bool stays_below(const Shape& shape, uint64_t alignment) {
  for (int64_t lane = 0; lane < simdgroup_width; ++lane) {
    if (shape.offset(lane) < 0 || shape.offset(lane) >= static_cast<int64_t>(alignment))
      return false;
  }
  return true;
}

}  // namespace holdfast::jit
