// fast::metal_kernel around the kernel itself: nodes, bindings, copies, fills, errors, threads.
#include <doctest/doctest.h>

#include <atomic>
#include <numeric>

#include "base/environment.h"
#include "kernel_library/fake_metal.h"
#include "support/child.h"
#include "support/device.h"
#include "support/inspection.h"
#include "support/test_ops.h"
#include "support/threads.h"

using namespace holdfast;
using namespace holdfast::testing;

namespace {

template <class T>
T* at(std::span<void* const> buffers, size_t slot) {
  return static_cast<T*>(buffers[slot]);
}

void define_affine(FakeMetal& metal, const std::string& name, float factor, float summand) {
  metal.define(name, [=](std::span<void* const> buffers, int64_t x) {
    at<float>(buffers, 1)[x] = at<const float>(buffers, 0)[x] * factor + summand;
  });
}

array floats(int count, float first = 0) {
  std::vector<float> numbers(static_cast<size_t>(count));
  std::iota(numbers.begin(), numbers.end(), first);
  return array(numbers.begin(), {count});
}

template <class T = float>
std::vector<T> elements(array a) {
  eval(a);
  return std::vector<T>(a.data<T>(), a.data<T>() + a.size());
}

// One input, one output of the same size.
array run_on(const fast::CustomKernelFunction& kernel, const array& x, StreamOrDevice s = {}) {
  Call call{{x}, {x.shape()}, {float32}};
  call.grid = {static_cast<int>(x.size()), 1, 1};
  call.threadgroup = {32, 1, 1};
  call.stream = s;
  return call(kernel)[0];
}

}  // namespace

TEST_CASE("metal_kernel: a node like any other, compiled once") {
  FakeMetal metal;
  define_affine(metal, "double", 2, 1);
  auto kernel = fast::metal_kernel("twice", {"x"}, {"y"}, "NATIVE double ;");
  array y = run_on(kernel, floats(100));
  CHECK(y.status() == array::unscheduled);
  CHECK(metal.compiles() == 0);  // nothing is compiled before it is needed
  CHECK(std::string(y.primitive().name()) == "twice");
  std::vector<float> got = elements(y + 1.0f);
  for (int i = 0; i < 100; ++i) CHECK(got[static_cast<size_t>(i)] == 2.0f * i + 2);
  CHECK(elements(run_on(kernel, floats(9)))[3] == 7);
  // The same text made anew is the same kernel.
  auto again = fast::metal_kernel("twice", {"x"}, {"y"}, "NATIVE double ;");
  CHECK(elements(run_on(again, floats(50)))[49] == 99);
  CHECK(metal.compiles() == 1);
  CHECK(kernel_cache_stats().hits >= 2);
}

TEST_CASE("metal_kernel: one name with two dtypes and another body in one command list" *
          doctest::test_suite("no other layers")) {
  FakeMetal metal(1);  // each one drops the one before
  define_affine(metal, "a", 2, 0);
  define_affine(metal, "b", 3, 0);
  auto first = fast::metal_kernel("same", {"x"}, {"y"}, "NATIVE a ;");
  auto second = fast::metal_kernel("same", {"x"}, {"y"}, "NATIVE b ;");
  metal.define("widen", [](std::span<void* const> buffers, int64_t x) {
    at<float>(buffers, 1)[x] = static_cast<float>(at<const float16_t>(buffers, 0)[x]) * 10;
  });
  auto half = fast::metal_kernel("same", {"x"}, {"y"}, "NATIVE widen ;");
  Stream stream = new_stream(default_device());
  array x = floats(64), h = astype(x, float16);
  eval(x, h);
  CommitRecorder recorder;
  array a = run_on(half, h, stream), b = run_on(first, x, stream), c = run_on(second, x, stream),
        d = run_on(half, h, stream);
  eval(a, b, c, d);
  CHECK(recorder.lists(stream).size() == 1);
  CHECK(elements(a)[5] == 50);
  CHECK(elements(b)[5] == 10);
  CHECK(elements(c)[5] == 15);
  CHECK(elements(d)[5] == 50);
  CHECK(metal.library().stats().evictions >= 3);
}

TEST_CASE("metal_kernel: dtypes, sizes below 8, scalars and template values are other kernels") {
  FakeMetal metal;
  metal.define("nothing", [](std::span<void* const>, int64_t) {});
  auto kernel = fast::metal_kernel("k", {"x"}, {"y"}, "NATIVE nothing ;");
  int expected = 0;
  auto run = [&](Call call, bool is_new) {
    eval(call(kernel));
    expected += is_new;
    CHECK(metal.compiles() == expected);
  };
  run({{floats(8)}, {{1}}, {float32}}, true);
  run({{floats(9)}, {{2}}, {float32}}, false);   // shapes are not compiled in
  run({{floats(7)}, {{1}}, {float32}}, true);    // constant memory
  run({{array(1.0f)}, {{1}}, {float32}}, true);  // a reference
  run({{astype(floats(8), float16)}, {{1}}, {float32}}, true);
  run({{floats(8)}, {{1}}, {int32}}, true);
  Call with_template{{floats(8)}, {{1}}, {float32}};
  with_template.template_arguments = {{"N", 3}};
  run(with_template, true);
  with_template.template_arguments = {{"N", 4}};
  run(with_template, true);
  with_template.template_arguments = {{"N", 3}};
  run(with_template, false);
  with_template.template_arguments = {{"N", true}};
  run(with_template, true);
  with_template.template_arguments = {{"N", bfloat16}};
  run(with_template, true);
  auto fast_math = fast::metal_kernel("k", {"x"}, {"y"}, "NATIVE nothing ;", "", true, false,
                                      fast::MathMode::Fast);
  eval(Call{{floats(8)}, {{1}}, {float32}}(fast_math));
  CHECK(metal.compiles() == expected + 1);
}

TEST_CASE_FIXTURE(OnCpu,
                  "metal_kernel: shape, strides and rank are those of what the kernel sees") {
  FakeMetal metal;
  struct Seen {
    int shape[2];
    int64_t strides[2];
    int ndim;
    std::vector<float> elements;
  } seen{};
  metal.define("look", [&](std::span<void* const> buffers, int64_t) {
    std::memcpy(seen.shape, buffers[1], sizeof(seen.shape));
    std::memcpy(seen.strides, buffers[2], sizeof(seen.strides));
    seen.ndim = *at<const int>(buffers, 3);
    seen.elements.clear();
    for (int i = 0; i < seen.shape[0]; ++i) {
      for (int j = 0; j < seen.shape[1]; ++j) {
        seen.elements.push_back(
            at<const float>(buffers, 0)[i * seen.strides[0] + j * seen.strides[1]]);
      }
    }
  });
  std::string body = "NATIVE look ; x_shape x_strides x_ndim";
  auto dense = fast::metal_kernel("k", {"x"}, {"y"}, body);
  auto strided = fast::metal_kernel("k", {"x"}, {"y"}, body, "", false);
  array x = reshape(floats(12), {3, 4});
  std::vector<float> columns = {0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11};
  std::vector<float> backwards = {11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0};
  SUBCASE("a transposed input is copied") {
    eval(Call{{transpose(x)}, {{1}}, {float32}}(dense));
    CHECK(seen.shape[0] == 4);
    CHECK(seen.strides[0] == 3);
    CHECK(seen.strides[1] == 1);
    CHECK(seen.ndim == 2);
    CHECK(seen.elements == columns);
  }
  SUBCASE("or is not, and the strides are its own") {
    eval(Call{{transpose(x)}, {{1}}, {float32}}(strided));
    CHECK(seen.shape[0] == 4);
    CHECK(seen.strides[0] == 1);
    CHECK(seen.strides[1] == 4);
    CHECK(seen.elements == columns);
  }
  SUBCASE("negative strides") {
    array y = slice(x, {2, 3}, {-4, -5}, {-1, -1});
    eval(Call{{y}, {{1}}, {float32}}(strided));
    CHECK(seen.strides[0] == -4);
    CHECK(seen.strides[1] == -1);
    CHECK(seen.elements == backwards);
    eval(Call{{y}, {{1}}, {float32}}(dense));
    CHECK(seen.strides[0] == 4);
    CHECK(seen.elements == backwards);
  }
  SUBCASE("a broadcast input is copied out") {
    eval(Call{{broadcast_to(array(5.0f), {4, 2})}, {{1}}, {float32}}(dense));
    CHECK(seen.strides[0] == 2);
    CHECK(seen.elements == std::vector<float>(8, 5.0f));
  }
}

TEST_CASE("metal_kernel: outputs start with the init value, in their own dtype") {
  FakeMetal metal;
  metal.define("nothing", [](std::span<void* const>, int64_t) {});
  auto kernel = fast::metal_kernel("k", {"x"}, {"a", "b", "c", "d"}, "NATIVE nothing ;");
  Call call{{floats(8)}, {{5}, {2, 3}, {4}, {}}, {float32, float16, int8, bool_}};
  call.init_value = 3.0f;
  std::vector<array> outputs = call(kernel);
  REQUIRE(outputs.size() == 4);
  eval(outputs);
  CHECK(elements(outputs[0]) == std::vector<float>(5, 3.0f));
  CHECK(outputs[1].shape() == Shape{2, 3});
  for (float16_t v : elements<float16_t>(outputs[1])) CHECK(static_cast<float>(v) == 3.0f);
  CHECK(elements<int8_t>(outputs[2]) == std::vector<int8_t>(4, 3));
  CHECK(outputs[3].item<bool>());
}

TEST_CASE("metal_kernel: an output that nobody keeps is still there for the kernel") {
  FakeMetal metal;
  metal.define("both", [](std::span<void* const> buffers, int64_t x) {
    at<float>(buffers, 1)[x] = at<const float>(buffers, 0)[x];
    at<float>(buffers, 2)[x] = at<float>(buffers, 1)[x] * 2;
  });
  auto kernel = fast::metal_kernel("k", {"x"}, {"scratch", "y"}, "NATIVE both ;");
  Call call{{floats(10)}, {{10}, {10}}, {float32, float32}};
  call.grid = {10, 1, 1};
  array y = call(kernel)[1];
  CHECK(elements(y)[9] == 18);
}

TEST_CASE("metal_kernel: inputs never share memory with outputs") {
  FakeMetal metal;
  std::atomic<bool> overlap = false;  // threadgroups run on several threads
  metal.define("alias", [&](std::span<void* const> buffers, int64_t x) {
    if (buffers[0] == buffers[1]) overlap = true;
    at<float>(buffers, 1)[x] = 0;
    at<float>(buffers, 1)[x] = at<const float>(buffers, 0)[x] + 1;
  });
  auto kernel = fast::metal_kernel("k", {"x"}, {"y"}, "NATIVE alias ;");
  // The sum is nobody else's: another op would take its memory over.
  array y = run_on(kernel, floats(100) + 1.0f);
  for (int i = 0; i < 5; ++i) y = run_on(kernel, y);
  CHECK(elements(y)[10] == 17);
  CHECK(!overlap);
}

TEST_CASE("child: metal_kernel on the native gpu") {
  if (!is_child("child: metal_kernel on the native gpu")) return;
  REQUIRE(environment::settings().gpu == environment::Gpu::native);
  FakeMetal metal;
  define_affine(metal, "double", 2, 0);
  auto kernel = fast::metal_kernel("k", {"x"}, {"y"}, "NATIVE double ;");
  CHECK(elements(run_on(kernel, floats(20), Device::gpu))[4] == 8);
  CHECK(elements(run_on(kernel, floats(20), new_stream(Device::gpu)))[5] == 10);
}

// One with memory of its own has a target of its own.
TEST_CASE("metal_kernel: runs on the native gpu as well") {
  ChildResult child = run_child("child: metal_kernel on the native gpu", {"HOLDFAST_GPU=native"});
  CHECK_MESSAGE(child.exit_code == 0, child.output);
}

TEST_CASE("metal_kernel: wrong calls are errors when the graph is built, with the kernel's name") {
  FakeMetal metal;
  metal.define("nothing", [](std::span<void* const>, int64_t) {});
  auto kernel = fast::metal_kernel("bad_call", {"x"}, {"y"}, "NATIVE nothing ;");
  array x = floats(8);
  auto message = [&](Call call) -> std::string {
    try {
      call(kernel);
    } catch (const std::exception& error) {
      return error.what();
    }
    return "nothing was thrown";
  };
  auto with_grid = [&](int gx, int gy, int gz, int tx, int ty, int tz) {
    Call call{{x}, {{8}}, {float32}};
    call.grid = {gx, gy, gz};
    call.threadgroup = {tx, ty, tz};
    return message(call);
  };
  CHECK(message({{}, {{8}}, {float32}}) ==
        "[bad_call] expected 1 inputs, one for each input name, got 0");
  CHECK(message({{x, x}, {{8}}, {float32}}) ==
        "[bad_call] expected 1 inputs, one for each input name, got 2");
  CHECK(message({{x}, {}, {float32}}) ==
        "[bad_call] expected 1 output shapes, one for each output name, got 0");
  CHECK(message({{x}, {{8}}, {}}) ==
        "[bad_call] expected 1 output dtypes, one for each output name, got 0");
  CHECK(message({{astype(x, float64, Device::cpu)}, {{8}}, {float32}}) ==
        "[bad_call] input \"x\" has dtype float64, which the Metal Shading Language lacks; use "
        "float32");
  CHECK(message({{x}, {{8}}, {float64}}) ==
        "[bad_call] output \"y\" has dtype float64, which the Metal Shading Language lacks; use "
        "float32");
  CHECK(
      message({{x}, {{-1}}, {float32}}).starts_with("[bad_call] dimensions must not be negative"));
  CHECK(with_grid(0, 1, 1, 1, 1, 1) ==
        "[bad_call] the grid must have at least one thread in each dimension, got (0, 1, 1)");
  CHECK(with_grid(8, -1, 1, 1, 1, 1).starts_with("[bad_call] the grid must have"));
  CHECK(with_grid(8, 1, 1, 0, 1, 1).starts_with("[bad_call] the threadgroup must have"));
  CHECK(with_grid(4096, 1, 1, 1025, 1, 1) ==
        "[bad_call] a threadgroup may have at most 1024 threads, got (1025, 1, 1)");
  CHECK(with_grid(4096, 4096, 1, 64, 32, 1).find("at most 1024 threads") != std::string::npos);
  CHECK(with_grid(2147483647, 2147483647, 2147483647, 1, 1, 1).find("more than 2^40") !=
        std::string::npos);
  // Clamped to the grid, it is small enough.
  CHECK(with_grid(8, 1, 1, 2048, 4, 1) == "nothing was thrown");
}

TEST_CASE("metal_kernel: a source that does not compile leaves the node as it was") {
  FakeMetal metal;
  auto kernel = fast::metal_kernel("broken", {"x"}, {"y"}, "no kernel at all");
  array y = run_on(kernel, floats(8));
  for (int i = 0; i < 2; ++i) {
    CHECK_THROWS_WITH_AS(eval(y), "[broken] body:1:1: error: not NATIVE", std::runtime_error);
    CHECK(y.status() == array::unscheduled);
  }
  CHECK(metal.library().stats().failures == 2);
  define_affine(metal, "double", 2, 0);
  CHECK(elements(run_on(fast::metal_kernel("good", {"x"}, {"y"}, "NATIVE double ;"),
                        floats(8)))[3] == 6);
}

TEST_CASE_FIXTURE(OnCpu, "metal_kernel: while a kernel is compiled its stream is free for others") {
  FakeMetal metal;
  define_affine(metal, "double", 2, 0);
  Stream stream = new_stream(default_device());
  sync::Atomic<bool> is_compiling{false}, has_run{false};
  metal.hook = [&](const msl::KernelSource&) {
    is_compiling.store(true);
    eventually([&] { return has_run.load(); });
    CHECK(has_run.load());
  };
  sync::Thread other("other", [&] {
    eventually([&] { return is_compiling.load(); });
    eval(affine(counting(10), 2, 0, stream));
    has_run.store(true);
  });
  auto kernel = fast::metal_kernel("k", {"x"}, {"y"}, "NATIVE double ;");
  CHECK(elements(run_on(kernel, floats(20), stream))[4] == 8);
  other.join();
}

TEST_CASE("metal_kernel: a child prints its source when asked to [child]") {
  if (!is_child("metal_kernel: a child prints its source when asked to [child]")) return;
  FakeMetal metal;
  metal.define("nothing", [](std::span<void* const>, int64_t) {});
  auto kernel = fast::metal_kernel("talkative", {"x"}, {"y"}, "NATIVE nothing ;");
  Call call{{floats(8)}, {{8}}, {float32}};
  call.verbose = true;
  call(kernel);
}

TEST_CASE("metal_kernel: verbose prints the generated source") {
  ChildResult result = run_child("metal_kernel: a child prints its source when asked to [child]");
  CHECK(result.exit_code == 0);
  CHECK(result.output.find("talkative") != std::string::npos);
  CHECK(result.output.find("NATIVE nothing ;") != std::string::npos);
}

TEST_CASE_FIXTURE(
    OnCpu,
    "metal_kernel: a chain of one name over slices and views of one weight buffer, threads") {
  FakeMetal metal(2);
  constexpr int layers = 12, width = 16;
  // out[i] = sum_j x[j] * w[j * s0 + i * s1] + bias, with strides that the kernel is told.
  auto define = [&](const std::string& name, float bias) {
    metal.define(name, [bias](std::span<void* const> buffers, int64_t i) {
      const float* x = at<const float>(buffers, 0);
      const float* w = at<const float>(buffers, 1);
      const int64_t* strides = at<const int64_t>(buffers, 2);
      float total = bias;
      for (int j = 0; j < width; ++j) total += x[j] * w[j * strides[0] + i * strides[1]];
      at<float>(buffers, 3)[i] = total;
    });
  };
  for (int v = 0; v < 3; ++v) define("v" + std::to_string(v), static_cast<float>(v) * 0.25f);
  array weights = reshape(
      astype(floats(layers * width * width), float32) * array(1.0f / (layers * width * width)),
      {layers, width, width});
  eval(weights);
  auto run = [&](bool copies) {
    StreamContext on_cpu_here(Device::cpu);  // also on other threads
    array x = floats(width) * array(0.125f);
    for (int layer = 0; layer < layers; ++layer) {
      std::string body = "NATIVE v" + std::to_string(layer % 3) + " ; w_strides";
      auto kernel = fast::metal_kernel("layer", {"x", "w"}, {"y"}, body, "", copies);
      array w = squeeze(slice(weights, {layer, 0, 0}, {layer + 1, width, width}), 0);
      if (layer % 2) w = transpose(w);
      Call call{{x, w}, {{width}}, {float32}};
      call.grid = {width, 1, 1};
      call.threadgroup = {8, 1, 1};
      // Between fused element-wise ops.
      x = call(kernel)[0] * array(0.5f) + array(0.0625f);
    }
    return elements(x);
  };
  auto reference = [&] {
    std::vector<float> x(width), y(width);
    for (int i = 0; i < width; ++i) x[static_cast<size_t>(i)] = static_cast<float>(i) * 0.125f;
    const float* w = weights.data<float>();
    for (int layer = 0; layer < layers; ++layer, w += width * width) {
      for (int i = 0; i < width; ++i) {
        float total = static_cast<float>(layer % 3) * 0.25f;
        for (int j = 0; j < width; ++j) {
          total += x[static_cast<size_t>(j)] * (layer % 2 ? w[i * width + j] : w[j * width + i]);
        }
        y[static_cast<size_t>(i)] = total * 0.5f + 0.0625f;
      }
      x = y;
    }
    return x;
  }();
  on_threads(scaled(8, 4, 2), [&](int thread) {
    for (int i = 0; i < scaled(25, 5, 1); ++i) {
      if (run((i + thread) % 2 == 0) != reference) throw std::runtime_error("another result");
    }
  });
  CHECK(run(true) == reference);
}
