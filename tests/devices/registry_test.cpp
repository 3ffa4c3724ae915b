// Every row of the registry gives on the GPU what it gives on the CPU, to the bit; float64 is
// refused there by name.
#include "registry/registry.h"

#include <cstring>

#include "devices/gpu.h"
#include "ops/array_testing.h"

using namespace holdfast;
using namespace holdfast::testing;

namespace {

// In row-major order.
std::vector<char> bytes_of(const array& a) {
  array dense = contiguous(a, false, Device::cpu);
  dense.eval();
  std::vector<char> bytes(dense.nbytes());
  const array& evaluated = dense;
  if (!bytes.empty()) std::memcpy(bytes.data(), evaluated.data<char>(), bytes.size());
  return bytes;
}

class DefaultDevice {
 public:
  explicit DefaultDevice(Device device) { set_default_device(device); }
  ~DefaultDevice() { set_default_device(before_); }

 private:
  Device before_ = default_device();
};

std::vector<array> inputs_on_cpu(const registry::Sample& sample, Dtype dtype) {
  std::vector<array> inputs;
  uint64_t seed = 1;
  for (const registry::Input& input : sample.inputs)
    inputs.push_back(registry::make_input(input, dtype, seed++));
  eval(inputs);
  return inputs;
}

// Does the row refuse GPU streams, as factorisations do?
bool is_of_cpu_streams(const std::string& what) {
  return what.find("CPU streams only") != std::string::npos;
}

}  // namespace

TEST_CASE("every row of the registry on the gpu equals the cpu") {
  install_gpu();
  int compared = 0;
  for (const registry::Row& row : registry::rows()) {
    for (const registry::Sample& sample : registry::samples_of(row)) {
      if (sample.outcome != registry::Sample::Outcome::result) continue;
      for (Dtype dtype : all_dtypes) {
        if (dtype == float64 || !registry::accepts(row, sample, dtype)) continue;
        INFO(std::string(row.name)
             << " of " << sample.text << " with " << std::string(dtype_name(dtype)));
        std::vector<array> inputs = inputs_on_cpu(sample, dtype);
        registry::Results expected = row.run(registry::Call(inputs, sample.arguments));
        eval(expected);
        DefaultDevice gpu(Device::gpu);
        try {
          registry::Results results = row.run(registry::Call(inputs, sample.arguments));
          eval(results);
          REQUIRE(results.size() == expected.size());
          for (size_t i = 0; i < results.size(); ++i) {
            CHECK(results[i].dtype() == expected[i].dtype());
            CHECK(results[i].shape() == expected[i].shape());
            CHECK(bytes_of(results[i]) == bytes_of(expected[i]));
          }
          ++compared;
        } catch (const std::exception& error) {
          CHECK_MESSAGE(is_of_cpu_streams(error.what()), std::string(error.what()));
        }
      }
    }
  }
  CHECK(compared > 1000);
  if (has_third_device()) {
    CHECK(third_device_traffic().in > 0);
    CHECK(third_device_traffic().out > 0);
  }
}

TEST_CASE("every row of the registry refuses float64 on the gpu") {
  install_gpu();
  for (const registry::Row& row : registry::rows()) {
    for (const registry::Sample& sample : registry::samples_of(row)) {
      const bool has_row_dtype =
          std::any_of(sample.inputs.begin(), sample.inputs.end(),
                      [](const registry::Input& input) { return input.has_row_dtype(); });
      if (sample.outcome != registry::Sample::Outcome::result || !has_row_dtype ||
          !registry::accepts(row, sample, float64))
        continue;
      INFO(std::string(row.name) << " of " << sample.text);
      std::vector<array> inputs = inputs_on_cpu(sample, float64);
      DefaultDevice gpu(Device::gpu);
      std::string what;
      try {
        registry::Results results = row.run(registry::Call(inputs, sample.arguments));
        // What names no op (an input as it is) names no device either.
        bool is_node = false;
        for (const array& result : results) is_node |= result.has_primitive();
        if (!is_node) continue;
      } catch (const std::invalid_argument& error) {
        what = error.what();
      }
      CHECK_MESSAGE((what.find("float64 is not supported on the gpu") != what.npos ||
                     is_of_cpu_streams(what)),
                    what);
    }
  }
}
