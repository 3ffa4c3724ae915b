// Matrix products.
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
  kernels::backend_of(encoder).matmul(encoder, inputs[0], inputs[1], outputs[0]);
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
