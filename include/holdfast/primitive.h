// Primitive: what a graph node does. Subclass it to add an op of your own.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include <holdfast/array.h>
#include <holdfast/label.h>
#include <holdfast/stream.h>

namespace holdfast {

class Primitive {
 public:
  explicit Primitive(Stream stream) : stream_(stream), label_(label::current()) {}
  virtual ~Primitive() = default;
  Primitive(const Primitive&) = delete;
  Primitive& operator=(const Primitive&) = delete;

  const Device& device() { return stream_.device; }
  const Stream& stream() { return stream_; }
  const label::Label& label() const { return label_; }

  // Encode the work that fills `outputs` from `inputs`, on the CPU device or under the GPU model.
  // Called with the stream's encoder locked; must not evaluate or wait. When it throws, nothing of
  // what it encoded runs, and the node can be evaluated again.
  virtual void eval_cpu(const std::vector<array>& inputs, std::vector<array>& outputs) = 0;
  virtual void eval_gpu(const std::vector<array>& inputs, std::vector<array>& outputs) = 0;

  // --- rules for transforms ---
  //
  // `argnums` says which inputs a rule is asked about. An op needs vjp or decomposed to be
  // differentiated; all other rules are there for speed: transforms do without.

  // For each of `argnums`, the cotangent of that input: linear in `cotangents`, built of ops that
  // can be differentiated themselves, of the input's shape and dtype. Inputs and outputs that are
  // not of a floating or complex dtype are never asked about.
  virtual std::vector<array> vjp(const std::vector<array>& primals,
                                 const std::vector<array>& cotangents,
                                 const std::vector<int>& argnums,
                                 const std::vector<array>& outputs);
  // The tangents of the outputs, from one tangent for each of `argnums`. Nothing: no rule, and vjp
  // is transposed.
  virtual std::vector<array> jvp(const std::vector<array>& primals,
                                 const std::vector<array>& tangents,
                                 const std::vector<int>& argnums);
  // The outputs for inputs that have one more axis each (-1: this one has not), and where the
  // outputs have it. Nothing: no rule.
  virtual std::pair<std::vector<array>, std::vector<int>> vmap(const std::vector<array>& inputs,
                                                               const std::vector<int>& axes);
  // The same op for inputs that all have one more axis, in front; so have its outputs then. Null:
  // there is no such op.
  virtual std::shared_ptr<Primitive> with_leading_axis() { return nullptr; }
  // The outputs, computed by other ops. Nothing: there is no such form.
  virtual std::vector<array> decomposed(const std::vector<array>& inputs);

  virtual const char* name() const = 0;
  virtual bool is_equivalent(const Primitive&) const { return false; }
  virtual std::vector<Shape> output_shapes(const std::vector<array>& inputs);

  // How evaluation may treat the node, beside calling eval.
  struct Traits {
    // Index into the element-wise table (kernels/cpu/elementwise.h), or -1: may join a fused group.
    int16_t elementwise = -1;
    // Sets metadata only and encodes no command.
    bool is_view = false;
    // More leading axes of an input broadcast with those of the others, and lead in the output.
    bool broadcasts = false;
    // name() outlives the primitive (a string literal); other names are copied.
    bool name_is_literal = false;
    // A detail::Op: `array` checks the nodes that programs make of it.
    bool is_of_library = false;
  };
  const Traits& traits() const { return traits_; }

 protected:
  Traits traits_;

 private:
  Stream stream_;
  label::Label label_;
};

// A primitive with one output.
class UnaryPrimitive : public Primitive {
 public:
  using Primitive::Primitive;
  virtual void eval_cpu(const std::vector<array>& inputs, array& output) = 0;
  virtual void eval_gpu(const std::vector<array>& inputs, array& output) = 0;
  void eval_cpu(const std::vector<array>& inputs, std::vector<array>& outputs) final {
    eval_cpu(inputs, outputs[0]);
  }
  void eval_gpu(const std::vector<array>& inputs, std::vector<array>& outputs) final {
    eval_gpu(inputs, outputs[0]);
  }
};

}  // namespace holdfast
