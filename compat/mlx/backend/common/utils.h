// Helpers that primitives of MLX programs use: contiguity, strides, and the location of an element.
//
// In the namespace of `array`: programs call them without a namespace, too, by their arguments.
#pragma once

#include <filesystem>
#include <iomanip>
#include <tuple>
#include <utility>
#include <vector>

#include <holdfast/array.h>
#include <holdfast/utils.h>

#include "mlx/core.h"

namespace holdfast {

// The place of element `elem` (in row-major order) of a shape in memory.
inline int64_t elem_to_loc(int elem, const Shape& shape, const Strides& strides) {
  int64_t place = 0;
  for (int i = static_cast<int>(shape.size()) - 1; i >= 0; --i) {
    place += (elem % shape[i]) * strides[i];
    elem /= shape[i];
  }
  return place;
}
inline int64_t elem_to_loc(int elem, const array& a) {
  return a.flags().row_contiguous ? elem : elem_to_loc(elem, a.shape(), a.strides());
}

template <typename Stride>
SmallVector<Stride> make_contiguous_strides(const Shape& shape) {
  SmallVector<Stride> strides(shape.size(), 1);
  for (int i = static_cast<int>(shape.size()) - 1; i > 0; --i)
    strides[i - 1] = strides[i] * shape[i];
  return strides;
}
inline Strides make_contiguous_strides(const Shape& shape) {
  return make_contiguous_strides<int64_t>(shape);
}

// Merges neighbouring dimensions that all of the stride lists walk as one. Dimensions of size 1 go
// away.
std::tuple<Shape, std::vector<Strides>> collapse_contiguous_dims(
    const Shape& shape, const std::vector<Strides>& strides, int64_t size_cap = INT32_MAX);
std::tuple<Shape, std::vector<Strides>> collapse_contiguous_dims(const std::vector<array>& xs,
                                                                 size_t size_cap = INT32_MAX);
std::pair<Shape, Strides> collapse_contiguous_dims(const Shape& shape, const Strides& strides,
                                                   int64_t size_cap = INT32_MAX);
std::pair<Shape, Strides> collapse_contiguous_dims(const array& a, int64_t size_cap = INT32_MAX);

// {no gaps, row-contiguous, column-contiguous} of a layout whose elements span `data_size`.
inline auto check_contiguity(const Shape& shape, const Strides& strides) {
  size_t no_broadcast_data_size = 1;
  int64_t from_right = 1, from_left = 1;
  bool is_row = true, is_column = true;
  for (int i = 0, ri = static_cast<int>(shape.size()) - 1; ri >= 0; ++i, --ri) {
    is_column &= strides[i] == from_left || shape[i] == 1;
    is_row &= strides[ri] == from_right || shape[ri] == 1;
    from_left *= shape[i];
    from_right *= shape[ri];
    if (strides[i] > 0) no_broadcast_data_size *= static_cast<size_t>(shape[i]);
  }
  return std::make_tuple(no_broadcast_data_size, is_row, is_column);
}

inline bool is_donatable(const array& in, const array& out) {
  constexpr size_t slack = 16384;
  return in.is_donatable() && in.itemsize() == out.itemsize() &&
         in.buffer_size() <= out.nbytes() + slack;
}

// The folder of the program's binary, where kernels are looked for.
std::filesystem::path current_binary_dir();

using Dims = std::tuple<uint32_t, uint32_t, uint32_t>;
// A threadgroup of at most 2^power threads for a grid of these sizes: powers of two.
Dims get_block_dims_common(int dim0, int dim1, int dim2, int power = 10);
// Two dimensions that cover an array of this shape: the last dimension, and the others.
Dims get_2d_grid_dims_common(const Shape& shape, const Strides& strides);

template <typename T>
SmallVector<T> remove_index(SmallVector<T> values, size_t index) {
  values.erase(values.begin() + static_cast<int64_t>(index));
  return values;
}

// {must be copied, the strides otherwise} for `in` seen with the shape of `out`.
std::pair<bool, Strides> prepare_reshape(const array& in, const array& out);
void shared_buffer_reshape(const array& in, const Strides& out_strides, array& out);

// Walks the elements of an array in row-major order; `loc` is the current one's, in elements.
struct ContiguousIterator {
  ContiguousIterator() = default;
  explicit ContiguousIterator(const array& a) : ContiguousIterator(a.shape(), a.strides(), 0) {}
  explicit ContiguousIterator(const Shape& shape, const Strides& strides, int dims);

  void step() {
    int64_t axis = static_cast<int64_t>(shape_.size()) - 1;
    while (axis > 0 &&
           position_[static_cast<size_t>(axis)] == shape_[static_cast<size_t>(axis)] - 1) {
      position_[static_cast<size_t>(axis)] = 0;
      loc -= (shape_[static_cast<size_t>(axis)] - 1) * strides_[static_cast<size_t>(axis)];
      --axis;
    }
    if (axis < 0) return;
    ++position_[static_cast<size_t>(axis)];
    loc += strides_[static_cast<size_t>(axis)];
  }
  void seek(int64_t element);
  void reset() {
    loc = 0;
    for (auto& place : position_) place = 0;
  }

  int64_t loc = 0;

 private:
  Shape shape_, position_;
  Strides strides_;
};

}  // namespace holdfast
