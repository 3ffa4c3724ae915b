// How an update meets what is there, and which part of an array it meets.
#pragma once

#include <cstdint>
#include <span>

#include <holdfast/array.h>

namespace holdfast::kernels {

// Numbers that files of functions and captures hold: append only.
enum class UpdateMode : uint8_t { replace = 0, add = 1, multiply = 2, maximum = 3, minimum = 4 };

// A slice of an array. Its elements are distinct.
struct SliceRegion {
  Strides strides;     // in the array
  int64_t offset = 0;  // of its first element, where all starts are known when the op is encoded
  // The axes whose starts are the elements of an array; the others start at 0.
  std::span<const int> axes = {};
};

// Of an array with these strides; `start` and `steps` are normalised.
inline SliceRegion slice_region(const Strides& strides, const Shape& start, const Shape& steps) {
  SliceRegion region{strides};
  for (size_t i = 0; i < start.size(); ++i) {
    region.offset += start[i] * region.strides[i];
    region.strides[i] *= steps[i];
  }
  return region;
}

}  // namespace holdfast::kernels
