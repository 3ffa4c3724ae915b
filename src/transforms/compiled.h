// What Compiled does: element-wise calls of a trace as one node.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include <holdfast/compile_impl.h>

#include "graph/op.h"
#include "kernels/plan/backend_cache.h"
#include "transforms/call.h"

namespace holdfast::detail {

// Runs its steps as one pass of the block engine, as evaluation does with a group of nodes, or as a
// kernel where that is there and faster, and gives the same bits. Which steps there are was decided
// when the function was traced: a call makes one node, whatever their number.
class CompiledSteps {
 public:
  // `calls` are element-wise, in order, of one stream and one shape; `inputs` and `outputs` are the
  // numbers of the values that they share with others.
  CompiledSteps(std::span<const Call* const> calls, std::span<const int> inputs,
                std::span<const int> outputs, std::span<const ValueInfo> values);

  std::unique_ptr<const Prepared> prepare(exec::Device& device, const std::vector<array>& inputs,
                                          std::vector<array>& outputs);
  void encode(Encoder& encoder, const Prepared* prepared, const std::vector<array>& inputs,
              std::vector<array>& outputs);
  std::vector<Shape> output_shapes(const std::vector<array>& inputs) const;
  // Throws std::invalid_argument unless these are inputs and outputs of it.
  void check(const std::vector<array>& inputs, std::span<const Shape> shapes,
             std::span<const Dtype> dtypes) const;
  bool operator==(const CompiledSteps& other) const;
  // The ops with the numbers of their operands and their dtypes.
  std::string name() const;

 private:
  using Steps = SmallVector<FusedStep, 16>;
  // The steps with these outputs, which have one shape.
  Steps steps_to(std::vector<array>& outputs) const;
  void check_count(const std::vector<array>& inputs) const;
  void encode_separately(Encoder& encoder, const std::vector<array>& inputs, array& output,
                         size_t step) const;

  size_t input_count_;
  std::vector<FusedStep> steps_;
  std::vector<size_t> outputs_;  // the steps that make them
  kernels::BackendCache cache_;  // of the group that all of them are
};

}  // namespace holdfast::detail
