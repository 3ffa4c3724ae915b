// Iteration over the rows of an array. Declared with the array, but made of ops.
#include <holdfast/array.h>
#include <holdfast/ops.h>

#include "ops/dynamic_shape.h"

namespace holdfast {

array::ArrayIterator::ArrayIterator(const array& arr, int index) : array_(arr), index_(index) {
  if (arr.ndim() == 0) {
    throw std::invalid_argument("[array::begin] cannot iterate over a 0-d array");
  }
}

array::ArrayIterator::reference array::ArrayIterator::operator*() const {
  return squeeze(slice_by(array_, cut_of(array_, 0, index_, index_ + 1), {}), 0);
}

array::ArrayIterator array::begin() const { return ArrayIterator(*this, 0); }

array::ArrayIterator array::end() const { return ArrayIterator(*this, ndim() == 0 ? 0 : shape(0)); }

}  // namespace holdfast
