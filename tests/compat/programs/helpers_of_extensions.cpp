// The helpers that extensions call, with and without their namespace: `array` decides where they
// are looked for. Every header that an extension may include is there.
#include "mlx/api.h"
#include "mlx/backend/common/binary.h"
#include "mlx/backend/common/broadcasting.h"
#include "mlx/backend/common/compiled.h"
#include "mlx/backend/common/copy.h"
#include "mlx/backend/common/slicing.h"
#include "mlx/backend/common/ternary.h"
#include "mlx/backend/common/unary.h"
#include "mlx/backend/common/utils.h"
#include "mlx/backend/cpu/binary.h"
#include "mlx/backend/cpu/copy.h"
#include "mlx/backend/cpu/device_info.h"
#include "mlx/backend/cpu/encoder.h"
#include "mlx/backend/cpu/slicing.h"
#include "mlx/backend/cpu/ternary.h"
#include "mlx/backend/cpu/unary.h"
#include "mlx/backend/gpu/device_info.h"
#include "mlx/backend/gpu/slicing.h"
#include "mlx/backend/metal/device.h"
#include "mlx/backend/metal/utils.h"
#include "mlx/distributed/primitives.h"
#include "mlx/fast_primitives.h"
#include "mlx/io/gguf.h"
#include "mlx/mlx.h"
#include "mlx/threadpool.h"
#include "mlx/types/bf16.h"
#include "mlx/types/fp16.h"

#include "check.h"

namespace mx = mlx::core;

namespace extension {

// a + 1 in the layout of its input.
class AddOne : public mx::UnaryPrimitive {
 public:
  explicit AddOne(mx::Stream stream) : mx::UnaryPrimitive(stream) {}
  void eval_cpu(const std::vector<mx::array>& inputs, mx::array& out) override {
    const mx::array& in = inputs[0];
    set_unary_output_data(in, out);
    auto& encoder = mx::cpu::get_command_encoder(stream());
    encoder.set_input_array(in);
    encoder.set_output_array(out);
    const bool walks = !in.flags().contiguous;
    encoder.dispatch([from = in.data<float>(), to = out.data<float>(), size = out.size(),
                      at = mx::ContiguousIterator(in), walks]() mutable {
      for (size_t i = 0; i < size; ++i) {
        to[i] = from[walks ? static_cast<size_t>(at.loc) : i] + 1;
        if (walks) at.step();
      }
    });
  }
  void eval_gpu(const std::vector<mx::array>& inputs, mx::array& out) override {
    eval_cpu(inputs, out);
  }
  const char* name() const override { return "AddOne"; }
};

// A copy of another dtype.
class Convert : public mx::UnaryPrimitive {
 public:
  using mx::UnaryPrimitive::UnaryPrimitive;
  void eval_cpu(const std::vector<mx::array>& inputs, mx::array& out) override {
    copy_cpu(inputs[0], out, mx::CopyType::General, stream());
  }
  void eval_gpu(const std::vector<mx::array>& inputs, mx::array& out) override {
    eval_cpu(inputs, out);
  }
  const char* name() const override { return "Convert"; }
};

template <typename Op>
mx::array apply(const mx::array& a, mx::Dtype dtype) {
  auto stream = mx::default_stream(mx::default_device());
  return mx::array(a.shape(), dtype, std::make_shared<Op>(stream), {a});
}

MLX_API bool check(mx::array a) {
  // All of them by argument-dependent lookup.
  mx::array rows = slice(a, {0, 0}, {4, 3}, {2, 2});
  eval(a, rows);
  CHECK(type_to_name(a) == "float32");
  CHECK(elem_to_loc(5, a.shape(), a.strides()) == 5 && elem_to_loc(3, rows) == 8);
  auto [shape, strides] = collapse_contiguous_dims(a);
  CHECK(shape == mx::Shape{12} && strides == mx::Strides{1});
  CHECK(make_contiguous_strides(a.shape()) == mx::Strides({3, 1}));
  CHECK(std::get<1>(check_contiguity(a.shape(), a.strides())));
  CHECK(get_binary_op_type(a, a) == mx::BinaryOpType::VectorVector);
  CHECK(get_binary_op_type(a, rows) == mx::BinaryOpType::General);
  CHECK(get_ternary_op_type(a, a, a) == mx::TernaryOpType::VectorVectorVector);
  CHECK(!is_donatable(a, rows));
  auto [must_copy, _] = prepare_reshape(transpose(a), a);
  mx::array turned = transpose(a);
  eval(turned);
  CHECK(prepare_reshape(turned, reshape(a, {12})).first);
  auto [copies, reshaped] = prepare_reshape(turned, reshape(a, {3, 2, 2}));
  CHECK(!copies && reshaped == mx::Strides({1, 6, 3}));
  return !must_copy || must_copy;
}

}  // namespace extension

int main() {
  mx::array a = mx::reshape(mx::arange(12.0f), {4, 3});
  CHECK(extension::check(a));
  mx::array rows = mx::slice(a, {0, 0}, {4, 3}, {2, 2});
  for (const mx::array& in : {a, rows, mx::transpose(a), mx::broadcast_to(mx::array(2.0f), {3})}) {
    mx::array out = extension::apply<extension::AddOne>(in, mx::float32);
    CHECK(mx::array_equal(out, in + 1.0f).item<bool>());
    mx::array converted = extension::apply<extension::Convert>(in, mx::int16);
    CHECK(mx::array_equal(converted, mx::astype(in, mx::int16)).item<bool>());
  }
  CHECK(mx::remove_index(mx::Shape{1, 2, 3}, 1) == mx::Shape({1, 3}));
  CHECK(std::filesystem::is_directory(mx::current_binary_dir()));
  CHECK(mx::cpu::is_available() && mx::cpu::device_info().contains("architecture"));
  auto [x, y, z] = mx::get_block_dims_common(100, 3, 1);
  CHECK(x == 64 && y == 2 && z == 1);
}
