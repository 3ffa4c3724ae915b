// Bases of the built-in primitives.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include <holdfast/encoder.h>
#include <holdfast/primitive.h>

#include "graph/record.h"

namespace holdfast {

// A built-in primitive encodes the same commands on the CPU device and under the GPU model.
class Op : public Primitive {
 public:
  explicit Op(Stream stream) : Primitive(stream) { traits_.name_is_literal = true; }
  virtual void encode(Encoder& encoder, const std::vector<array>& inputs,
                      std::vector<array>& outputs) = 0;
  void eval_cpu(const std::vector<array>& inputs, std::vector<array>& outputs) final {
    encode(Encoder::of(stream()), inputs, outputs);
  }
  void eval_gpu(const std::vector<array>& inputs, std::vector<array>& outputs) final {
    encode(Encoder::of(stream()), inputs, outputs);
  }
  // How a file of functions calls the op; nothing: it cannot be saved.
  virtual std::optional<Record> record() const { return std::nullopt; }
  // The input that output `i` only hands on, or -1.
  virtual int handed_on(int /*output*/) const { return -1; }
};

// One step of a fused group: an element-wise op on earlier values. A value is the index of an
// external input of the group, or `result` + the index of an earlier step.
struct FusedStep {
  static constexpr uint16_t result = 0x8000;
  int16_t op;  // Primitive::Traits::elementwise
  uint8_t arity;
  uint16_t values[3];
  Dtype dtype;          // of the result
  Dtype operand_dtype;  // of the operands (of the last one, for select)
  array* output;        // where the result goes, or null when nobody outside needs it
};

// Element-wise ops over one iteration shape, run as one pass.
struct FusedGroup {
  const Shape* shape;
  std::span<const array> inputs;  // evaluated; broadcast to `shape`
  // May the memory of input i be taken over by an output? (All its uses are inside the group.)
  uint32_t donatable;          // bit i: input i
  std::span<FusedStep> steps;  // in order of evaluation
  const char* name;            // for errors and traces: of the last step
};

// An element-wise primitive: `traits_.elementwise` is set, and evaluation passes whole groups.
class FusableOp : public Op {
 public:
  using Op::Op;
  virtual void encode_group(Encoder& encoder, const FusedGroup& group) = 0;
  // Not called by evaluation, which always makes a group, if only of one.
  void encode(Encoder& encoder, const std::vector<array>& inputs,
              std::vector<array>& outputs) override;
};

}  // namespace holdfast
