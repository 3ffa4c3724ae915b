// A trace as a list of calls that can be built again with other inputs.
#pragma once

#include <vector>

#include "transforms/call.h"

namespace holdfast::detail {

struct ProgramOptions {
  // Calls that compute the same are made one, and those that only hand a value on are left out.
  bool simplify = true;
  // Element-wise calls are made one node (fuse.h).
  bool fuse = true;
  // Inputs may have other shapes than in the trace, of as many dimensions: the shapes of all values
  // follow from them. Every primitive must be able to say how (Primitive::output_shapes).
  bool shapeless = false;

  bool operator==(const ProgramOptions&) const = default;
};

class Program {
 public:
  // `outputs` were computed from `inputs`, which are placeholders.
  Program(const std::vector<array>& inputs, const std::vector<array>& outputs,
          ProgramOptions options);

  // Nodes for what the outputs are, given these inputs. Any thread may do so at any time.
  std::vector<array> build(const std::vector<array>& inputs) const;
  // Values are numbered: the inputs, the constants, then the outputs of each call in turn.
  const std::vector<array>& constants() const { return constants_; }
  const std::vector<Call>& calls() const { return calls_; }
  const std::vector<int>& outputs() const { return outputs_; }

 private:
  void trace(const std::vector<array>& inputs, const std::vector<array>& outputs);
  bool is_same(const Call& a, const Call& b) const;
  void check_shapeless() const;
  void number_in_order();

  ProgramOptions options_;
  size_t input_count_;
  std::vector<array> constants_;
  std::vector<Call> calls_;
  std::vector<int> outputs_;
  std::vector<ValueInfo> values_;  // while the program is made
};

// A primitive whose shapes do not follow from its inputs alone was given numbers that the function
// read from the shapes of the trace, and would be wrong for others: std::invalid_argument.
void check_shape_follows(Primitive& primitive, const std::vector<array>& inputs,
                         const std::vector<Shape>& shapes);

}  // namespace holdfast::detail
