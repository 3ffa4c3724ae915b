// Ops of the fake GPU's own kernels, for arrays of int32.
#pragma once

#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <holdfast/holdfast.h>

#include "cuda/fake_driver.h"
#include "support/test_ops.h"

namespace holdfast::testing {

using Values = std::vector<int32_t>;

// The GPU of these tests.
struct OnFakeGpu {
  cuda::Gpu& gpu = install_fake_gpu();
  FakeDriver& fake = FakeDriver::get();
};

inline msl::KernelArgument fake_argument(const char* name, uint32_t slot, bool written) {
  msl::KernelArgument argument;
  argument.name = name;
  argument.slot = slot;
  argument.written = written;
  argument.element_size = 4;
  if (std::string(name) == "parameters") argument.kind = msl::KernelArgument::Kind::constant;
  return argument;
}

// Its arguments are `in`, `out` and `parameters`, which are in the block of parameters of a kernel
// of the library, and else bytes that it is given an address of.
inline Ref<exec::Pipeline> make_fake_kernel(const std::string& name, bool is_of_library,
                                            std::function<void(const FakeLaunch&)> run) {
  FakeKernel kernel;
  kernel.interface.entry = name;
  kernel.interface.arguments = {fake_argument("in", 0, false), fake_argument("out", 1, true),
                                fake_argument("parameters", 2, false)};
  kernel.has_inline_constants = is_of_library;
  kernel.run = std::move(run);
  return make_ref<cuda::GpuKernel>(install_fake_gpu(), name,
                                   FakeDriver::get().add(name, std::move(kernel)));
}

// out = in * factor + summand
inline Ref<exec::Pipeline> affine_kernel(bool is_of_library = true) {
  return make_fake_kernel("affine", is_of_library, [](const FakeLaunch& launch) {
    auto* in = static_cast<const int32_t*>(launch.arguments.buffers[0]);
    auto* out = static_cast<int32_t*>(launch.arguments.buffers[1]);
    auto* parameters = static_cast<const int32_t*>(launch.arguments.buffers[2]);
    for (uint32_t i = 0; i < launch.parameters.grid[0]; ++i)
      out[i] = in[i] * parameters[0] + parameters[1];
  });
}

inline void dispatch_affine(Encoder& encoder, const exec::Pipeline& pipeline, const array& x,
                            array& y, int32_t factor, int32_t summand) {
  const int32_t parameters[] = {factor, summand};
  KernelBinding bindings[] = {KernelBinding::input(x), KernelBinding::output(y),
                              KernelBinding::bytes(parameters, sizeof(parameters))};
  encoder.dispatch(pipeline, bindings, {static_cast<uint32_t>(y.size())}, {32});
}

inline array affine(const Ref<exec::Pipeline>& pipeline, const array& x, int32_t factor,
                    int32_t summand, Stream stream) {
  return make_op(
      "affine", stream, {x}, x.shape(),
      [=](Encoder& encoder, const std::vector<array>& inputs, std::vector<array>& outputs) {
        encoder.allocate(outputs[0]);
        dispatch_affine(encoder, *pipeline, inputs[0], outputs[0], factor, summand);
      });
}

inline Values iota(int count, int32_t first = 0) {
  Values values(static_cast<size_t>(count));
  std::iota(values.begin(), values.end(), first);
  return values;
}
inline array leaf_of(const Values& values) {
  return array(values.data(), {static_cast<int>(values.size())}, int32);
}
inline Values values_of(array a) {
  eval(a);
  const array& read = a;
  return {read.data<int32_t>(), read.data<int32_t>() + a.size()};
}
inline Values affine_of(Values values, int32_t factor, int32_t summand) {
  for (int32_t& value : values)
    value = static_cast<int32_t>(static_cast<uint32_t>(value) * static_cast<uint32_t>(factor) +
                                 static_cast<uint32_t>(summand));
  return values;
}

}  // namespace holdfast::testing
