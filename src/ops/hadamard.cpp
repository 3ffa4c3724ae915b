// hadamard_transform: rows of m * 2^k elements, m one of 1, 12, 20, 28.
#include <cmath>

#include "kernels/plan/hadamard.h"
#include "ops/inner.h"
#include "ops/support.h"

namespace holdfast {

namespace {

// Times H, or its transpose.
class Hadamard final : public Recorded<Hadamard, Single<Op>> {
 public:
  Hadamard(Stream stream, float scale, bool transposed)
      : Recorded(stream), scale_(scale), transposed_(transposed) {}
  void encode(Encoder& encoder, const std::vector<array>& inputs,
              std::vector<array>& outputs) override;
  array pull_back(const array& input, const array& cotangent, const array&) override {
    return make_node<Hadamard>(input.shape(), input.dtype(), {cotangent}, stream(), scale_,
                               !transposed_);
  }
  std::shared_ptr<Primitive> with_leading_axis() override {
    return std::make_shared<Hadamard>(stream(), scale_, transposed_);
  }
  const char* name() const override { return "Hadamard"; }
  auto members() const { return std::tie(scale_, transposed_); }

 private:
  float scale_;
  bool transposed_;
};

void Hadamard::encode(Encoder& encoder, const std::vector<array>& inputs,
                      std::vector<array>& outputs) {
  kernels::backend_of(encoder).hadamard(encoder, scale_, transposed_, inputs[0], outputs[0]);
}

}  // namespace

array hadamard_transform(const array& a, std::optional<float> scale, StreamOrDevice s) {
  return hadamard_transform(a, scale, false, s);
}

array hadamard_transform(const array& a, std::optional<float> scale, bool transposed,
                         StreamOrDevice s) {
  Dtype dtype = at_least_float(a.dtype());
  if (dtype == float64 || dtype == complex64) {
    throw std::invalid_argument(
        text("[hadamard_transform] expected float32, float16, bfloat16 or what converts to "
             "float32, got ",
             a.dtype()));
  }
  int length = a.ndim() == 0 ? 1 : a.shape(-1);
  if (length == 0 || kernels::hadamard_size(length).power == 0) {
    throw std::invalid_argument(
        text("[hadamard_transform] expected m * 2^k elements in the last dimension, m one of 1, "
             "12, 20, 28, got shape ",
             a.shape()));
  }
  if (a.ndim() == 0)
    return squeeze(hadamard_transform(expand_dims(a, 0, s), scale, transposed, s), s);
  float factor = scale ? *scale : static_cast<float>(1.0 / std::sqrt(length));
  return make_node<Hadamard>(a.shape(), dtype, {astype(a, dtype, s)}, s, factor, transposed);
}

}  // namespace holdfast
