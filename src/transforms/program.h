// A trace as a list of calls that can be built again with other inputs.
#pragma once

#include <memory>
#include <vector>

#include <holdfast/array.h>
#include <holdfast/primitive.h>

namespace holdfast::detail {

class Program {
 public:
  // `outputs` were computed from `inputs`, which are placeholders. With `simplify`, calls that
  // compute the same are made one, and those that only hand a value on are left out.
  Program(const std::vector<array>& inputs, const std::vector<array>& outputs, bool simplify);

  // Nodes for what the outputs are, given these inputs. Any thread may do so at any time.
  std::vector<array> build(const std::vector<array>& inputs) const;
  size_t size() const { return calls_.size(); }

 private:
  // Values are numbered: the inputs, the constants, then the outputs of each call.
  struct Call {
    std::shared_ptr<Primitive> primitive;
    std::vector<int> inputs;
    std::vector<Shape> shapes;
    std::vector<Dtype> dtypes;
    int first_output;
  };

  bool is_same(const Call& a, const Call& b) const;

  std::vector<array> constants_;
  std::vector<Call> calls_;
  std::vector<int> outputs_;
  int value_count_;
};

}  // namespace holdfast::detail
