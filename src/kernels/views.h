// Layouts of arrays and of views of them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <holdfast/array.h>

namespace holdfast {

inline std::span<const int32_t> span_of(const Shape& shape) { return {shape.data(), shape.size()}; }
inline std::span<const int64_t> span_of(const Strides& strides) {
  return {strides.data(), strides.size()};
}
Strides row_major_strides(const Shape& shape);
// Strides of an array of `shape` and `strides` seen as the larger `target` shape: 0 where it
// repeats.
Strides broadcast_strides(const Shape& shape, const Strides& strides, const Shape& target);

struct ViewLayout {
  array::Flags flags;
  size_t data_size;  // from the lowest to the highest element of the view
};
// Flags and extent of a view: the one place that knows the contiguity rules.
ViewLayout layout_of(const Shape& shape, const Strides& strides);
// Makes `out` a view of `in` with these strides, `offset` elements from its first one.
void share(const array& in, array& out, const Strides& strides, int64_t offset = 0);
// `in` with its axes in another order: a view.
array with_axes(const array& in, std::span<const int> order);
// All axes, those of `last` at the end; both parts are in order.
std::vector<int> axes_with_last(size_t axes, std::span<const int> last);
// Strides that walk the elements of a view in the same order as `target`; false when none do.
bool reshaped_strides(const Shape& shape, const Strides& strides, const Shape& target,
                      Strides& result);

// Does `in` start where an element of `bytes` bytes (a power of two) may, in every memory that it
// is in? Memory of the library begins at such a place, a program's need not.
bool is_aligned_everywhere(const array& in, size_t bytes);

}  // namespace holdfast
