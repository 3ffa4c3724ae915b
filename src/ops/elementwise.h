// The primitives of element-wise ops.
#pragma once

#include <string>
#include <vector>

#include "kernels/cpu/elementwise.h"
#include "ops/support.h"

namespace holdfast {

// Any row of elementwise.def.
class Elementwise final : public FusableOp {
 public:
  Elementwise(Stream stream, cpu::ElementwiseOp op);
  void encode_group(Encoder& encoder, const FusedGroup& group) override;
  const char* name() const override;
  bool is_equivalent(const Primitive& other) const override;
  std::optional<Record> record() const override { return Record{name(), {}}; }
  std::vector<Shape> output_shapes(const std::vector<array>& inputs) override;
  std::vector<array> vjp(const std::vector<array>& primals, const std::vector<array>& cotangents,
                         const std::vector<int>& argnums,
                         const std::vector<array>& outputs) override;
  cpu::ElementwiseOp op() const { return static_cast<cpu::ElementwiseOp>(traits_.elementwise); }
};

class AsType final : public Recorded<AsType, FusableOp> {
 public:
  // The code of a conversion in a fused group; the step's dtypes say from what to what.
  static constexpr int16_t code = static_cast<int16_t>(cpu::ElementwiseOp::count);
  AsType(Stream stream, Dtype dtype);
  void encode_group(Encoder& encoder, const FusedGroup& group) override;
  const char* name() const override { return "AsType"; }
  auto members() const { return std::tie(dtype_); }
  std::vector<Shape> output_shapes(const std::vector<array>& inputs) override {
    return {inputs[0].shape()};
  }
  std::vector<array> vjp(const std::vector<array>& primals, const std::vector<array>& cotangents,
                         const std::vector<int>& argnums,
                         const std::vector<array>& outputs) override;
  Dtype dtype() const { return dtype_; }

 private:
  Dtype dtype_;
};

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
const ElementwiseRow& elementwise_row(cpu::ElementwiseOp op);
// The op of that row; std::invalid_argument for another number of inputs than it takes.
array call_elementwise(cpu::ElementwiseOp op, const std::vector<array>& inputs, StreamOrDevice s);

}  // namespace holdfast
