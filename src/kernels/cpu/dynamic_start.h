// A slice whose start is known only when the op runs.
#pragma once

#include <cstdint>
#include <span>

#include <holdfast/array.h>
#include <holdfast/small_vector.h>

namespace holdfast::kernels::cpu {

// Reads the start of a slice along some axes of an array from another array, of integers.
class DynamicStart {
 public:
  // `op` names the public function in errors (a literal). `whole` and `strides`: of the array;
  // `slice`: the shape of the slice; `start`: one integer per axis, in memory when `offset` is
  // called.
  DynamicStart(const char* op, std::span<const int> axes, const Shape& whole,
               const Strides& strides, const Shape& slice, const array& start);

  // Of the slice's first element from the array's, in elements. `starts`: the address of the first
  // integer. Throws std::runtime_error when the slice would leave the array.
  int64_t offset(const void* starts) const;

 private:
  struct Axis {
    int64_t stride, room;  // the largest start that stays inside
    int index;
  };
  const char* op_;
  SmallVector<Axis, 4> axes_;
  Dtype::Val type_;
  int64_t step_;
};

}  // namespace holdfast::kernels::cpu
