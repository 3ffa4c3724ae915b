// alpha * x + beta * y as a primitive of one's own, as MLX's guide to extensions writes it.
#include <dlfcn.h>

#include "mlx/allocator.h"
#include "mlx/backend/common/utils.h"
#include "mlx/backend/cpu/encoder.h"
#include "mlx/mlx.h"
#include "mlx/primitives.h"
#include "mlx/utils.h"

#include "check.h"

namespace mx = mlx::core;

namespace my_ext {

template <typename T>
void axpby_impl(const mx::array& x, const mx::array& y, mx::array& out, float alpha_, float beta_,
                mx::Stream stream) {
  out.set_data(mx::allocator::malloc(out.nbytes()));
  auto& encoder = mx::cpu::get_command_encoder(stream);
  encoder.set_input_array(x);
  encoder.set_input_array(y);
  encoder.set_output_array(out);
  encoder.dispatch([x_ptr = x.data<T>(), y_ptr = y.data<T>(), out_ptr = out.data<T>(),
                    size = out.size(), shape = out.shape(), x_strides = x.strides(),
                    y_strides = y.strides(), alpha_, beta_]() {
    T alpha = static_cast<T>(alpha_);
    T beta = static_cast<T>(beta_);
    for (size_t out_idx = 0; out_idx < size; out_idx++) {
      auto x_offset = mx::elem_to_loc(static_cast<int>(out_idx), shape, x_strides);
      auto y_offset = mx::elem_to_loc(static_cast<int>(out_idx), shape, y_strides);
      out_ptr[out_idx] = alpha * x_ptr[x_offset] + beta * y_ptr[y_offset];
    }
  });
}

class Axpby : public mx::Primitive {
 public:
  explicit Axpby(mx::Stream stream, float alpha, float beta)
      : mx::Primitive(stream), alpha_(alpha), beta_(beta) {}

  void eval_cpu(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs) override {
    auto& x = inputs[0];
    auto& y = inputs[1];
    auto& out = outputs[0];
    if (out.dtype() == mx::float32) {
      return axpby_impl<float>(x, y, out, alpha_, beta_, stream());
    } else if (out.dtype() == mx::float16) {
      return axpby_impl<mx::float16_t>(x, y, out, alpha_, beta_, stream());
    } else if (out.dtype() == mx::complex64) {
      return axpby_impl<mx::complex64_t>(x, y, out, alpha_, beta_, stream());
    }
    throw std::runtime_error("[Axpby] Only supports floating point types.");
  }
  void eval_gpu(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs) override {
    eval_cpu(inputs, outputs);
  }
  const char* name() const override { return "Axpby"; }
  bool is_equivalent(const mx::Primitive& other) const override {
    const Axpby& r_other = static_cast<const Axpby&>(other);
    return alpha_ == r_other.alpha_ && beta_ == r_other.beta_;
  }

 private:
  float alpha_;
  float beta_;
};

mx::array axpby(const mx::array& x, const mx::array& y, const float alpha, const float beta,
                mx::StreamOrDevice s = {}) {
  auto promoted_dtype = mx::promote_types(x.dtype(), y.dtype());
  auto out_dtype = mx::issubdtype(promoted_dtype, mx::float32)
                       ? promoted_dtype
                       : mx::promote_types(promoted_dtype, mx::float32);
  auto x_casted = mx::astype(x, out_dtype, s);
  auto y_casted = mx::astype(y, out_dtype, s);
  auto broadcasted_inputs = mx::broadcast_arrays({x_casted, y_casted}, s);
  auto out_shape = broadcasted_inputs[0].shape();
  return mx::array(out_shape, out_dtype, std::make_shared<Axpby>(mx::to_stream(s), alpha, beta),
                   broadcasted_inputs);
}

}  // namespace my_ext

int main() {
  mx::array x = mx::reshape(mx::arange(6.0f), {2, 3});
  mx::array y = mx::array({10.0f, 20.0f, 30.0f});
  mx::array out = my_ext::axpby(x, y, 2.0f, -1.0f);
  mx::array again = my_ext::axpby(mx::transpose(out), mx::ones({3, 2}), 1.0f, 1.0f);
  CHECK(mx::array_equal(out, 2.0f * x - y).item<bool>());
  CHECK(mx::array_equal(again, mx::transpose(2.0f * x - y) + 1.0f).item<bool>());
  mx::array half = my_ext::axpby(mx::astype(x, mx::float16), y, 0.5f, 0.5f,
                                 mx::new_stream(mx::default_device()));
  CHECK(half.dtype() == mx::float32);
  try {
    mx::eval(mx::array(
        {2}, mx::int32,
        std::make_shared<my_ext::Axpby>(mx::default_stream(mx::default_device()), 1.0f, 1.0f),
        {mx::zeros({2}, mx::int32), mx::zeros({2}, mx::int32)}));
    CHECK(false);
  } catch (const std::runtime_error& error) {
    CHECK(std::string(error.what()).find("floating point") != std::string::npos);
  }
}
