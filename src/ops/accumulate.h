// Sums of cotangents, of which some are zeros but for a few places.
#pragma once

#include <memory>

#include "ops/support.h"

namespace holdfast {

// An op that changes a part of its first input.
class PartialUpdate {
 public:
  virtual ~PartialUpdate() = default;
  // The op that adds to its first input what this one puts into zeros; null: there is none.
  virtual std::shared_ptr<Primitive> as_addition() = 0;
};

// Was it made as zeros, and not evaluated since?
bool is_zeros(const array& a);

// a + b, both of one shape and dtype. What was put into zeros is added in place: the derivative of
// a gather, or of a slice, costs no pass over the whole array.
array accumulate(const array& a, const array& b);

}  // namespace holdfast
