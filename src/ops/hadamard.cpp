// hadamard_transform: rows of m * 2^k elements, m one of 1, 12, 20, 28.
#include <array>
#include <cmath>

#include "kernels/cpu/simd/hadamard_kernels.h"
#include "kernels/cpu/simd/quantized_kernels.h"
#include "kernels/cpu/simd/target_table.h"
#include "kernels/cpu/task_scratch.h"
#include "ops/inner.h"
#include "ops/support.h"

HOLDFAST_SIMD_TABLE(HadamardKernels, hadamard_kernels)

namespace holdfast {

namespace {

// Bit j of row i: element (i, j) is -1. A Hadamard matrix is not unique; these are the ones that
// MLX multiplies with. 20 and 28 are 4 x 4 blocks of circulant matrices.
constexpr uint32_t signs_12[12] = {0x002, 0xaab, 0x3c8, 0x96e, 0xf20, 0x5ba,
                                   0xc8c, 0x6e6, 0x23c, 0xb96, 0x8f0, 0xe5a};
constexpr uint32_t signs_20[20] = {0x933de, 0x2e3bd, 0x5477b, 0xa0ef7, 0x499ef, 0x637c1, 0xc6ba2,
                                   0x8d764, 0x1aee8, 0x359f0, 0x0fa53, 0x174a7, 0x26d4e, 0x45e9c,
                                   0x83d39, 0xf7a6d, 0xef4fa, 0xdedd5, 0xbdf8b, 0x7bf36};
constexpr uint32_t signs_28[28] = {0xcd69e7e, 0x9ad7c7d, 0x37ab8fb, 0x6d571f7, 0xd8ae3ef, 0xb3587df,
                                   0x66b4f3f, 0xb467f43, 0x6acbe87, 0xd593d8e, 0xab27b9c, 0x564f7b8,
                                   0xac9aff0, 0x5b31fe1, 0x87fb325, 0x0ff66ca, 0x1decd95, 0x39ddb2a,
                                   0x71bf654, 0xe17eca9, 0xc2fd9d2, 0xfcf1299, 0xfbe2532, 0xf7c4ae4,
                                   0xef8d549, 0xdf1ea13, 0xbe3d4a6, 0x7e7a94c};

// Row length factor * power; power 0 when there is no such form.
struct HadamardSize {
  int factor = 1, power = 0;
  const uint32_t* signs = nullptr;
};

HadamardSize size_of_row(int length) {
  constexpr HadamardSize forms[] = {
      {1, 0, nullptr}, {12, 0, signs_12}, {20, 0, signs_20}, {28, 0, signs_28}};
  for (HadamardSize form : forms) {
    int power = length / form.factor;
    if (length % form.factor == 0 && power > 0 && (power & (power - 1)) == 0) {
      form.power = power;
      return form;
    }
  }
  return {};
}

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
  array& out = outputs[0];
  array in = make_dense(encoder, inputs[0]);
  encoder.allocate(out);
  encoder.input(in);
  encoder.output(out);
  int64_t length = out.shape(-1), rows = static_cast<int64_t>(out.size()) / length;
  int64_t row_bytes = length * static_cast<int64_t>(out.itemsize());
  HadamardSize size = size_of_row(out.shape(-1));
  std::array<uint32_t, 28> signs{};
  for (int i = 0; size.factor > 1 && i < size.factor; ++i) {
    for (int j = 0; j < size.factor; ++j) {
      uint32_t sign = transposed_ ? size.signs[j] >> i & 1u : size.signs[i] >> j & 1u;
      signs[static_cast<size_t>(i)] |= sign << j;
    }
  }
  Dtype::Val dtype = out.dtype();
  const char* from = in.data<char>();
  char* to = out.data<char>();
  encoder.native(name(), rows, static_cast<int64_t>(out.nbytes()) * 8,
                 [=, scale = scale_](int64_t begin, int64_t end) {
                   const kernels::cpu::simd::QuantizedKernels& convert =
                       kernels::cpu::simd::quantized_kernels();
                   kernels::cpu::TaskScratch scratch(static_cast<size_t>(length) * sizeof(float));
                   auto* row = static_cast<float*>(scratch.get());
                   for (int64_t i = begin; i < end; ++i) {
                     convert.widen(dtype, from + i * row_bytes, length, row);
                     kernels::cpu::simd::hadamard_kernels().transform(row, size.factor, size.power,
                                                                      signs.data(), scale);
                     convert.narrow(dtype, row, length, to + i * row_bytes);
                   }
                 });
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
  if (length == 0 || size_of_row(length).power == 0) {
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
