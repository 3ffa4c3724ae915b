// Metal kernels on the fake GPU, compiled for this processor: built-in ones, those of programs, and
// what they do wrong.
#include <doctest/doctest.h>

#include <holdfast/fast.h>

#include "cuda/fake_ops.h"
#include "devices/cpu/jit/compiler.h"
#include "devices/cuda/cuda_target.h"
#include "support/threads.h"

using namespace holdfast;
using namespace holdfast::testing;

namespace {

bool has_compiler() { return jit::default_compiler_version() != "none"; }

std::vector<float> floats_of(array a) {
  eval(a);
  const array& read = a;
  return {read.data<float>(), read.data<float>() + a.size()};
}

}  // namespace

TEST_CASE_FIXTURE(OnFakeGpu, "the library's kernels run on a GPU") {
  if (!has_compiler()) return;
  Stream stream = new_stream(Device::gpu);
  array x = reshape(arange(0, 35 * 70, 1, int32, stream), {35, 70}, stream);
  array y = contiguous(transpose(x, {1, 0}, stream), false, stream);
  eval(y);
  Values expected;
  for (int column = 0; column < 70; ++column) {
    for (int row = 0; row < 35; ++row) expected.push_back(row * 70 + column);
  }
  CHECK(values_of(y) == expected);
  CHECK(values_of(contiguous(slice(x, {3, 1}, {5, 9}, {1, 2}, stream), false, stream)) ==
        Values{211, 213, 215, 217, 281, 283, 285, 287});
  // What has no kernel runs on the host, with copies.
  array sums = sum(astype(x, float32, stream), 1, false, stream);
  CHECK(floats_of(sums)[1] == 70 * 70 + 69 * 35);
}

TEST_CASE_FIXTURE(OnFakeGpu, "a program's kernel runs on a GPU, and is guarded") {
  if (!has_compiler()) return;
  Stream stream = new_stream(Device::gpu);
  auto kernel = fast::metal_kernel("twice", {"x"}, {"y"}, R"(
    uint i = thread_position_in_grid.x;
    y[i] = x[i] * 2 + x_shape[0];
  )");
  array x = astype(arange(0, 100, 1, float32, stream), float32, stream);
  auto run = [&](int threads) {
    return kernel({x}, {{100}}, {float32}, {threads, 1, 1}, {32, 1, 1}, {}, std::nullopt, false,
                  stream)[0];
  };
  for (int repeat = 0; repeat < 3; ++repeat) {
    const std::vector<float> values = floats_of(run(100));
    for (int i = 0; i < 100; ++i) CHECK(values[static_cast<size_t>(i)] == 2.0F * i + 100);
  }
  // Writes beyond the output do not happen, and fail it by name.
  CHECK_THROWS_WITH_AS(floats_of(run(160)), doctest::Contains("[twice] the kernel writes outside"),
                       ExecutionError);
  CHECK(floats_of(run(100))[99] == 298);
}

TEST_CASE("a kernel for a GPU goes through bytes") {
  cuda::CompiledKernel kernel;
  kernel.interface.entry = "k";
  kernel.interface.arguments = {fake_argument("in", 0, false), fake_argument("out", 1, true)};
  kernel.guarded = kernel.can_be_cancelled = true;
  kernel.images.push_back({cuda::Positions::rows, 16, true, true, "k", "fast"});
  kernel.images.push_back({cuda::Positions::general, 1, false, false, "k", "slow"});
  const std::string bytes = kernel.to_bytes();
  auto read = cuda::CompiledKernel::from_bytes(bytes);
  REQUIRE(read);
  CHECK(read->to_bytes() == bytes);
  for (size_t length = 0; length < bytes.size(); ++length)
    CHECK_FALSE(cuda::CompiledKernel::from_bytes(bytes.substr(0, length)));
  // The last image has to run everything.
  kernel.images.pop_back();
  CHECK_FALSE(cuda::CompiledKernel::from_bytes(kernel.to_bytes()));
}

TEST_CASE("kernels are compiled for a GPU of another machine") {
  if (!has_compiler()) return;
  cuda::set_compiler_for_tests(nullptr);
  msl::KernelSource source;
  source.kernel = "scale";
  source.text = R"(
    #include <metal_stdlib>
    using namespace metal;
    [[kernel]] void scale(const device float* x [[buffer(0)]], device float* y [[buffer(1)]],
                          constant float& factor [[buffer(2)]],
                          uint i [[thread_position_in_grid]]) {
      y[i] = x[i] * factor;
    })";
  for (bool is_guarded : {false, true}) {
    exec::KernelOptions options;
    options.guarded = is_guarded;
    options.is_of_library = !is_guarded;
    std::unique_ptr<const exec::Binary> binary =
        cuda::cuda_target(90, nullptr).compile(source, options);
    auto kernel = cuda::CompiledKernel::from_bytes(binary->bytes());
    REQUIRE(kernel);
    CHECK(kernel->images.size() == 2);
    CHECK(kernel->guarded == is_guarded);
    CHECK_THROWS_AS(binary->make_pipeline("scale"), std::runtime_error);
  }
  if (jit::default_compiler_version() != "none") cuda::set_compiler_for_tests(compile_for_fake);
}
