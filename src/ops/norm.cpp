// fast::rms_norm and fast::layer_norm.
#include <holdfast/fast.h>

#include "kernels/plan/norm.h"
#include "ops/support.h"

namespace holdfast {

namespace {

using kernels::NormKind;

// Inputs: x, then weight and bias where there are such. All have the output's dtype.
class Norm final : public Recorded<Norm, Op> {
 public:
  Norm(Stream stream, NormKind kind, float epsilon, bool has_weight, bool has_bias)
      : Recorded(stream),
        kind_(kind),
        epsilon_(epsilon),
        has_weight_(has_weight),
        has_bias_(has_bias) {}
  void encode(Encoder& encoder, const std::vector<array>& inputs,
              std::vector<array>& outputs) override;
  std::vector<array> decomposed(const std::vector<array>& inputs) override;
  std::pair<std::vector<array>, std::vector<int>> vmap_rule(const std::vector<array>& inputs,
                                                            const std::vector<int>& axes) override;
  std::vector<Shape> output_shapes(const std::vector<array>& inputs) override {
    return {inputs[0].shape()};
  }
  const char* name() const override { return kind_ == NormKind::rms ? "RMSNorm" : "LayerNorm"; }
  static constexpr const char* recorded_as = "Norm";
  auto members() const { return std::tie(kind_, epsilon_, has_weight_, has_bias_); }

 private:
  NormKind kind_;
  float epsilon_;
  bool has_weight_, has_bias_;
};

// Half types are computed in float32, as the kernel does.
std::vector<array> Norm::decomposed(const std::vector<array>& inputs) {
  Stream s = stream();
  Dtype dtype = inputs[0].dtype(), wide = dtype == float64 ? float64 : float32;
  array x = astype(inputs[0], wide, s);
  if (kind_ == NormKind::layer) x = subtract(x, mean(x, -1, true, s), s);
  array size = add(mean(square(x, s), -1, true, s), array(epsilon_, wide), s);
  x = multiply(x, rsqrt(size, s), s);
  if (has_weight_) x = multiply(x, astype(inputs[1], wide, s), s);
  if (has_bias_) x = add(x, astype(inputs.back(), wide, s), s);
  return {astype(x, dtype, s)};
}

// More rows; with weights for each call, the composition.
std::pair<std::vector<array>, std::vector<int>> Norm::vmap_rule(const std::vector<array>& inputs,
                                                                const std::vector<int>& axes) {
  for (size_t i = 1; i < axes.size(); ++i) {
    if (axes[i] >= 0) return {};
  }
  std::vector<array> moved = inputs;
  moved[0] = moveaxis(inputs[0], axes[0], 0, stream());
  return {{detail::make_checked(
              moved[0].shape(), moved[0].dtype(),
              std::make_shared<Norm>(stream(), kind_, epsilon_, has_weight_, has_bias_), moved)},
          {0}};
}

void Norm::encode(Encoder& encoder, const std::vector<array>& inputs, std::vector<array>& outputs) {
  size_t next = 1;
  const array* weight = has_weight_ ? &inputs[next++] : nullptr;
  const array* bias = has_bias_ ? &inputs[next++] : nullptr;
  kernels::backend_of(encoder).norm(encoder, kind_, epsilon_, inputs[0], weight, bias, outputs[0]);
}

array normalise(const char* op, NormKind kind, const array& x, const std::optional<array>& weight,
                const std::optional<array>& bias, float epsilon, StreamOrDevice s) {
  if (x.ndim() == 0) {
    throw std::invalid_argument(
        text("[", op, "] expected x with one dimension or more, got a 0-d array"));
  }
  auto check = [&](const char* what, const std::optional<array>& row) {
    if (row && (row->ndim() != 1 || row->shape(0) != x.shape(-1))) {
      throw std::invalid_argument(text("[", op, "] expected ", what, " of shape (", x.shape(-1),
                                       "), the last dimension of x, got shape ", row->shape()));
    }
  };
  check("weight", weight);
  check("bias", bias);
  // The bias adds to what the weight has scaled: it does not widen the result.
  Dtype dtype = weight ? promote_types(x.dtype(), weight->dtype()) : x.dtype();
  if (!issubdtype(dtype, floating)) {
    throw std::invalid_argument(text("[", op, "] expected a floating dtype, got ", dtype));
  }
  std::vector<array> inputs{astype(x, dtype, s)};
  if (weight) inputs.push_back(astype(*weight, dtype, s));
  if (bias) inputs.push_back(astype(*bias, dtype, s));
  return make_node<Norm>(x.shape(), dtype, std::move(inputs), s, kind, epsilon, weight.has_value(),
                         bias.has_value());
}

}  // namespace

array fast::rms_norm(const array& x, const std::optional<array>& weight, float eps,
                     StreamOrDevice s) {
  return normalise("rms_norm", NormKind::rms, x, weight, std::nullopt, eps, s);
}

array fast::layer_norm(const array& x, const std::optional<array>& weight,
                       const std::optional<array>& bias, float eps, StreamOrDevice s) {
  return normalise("layer_norm", NormKind::layer, x, weight, bias, eps, s);
}

}  // namespace holdfast
