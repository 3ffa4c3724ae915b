// Iteration over the rows of an array. Declared with the array, but made of ops.
#include <holdfast/array.h>
#include <holdfast/ops.h>

namespace holdfast {

array::ArrayIterator::ArrayIterator(const array& arr, int index) : array_(arr), index_(index) {
  if (arr.ndim() == 0) {
    throw std::invalid_argument("[array::begin] cannot iterate over a 0-d array");
  }
}

array::ArrayIterator::reference array::ArrayIterator::operator*() const {
  Shape start(array_.ndim(), 0), stop = array_.shape();
  start[0] = index_;
  stop[0] = index_ + 1;
  return squeeze(slice(array_, std::move(start), std::move(stop)), 0);
}

array::ArrayIterator array::begin() const { return ArrayIterator(*this, 0); }

array::ArrayIterator array::end() const { return ArrayIterator(*this, ndim() == 0 ? 0 : shape(0)); }

}  // namespace holdfast
