// Conversions from and to 8-bit floats (e4m3).
#include "ops/support.h"

namespace holdfast {

namespace {

class ConvertFp8 final : public Recorded<ConvertFp8, Op> {
 public:
  ConvertFp8(Stream stream, bool encodes) : Recorded(stream), encodes_(encodes) {}
  void encode(Encoder& encoder, const std::vector<array>& inputs,
              std::vector<array>& outputs) override {
    kernels::backend_of(encoder).convert_fp8(encoder, inputs[0], outputs[0]);
  }
  std::shared_ptr<Primitive> with_leading_axis() override {
    return std::make_shared<ConvertFp8>(stream(), encodes_);
  }
  std::vector<Shape> output_shapes(const std::vector<array>& inputs) override {
    return {inputs[0].shape()};
  }
  const char* name() const override { return encodes_ ? "ToFP8" : "FromFP8"; }
  static constexpr const char* recorded_as = "ConvertFP8";
  auto members() const { return std::tie(encodes_); }

 private:
  bool encodes_;
};

}  // namespace

array to_fp8(array x, StreamOrDevice s) {
  if (!issubdtype(x.dtype(), floating)) {
    throw std::invalid_argument(text("[to_fp8] expected a floating dtype, got ", x.dtype()));
  }
  Shape shape = x.shape();
  return make_node<ConvertFp8>(std::move(shape), uint8, {astype(std::move(x), float32, s)}, s,
                               true);
}

array from_fp8(array x, Dtype dtype, StreamOrDevice s) {
  if (x.dtype() != uint8) {
    throw std::invalid_argument(text("[from_fp8] expected uint8, got ", x.dtype()));
  }
  if (!issubdtype(dtype, floating)) {
    throw std::invalid_argument(text("[from_fp8] expected a floating result, got ", dtype));
  }
  Shape shape = x.shape();
  array wide = make_node<ConvertFp8>(std::move(shape), float32, {std::move(x)}, s, false);
  return astype(std::move(wide), dtype, s);
}

}  // namespace holdfast
