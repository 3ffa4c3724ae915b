#include <holdfast/primitive.h>

#include <stdexcept>
#include <string>

#include <holdfast/utils.h>

#include "exec/queue.h"
#include "graph/op.h"

namespace holdfast {
namespace {

[[noreturn]] void missing(const Primitive& primitive, const char* what, const char* advice) {
  throw std::invalid_argument(std::string("[Primitive::") + what + "] not implemented for " +
                              primitive.name() + "; " + advice);
}

}  // namespace

std::vector<array> Primitive::vjp(const std::vector<array>&, const std::vector<array>&,
                                  const std::vector<int>&, const std::vector<array>&) {
  missing(*this, "vjp",
          "stop the gradient before it with stop_gradient, or give the function a rule of its own "
          "with custom_vjp");
}

std::vector<array> Primitive::jvp(const std::vector<array>&, const std::vector<array>&,
                                  const std::vector<int>&) {
  return {};
}

std::pair<std::vector<array>, std::vector<int>> Primitive::vmap(const std::vector<array>&,
                                                                const std::vector<int>&) {
  return {};
}

std::vector<array> Primitive::decomposed(const std::vector<array>&) { return {}; }

std::vector<Shape> Primitive::output_shapes(const std::vector<array>&) {
  missing(*this, "output_shapes", "compile and export it without `shapeless`");
}

namespace detail {

namespace {
// Nodes were checked when they were built, but whoever evaluates a primitive by hand has outputs of
// another, or of none.
void encode_checked(Op& op, const std::vector<array>& inputs, std::vector<array>& outputs) {
  Encoder& encoder = Encoder::of(op.stream());
  if (outputs.empty() || outputs[0].primitive_ptr().get() != &op) {
    std::vector<Shape> shapes;
    std::vector<Dtype> dtypes;
    for (const array& output : outputs) {
      shapes.push_back(output.shape());
      dtypes.push_back(output.dtype());
    }
    op.check(inputs, shapes, dtypes);
  }
  exec::Device& device = encoder.queue().device();
  op.encode_prepared(encoder, op.prepare(device, inputs, outputs).get(), inputs, outputs);
}
}  // namespace

void Op::eval_cpu(const std::vector<array>& inputs, std::vector<array>& outputs) {
  encode_checked(*this, inputs, outputs);
}
void Op::eval_gpu(const std::vector<array>& inputs, std::vector<array>& outputs) {
  encode_checked(*this, inputs, outputs);
}
std::optional<Record> Op::record() const { return std::nullopt; }

void PreparedOp::encode(Encoder& encoder, const std::vector<array>& inputs,
                        std::vector<array>& outputs) {
  exec::Device& device = encoder.queue().device();
  encode_prepared(encoder, prepare(device, inputs, outputs).get(), inputs, outputs);
}

// A group of one: for whoever evaluates the primitive by hand.
void FusableOp::encode(Encoder& encoder, const std::vector<array>& inputs,
                       std::vector<array>& outputs) {
  FusedStep step{traits_.elementwise,
                 static_cast<uint8_t>(inputs.size()),
                 {0, 1, 2},
                 outputs[0].dtype(),
                 inputs.back().dtype(),
                 &outputs[0]};
  encode_group(encoder, {&outputs[0].shape(), inputs, 0, std::span(&step, 1)});
}

}  // namespace detail
}  // namespace holdfast
