// Kernels for NVIDIA GPUs whose accesses are guarded, and whose constants are in the block of their
// parameters: their twins (twin.h).
#include <doctest/doctest.h>

#include <cstring>

#include "jit/ptx/twin.h"

using namespace holdfast;
using namespace holdfast::jit::testing;
using cuda::Positions;

namespace {

constexpr uint32_t threads = 64, elements = 40;

// y[i] = x[i] * factor + list[i % 4], for threads that go beyond both arrays.
GpuCase scale_case() {
  GpuCase one;
  one.group = "parameters";
  one.name = one.source.kernel = one.source.entry = "scale";
  one.source.text = R"(
    #include <metal_stdlib>
    using namespace metal;
    struct Scale { float factor; int count; };
    [[kernel]] void scale(const device float* x [[buffer(0)]], device float* y [[buffer(1)]],
                          constant Scale& scale [[buffer(2)]], constant int* list [[buffer(3)]],
                          uint i [[thread_position_in_grid]]) {
      float sum = x[i] * scale.factor;
      for (int k = 0; k < scale.count; ++k) sum += float(list[k] * (k == int(i % 4) ? 1 : 0));
      y[i] = sum;
    })";
  one.grid = {threads, 1, 1};
  one.threadgroup = {32, 1, 1};
  one.argument = [](const msl::KernelArgument& argument) {
    GpuArgument result;
    if (argument.slot <= 1) {
      std::vector<float> values(threads);
      for (uint32_t i = 0; i < threads; ++i)
        values[i] = argument.slot == 0 ? static_cast<float>(i) : -1.0F;
      result.bytes.resize(threads * sizeof(float));
      std::memcpy(result.bytes.data(), values.data(), result.bytes.size());
      result.is_output = argument.slot == 1;
    } else if (argument.slot == 2) {
      const float factor = 3;
      const int32_t count = 4;
      result.bytes.resize(8);
      std::memcpy(result.bytes.data(), &factor, 4);
      std::memcpy(result.bytes.data() + 4, &count, 4);
    } else {
      const int32_t list[] = {100, 200, 300, 400};
      result.bytes.resize(sizeof(list));
      std::memcpy(result.bytes.data(), list, sizeof(list));
    }
    return result;
  };
  return one;
}

float value_at(const TwinResult& result, uint32_t i) {
  float value = 0;
  std::memcpy(&value, result.arguments[1].bytes.data() + i * 4, 4);
  return value;
}
float expected_at(uint32_t i) { return static_cast<float>(3 * i + 100 * (i % 4 + 1)); }

}  // namespace

TEST_CASE("PTX: constants in the block of parameters") {
  const GpuCase one = scale_case();
  for (Positions positions : {Positions::rows, Positions::general}) {
    for (bool is_guarded : {false, true}) {
      const TwinResult result = run_twin(one, positions, true, false, {is_guarded, true});
      CHECK(result.outside == 0);
      for (uint32_t i = 0; i < threads; ++i) CHECK(value_at(result, i) == expected_at(i));
    }
  }
}

TEST_CASE("PTX: guards keep a kernel inside of its arguments") {
  GpuCase one = scale_case();
  one.range = [](size_t i, size_t bytes) { return i == 1 ? uint64_t{elements * 4} : bytes; };
  for (Positions positions : {Positions::rows, Positions::general}) {
    for (bool optimised : {false, true}) {
      const TwinResult result = run_twin(one, positions, optimised, false, {true, false});
      CHECK(result.outside == threads - elements);
      for (uint32_t i = 0; i < threads; ++i)
        CHECK(value_at(result, i) == (i < elements ? expected_at(i) : -1.0F));
    }
  }
  // What is read outside is 0.
  one.range = [](size_t i, size_t bytes) { return i == 0 ? uint64_t{elements * 4} : bytes; };
  const TwinResult result = run_twin(one, Positions::rows, true, false, {true, false});
  CHECK(result.outside == threads - elements);
  for (uint32_t i = 0; i < threads; ++i) {
    const float read = i < elements ? 3.0F * static_cast<float>(i) : 0.0F;
    CHECK(value_at(result, i) == read + static_cast<float>(100 * (i % 4 + 1)));
  }
}
