// Matrix products.
#include <optional>

#include "kernels/cpu/matmul.h"
#include "kernels/cpu/task_scratch.h"
#include "ops/dynamic_shape.h"
#include "ops/inner.h"
#include "ops/support.h"

namespace holdfast {

namespace {

// Of matrices, whose inner dimensions must agree.
Shape product_shape(const array& a, const array& b) {
  if (a.shape(-1) != b.shape(-2)) {
    throw std::invalid_argument(text("[matmul] last dimension of a (", a.shape(-1),
                                     ") must match second-to-last of b (", b.shape(-2),
                                     "): shapes ", a.shape(), " and ", b.shape()));
  }
  Shape shape = broadcast_shapes_for("matmul", Shape(a.shape().begin(), a.shape().end() - 2),
                                     Shape(b.shape().begin(), b.shape().end() - 2));
  shape.push_back(a.shape(-2));
  shape.push_back(b.shape(-1));
  return shape;
}

// Half types in, and a float32 out: the product before it is rounded.
class Matmul final : public Recorded<Matmul, Op> {
 public:
  explicit Matmul(Stream stream) : Recorded(stream) { traits_.broadcasts = true; }
  void encode(Encoder& encoder, const std::vector<array>& inputs,
              std::vector<array>& outputs) override;
  std::vector<array> vjp_rule(const std::vector<array>& primals,
                              const std::vector<array>& cotangents, const std::vector<int>& argnums,
                              const std::vector<array>& outputs) override;
  std::vector<Shape> output_shapes(const std::vector<array>& inputs) override {
    return {product_shape(inputs[0], inputs[1])};
  }
  const char* name() const override { return "Matmul"; }
  auto members() const { return std::tie(); }
};

void Matmul::encode(Encoder& encoder, const std::vector<array>& inputs,
                    std::vector<array>& outputs) {
  const array& a = inputs[0];
  const array& b = inputs[1];
  array& out = outputs[0];
  encoder.allocate(out);
  if (out.size() == 0) return;
  int64_t m = a.shape(-2), k = a.shape(-1), n = b.shape(-1);
  Shape batch(out.shape().begin(), out.shape().end() - 2);
  auto batch_strides = [&](const array& x) {
    return broadcast_strides(Shape(x.shape().begin(), x.shape().end() - 2),
                             Strides(x.strides().begin(), x.strides().end() - 2), batch);
  };
  Strides batch_a = batch_strides(a), batch_b = batch_strides(b);
  kernels::cpu::MatmulPlan plan(
      a.dtype(), span_of(batch), m, n, k, {span_of(batch_a), a.strides(-2), a.strides(-1)},
      {span_of(batch_b), b.strides(-2), b.strides(-1)}, true, out.dtype() != a.dtype());
  std::optional<array> parts;
  if (size_t bytes = plan.part_bytes()) parts = make_temporary(encoder, bytes);
  encoder.input(a);
  encoder.input(b);
  encoder.output(parts ? *parts : out);
  const void* left = a.data<char>();
  const void* right = b.data<char>();
  void* target = parts ? parts->data<char>() : out.data<char>();
  int64_t tasks = plan.tasks();
  // A multiplication weighs about as much as an eighth of a byte moved.
  int64_t work = static_cast<int64_t>(out.size()) * k / 8 + static_cast<int64_t>(out.nbytes());
  encoder.native(name(), tasks, work, [=](int64_t begin, int64_t end) {
    kernels::cpu::TaskScratch scratch(plan.task_scratch_bytes());
    for (int64_t task = begin; task < end; ++task) {
      plan.run(task, left, right, target, scratch.get());
    }
  });
  if (!parts) return;
  encoder.input(*parts);
  encoder.output(out);
  void* to = out.data<char>();
  encoder.native(name(), plan.products(), static_cast<int64_t>(plan.part_bytes()) / 4,
                 [=](int64_t begin, int64_t end) { plan.add_parts(begin, end, target, to); });
}

std::vector<array> Matmul::vjp_rule(const std::vector<array>& primals,
                                    const std::vector<array>& cotangents,
                                    const std::vector<int>& argnums, const std::vector<array>&) {
  auto adjoint = [&](const array& a) {
    array turned = swapaxes(a, -1, -2, stream());
    return a.dtype() == complex64 ? conjugate(turned, stream()) : turned;
  };
  std::vector<array> result;
  // Of half types again where the product was not rounded: the result is.
  array cotangent = astype(cotangents[0], primals[0].dtype(), stream());
  for (int argnum : argnums) {
    array part = argnum == 0 ? matmul(cotangent, adjoint(primals[1]), stream())
                             : matmul(adjoint(primals[0]), cotangent, stream());
    result.push_back(sum_like(part, primals[static_cast<size_t>(argnum)], stream()));
  }
  return result;
}

}  // namespace

array matmul(const array& a, const array& b, StreamOrDevice s) { return matmul(a, b, s, false); }

array matmul(const array& a, const array& b, StreamOrDevice s, bool widens) {
  if (a.ndim() == 0 || b.ndim() == 0) {
    throw std::invalid_argument(text("[matmul] expected one dimension or more, got shapes ",
                                     a.shape(), " and ", b.shape()));
  }
  Dtype dtype = promote_types(a.dtype(), b.dtype());
  if (!issubdtype(dtype, inexact)) {
    throw std::invalid_argument(
        text("[matmul] expected a floating or complex dtype, got ", a.dtype(), " and ", b.dtype()));
  }
  array left = astype(a.ndim() == 1 ? expand_dims(a, 0, s) : a, dtype, s);
  array right = astype(b.ndim() == 1 ? expand_dims(b, 1, s) : b, dtype, s);
  if (left.shape(-1) != right.shape(-2)) {
    throw std::invalid_argument(text("[matmul] last dimension of a (", left.shape(-1),
                                     ") must match ",
                                     b.ndim() == 1 ? "the length" : "second-to-last", " of b (",
                                     right.shape(-2), "): shapes ", a.shape(), " and ", b.shape()));
  }
  Shape shape = product_shape(left, right);
  Dtype result = widens ? computed_in(dtype) : dtype;
  checked_size("matmul", shape, result);
  array out = make_node<Matmul>(std::move(shape), result, {left, right}, s);
  std::vector<int> added;
  if (a.ndim() == 1) added.push_back(-2);
  if (b.ndim() == 1) added.push_back(-1);
  return squeeze(out, added, s);
}

}  // namespace holdfast
