// Bases of the library's own primitives (primitives.h). Programs derive from Primitive.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <holdfast/primitive.h>

namespace holdfast {

class Encoder;

namespace exec {
class Device;
}

namespace detail {

struct FusedGroup;
struct Record;
struct RecordedCall;

// What takes long to come by and is needed to encode an op, such as a compiled kernel.
class Prepared {
 public:
  Prepared() = default;
  virtual ~Prepared() = default;
  Prepared(const Prepared&) = delete;
  Prepared& operator=(const Prepared&) = delete;
};

// Encodes the same commands on the CPU device and under the GPU model.
class Op : public Primitive {
 public:
  explicit Op(Stream stream) : Primitive(stream) {
    traits_.name_is_literal = true;
    traits_.is_of_library = true;
  }
  virtual void encode(Encoder& encoder, const std::vector<array>& inputs,
                      std::vector<array>& outputs) = 0;
  // Called before each encoding for the device, with no stream locked: the place for what takes
  // long. (Encoding itself neither compiles nor waits: an op that finds a kernel not ready then is
  // rolled back, and encoded again when it is.) Inputs have been encoded, outputs have no memory.
  // When it throws, the node can be evaluated again. Several nodes may share an op, on several
  // threads: what was made ready for a call is not kept in the op but returned, and passed to
  // `encode_prepared`. Null: nothing is needed.
  virtual std::unique_ptr<const Prepared> prepare(exec::Device& /*device*/,
                                                  const std::vector<array>& /*inputs*/,
                                                  std::vector<array>& /*outputs*/) {
    return nullptr;
  }
  virtual void encode_prepared(Encoder& encoder, const Prepared* /*prepared*/,
                               const std::vector<array>& inputs, std::vector<array>& outputs) {
    encode(encoder, inputs, outputs);
  }
  void eval_cpu(const std::vector<array>& inputs, std::vector<array>& outputs) final;
  void eval_gpu(const std::vector<array>& inputs, std::vector<array>& outputs) final;
  // How a file of functions calls the op; nothing: it cannot be saved.
  virtual std::optional<Record> record() const;
  // The outputs of the op's function, called as `record` says. Throws what the function throws, and
  // std::invalid_argument where there is no record.
  virtual std::vector<array> call_again(const RecordedCall& call) const;
  // The input that output `i` only hands on, or -1.
  virtual int handed_on(int /*output*/) const { return -1; }

  // Throws unless the op's function, called as `record` says, gives these nodes of these inputs:
  // std::invalid_argument, or what the function throws. An op without a record is refused.
  virtual void check(const std::vector<array>& inputs, std::span<const Shape> shapes,
                     std::span<const Dtype> dtypes);

  // For programs that call a rule by hand: std::invalid_argument unless the arrays are those of a
  // call of the op. Transforms take theirs from a node, and call the rule itself.
  std::vector<array> vjp(const std::vector<array>& primals, const std::vector<array>& cotangents,
                         const std::vector<int>& argnums, const std::vector<array>& outputs) final;
  std::pair<std::vector<array>, std::vector<int>> vmap(const std::vector<array>& inputs,
                                                       const std::vector<int>& axes) final;
  virtual std::vector<array> vjp_rule(const std::vector<array>& primals,
                                      const std::vector<array>& cotangents,
                                      const std::vector<int>& argnums,
                                      const std::vector<array>& outputs);
  virtual std::pair<std::vector<array>, std::vector<int>> vmap_rule(
      const std::vector<array>& inputs, const std::vector<int>& axes);
  virtual bool has_vmap_rule() const { return false; }
};

// An op that prepares its encoding.
class PreparedOp : public Op {
 public:
  using Op::Op;
  std::unique_ptr<const Prepared> prepare(exec::Device& device, const std::vector<array>& inputs,
                                          std::vector<array>& outputs) override = 0;
  void encode_prepared(Encoder& encoder, const Prepared* prepared, const std::vector<array>& inputs,
                       std::vector<array>& outputs) override = 0;
  void encode(Encoder& encoder, const std::vector<array>& inputs,
              std::vector<array>& outputs) final;
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

}  // namespace detail
}  // namespace holdfast
