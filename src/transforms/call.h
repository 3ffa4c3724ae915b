// A call of a primitive in a trace whose values are numbered.
#pragma once

#include <memory>
#include <vector>

#include <holdfast/array.h>
#include <holdfast/primitive.h>

namespace holdfast::detail {

struct Call {
  std::shared_ptr<Primitive> primitive;
  std::vector<int> inputs, outputs;  // numbers of values
  std::vector<Shape> shapes;         // of the outputs
  std::vector<Dtype> dtypes;
  bool is_settled = false;  // while groups are formed: none begins with it any more
};

// What is known of a numbered value.
struct ValueInfo {
  Shape shape;
  Dtype dtype;
  bool is_constant = false;
};

}  // namespace holdfast::detail
