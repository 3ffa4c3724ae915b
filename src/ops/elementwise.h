// The primitives of element-wise ops.
#pragma once

#include <string>
#include <vector>

#include <holdfast/primitives.h>

#include "kernels/plan/elementwise.h"
#include "ops/support.h"

namespace holdfast {

// Quotient and remainder of one division: two outputs, one pass over the inputs.
class DivMod final : public Recorded<DivMod, Op> {
 public:
  using Recorded::Recorded;
  void encode(Encoder& encoder, const std::vector<array>& inputs,
              std::vector<array>& outputs) override;
  std::vector<array> decomposed(const std::vector<array>& inputs) override;
  std::vector<Shape> output_shapes(const std::vector<array>& inputs) override {
    return std::vector<Shape>(2, broadcast_shapes(inputs[0].shape(), inputs[1].shape()));
  }
  const char* name() const override { return "DivMod"; }
  auto members() const { return std::tie(); }
};

// How the dtypes of a row's operands and result follow from its inputs: the column `rule`.
enum class DtypeRule : uint8_t { same_, inexact_, predicate_, logical_, part_, select_ };

struct ElementwiseRow {
  const char* function;
  DtypeRule rule;
  uint16_t accepted;  // bit v: operands of the dtype with Val v are accepted
};
const ElementwiseRow& elementwise_row(kernels::ElementwiseOp op);
// The op of that row; std::invalid_argument for another number of inputs than it takes.
array call_elementwise(kernels::ElementwiseOp op, const std::vector<array>& inputs,
                       StreamOrDevice s);

}  // namespace holdfast
