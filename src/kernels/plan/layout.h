// Shapes and strides made small: merging of dimensions, and walking from any position.
//
// All kernels see views through this file. Strides count elements, may be negative or zero; sizes
// are 64-bit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <holdfast/dtype.h>
#include <holdfast/small_vector.h>

namespace holdfast::kernels {

constexpr int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Bytes of one element.
size_t item_size(Dtype::Val dtype);

// One number per dimension of a collapsed view. Few views keep more than four: plans of small ops
// allocate nothing.
using Dimensions = SmallVector<int64_t, 4>;

// A view with the fewest dimensions that visit the same elements in the same row-major order:
// no dimension of size 1, and no two neighbours that one stride could walk. A single element has no
// dimension at all; a view without elements has `size` 0 and shape {0}.
struct CollapsedLayout {
  int64_t size = 1;
  Dimensions shape;
  Dimensions strides;

  int dimensions() const { return static_cast<int>(shape.size()); }
  // Elements follow each other in memory, in row-major order.
  bool is_dense() const {
    return shape.empty() || (shape.size() == 1 && strides[0] == 1) || size == 0;
  }
};

CollapsedLayout collapse(std::span<const int32_t> shape, std::span<const int64_t> strides);
CollapsedLayout collapse(std::span<const int64_t> shape, std::span<const int64_t> strides);

// Several views of one shape, collapsed so that all of them keep one common shape.
struct JointLayout {
  int64_t size = 1;
  Dimensions shape;
  SmallVector<Dimensions, 2> strides;  // one list per view

  // The layout of view `index` alone (not collapsed further).
  CollapsedLayout view(int index) const {
    return {size, shape, strides[static_cast<size_t>(index)]};
  }
};

JointLayout collapse_jointly(std::span<const int32_t> shape,
                             std::span<const std::span<const int64_t>> stride_lists);

// Row-major strides of a dense array of this shape.
Dimensions dense_strides(std::span<const int32_t> shape);
int64_t element_count(std::span<const int32_t> shape);

// Walks a layout in row-major order from any position. Refers to the layout: it must outlive the
// odometer. Allocates nothing for up to 16 dimensions.
class Odometer {
 public:
  Odometer(const CollapsedLayout& layout, int64_t position);
  Odometer(std::span<const int64_t> shape, std::span<const int64_t> strides, int64_t position);

  // Offset of the current element from the view's first one.
  int64_t offset() const { return offset_; }
  // Elements from the current one to the end of the innermost dimension; at least 1 inside the
  // view.
  int64_t run() const { return run_; }
  // Moves on by `count` elements, at most run().
  void advance(int64_t count) {
    run_ -= count;
    offset_ += count * inner_stride_;
    if (run_ == 0) carry();
  }

 private:
  void carry();

  std::span<const int64_t> shape_;
  std::span<const int64_t> strides_;
  int64_t inner_size_ = 1;
  int64_t inner_stride_ = 0;
  int64_t run_ = 1;
  int64_t offset_ = 0;
  static constexpr int inline_dimensions = 16;
  int64_t inline_index_[inline_dimensions];
  std::vector<int64_t> heap_index_;  // only for more than inline_dimensions
  int64_t* index() { return heap_index_.empty() ? inline_index_ : heap_index_.data(); }
};

// Offset of one position of a layout.
int64_t offset_at(std::span<const int64_t> shape, std::span<const int64_t> strides,
                  int64_t position);
inline int64_t offset_at(const CollapsedLayout& layout, int64_t position) {
  return offset_at(layout.shape, layout.strides, position);
}

}  // namespace holdfast::kernels
