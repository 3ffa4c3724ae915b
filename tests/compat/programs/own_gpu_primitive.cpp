// Primitives with a GPU path of their own: kernels from a library beside the program, arguments by
// slot, as MLX's guide to extensions writes it.
#include <dlfcn.h>

#include <filesystem>
#include <sstream>

#include "mlx/allocator.h"
#include "mlx/backend/common/utils.h"
#include "mlx/backend/metal/device.h"
#include "mlx/backend/metal/utils.h"
#include "mlx/mlx.h"
#include "mlx/primitives.h"

#include "check.h"

namespace mx = mlx::core;

namespace my_ext {

// The folder of this program: where its library lies.
std::string current_binary_dir() {
  return std::filesystem::canonical("/proc/self/exe").parent_path().string();
}

class Axpby : public mx::Primitive {
 public:
  explicit Axpby(mx::Stream stream, float alpha, float beta)
      : mx::Primitive(stream), alpha_(alpha), beta_(beta) {}

  void eval_cpu(const std::vector<mx::array>&, std::vector<mx::array>&) override {
    throw std::runtime_error("[Axpby] this one runs on GPU streams");
  }
  void eval_gpu(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs) override {
    auto& x = inputs[0];
    auto& y = inputs[1];
    auto& out = outputs[0];
    auto& s = stream();
    auto& d = mx::metal::device(s.device);

    out.set_data(mx::allocator::malloc(out.nbytes()));

    std::ostringstream kname;
    kname << "axpby_general_" << mx::type_to_name(out);
    auto lib = d.get_library("own_gpu_primitive", current_binary_dir());
    auto kernel = d.get_kernel(kname.str(), lib);

    auto& compute_encoder = d.get_command_encoder(s.index);
    compute_encoder.set_compute_pipeline_state(kernel);
    int ndim = static_cast<int>(out.ndim());
    size_t nelem = out.size();
    compute_encoder.set_input_array(x, 0);
    compute_encoder.set_input_array(y, 1);
    compute_encoder.set_output_array(out, 2);
    compute_encoder.set_bytes(alpha_, 3);
    compute_encoder.set_bytes(beta_, 4);
    compute_encoder.set_vector_bytes(x.shape(), 5);
    compute_encoder.set_vector_bytes(x.strides(), 6);
    compute_encoder.set_vector_bytes(y.strides(), 7);
    compute_encoder.set_bytes(ndim, 8);

    size_t tgp_size = std::min(nelem, kernel->maxTotalThreadsPerThreadgroup());
    MTL::Size group_dims = MTL::Size(tgp_size, 1, 1);
    MTL::Size grid_dims = MTL::Size(nelem, 1, 1);
    compute_encoder.dispatch_threads(grid_dims, group_dims);
  }
  const char* name() const override { return "Axpby"; }

 private:
  float alpha_;
  float beta_;
};

mx::array axpby(const mx::array& x, const mx::array& y, float alpha, float beta, mx::Dtype dtype) {
  mx::Stream s = mx::default_stream(mx::Device::gpu);
  auto inputs = mx::broadcast_arrays({mx::astype(x, dtype, s), mx::astype(y, dtype, s)}, s);
  return mx::array(inputs[0].shape(), dtype, std::make_shared<Axpby>(s, alpha, beta), inputs);
}

// Two passes of one kernel: sums of groups of 8 into a temporary, and of those into the output.
class SumOf64 : public mx::Primitive {
 public:
  using mx::Primitive::Primitive;
  void eval_cpu(const std::vector<mx::array>&, std::vector<mx::array>&) override {}
  void eval_gpu(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs) override {
    auto& d = mx::metal::device(stream().device);
    auto lib = d.get_library("own_gpu_primitive", current_binary_dir());
    int factor = 3;
    auto kernel = d.get_kernel("group_sums", lib, "by_three", {{&factor, MTL::DataTypeInt, 4}});
    outputs[0].set_data(mx::allocator::malloc(outputs[0].nbytes()));
    mx::array partial({16}, mx::float32, nullptr, {});
    partial.set_data(mx::allocator::malloc(partial.nbytes()));
    auto& encoder = mx::metal::get_command_encoder(stream());
    encoder.add_temporary(partial);
    encoder.set_compute_pipeline_state(kernel);
    encoder.set_threadgroup_memory_length(8 * sizeof(float), 0);
    encoder.set_input_array(inputs[0], 0);
    // The second half: the first 8 elements stay unused.
    encoder.set_output_array(partial, 1, 8 * sizeof(float));
    encoder.dispatch_threadgroups(MTL::Size(8, 1, 1), MTL::Size(8, 1, 1));
    encoder.set_input_array(partial, 0, 8 * sizeof(float));
    encoder.set_output_array(outputs[0], 1);
    encoder.dispatch_threads(MTL::Size(8, 1, 1), MTL::Size(8, 1, 1));
  }
  const char* name() const override { return "SumOf64"; }
};

}  // namespace my_ext

int main() {
  mx::array x = mx::reshape(mx::arange(6.0f), {2, 3});
  mx::array y = mx::array({10.0f, 20.0f, 30.0f});
  mx::array out = my_ext::axpby(x, y, 2.0f, -1.0f, mx::float32);
  mx::array again = my_ext::axpby(mx::transpose(out), mx::ones({3, 2}), 1.0f, 1.0f, mx::float16);
  mx::eval(again);
  CHECK(mx::array_equal(out, 2.0f * x - y).item<bool>());
  CHECK(again.dtype() == mx::float16);
  CHECK(mx::array_equal(mx::astype(again, mx::float32), mx::transpose(2.0f * x - y) + 1.0f)
            .item<bool>());

  mx::Stream s = mx::default_stream(mx::Device::gpu);
  mx::array sum({1}, mx::float32, std::make_shared<my_ext::SumOf64>(s), {mx::arange(64.0f, s)});
  CHECK(sum.item<float>() == 9.0f * 2016.0f);

  try {
    // There is no instance of the kernel for this dtype.
    mx::eval(my_ext::axpby(x, y, 1.0f, 1.0f, mx::bfloat16));
    CHECK(false);
  } catch (const std::runtime_error& error) {
    CHECK(std::string(error.what()).find("axpby_general_bfloat16") != std::string::npos);
  }
  try {
    mx::metal::device(s.device).get_library("no_such_library", "/nowhere");
    CHECK(false);
  } catch (const std::runtime_error& error) {
    CHECK(std::string(error.what()).find("no_such_library.metal") != std::string::npos);
  }
}
