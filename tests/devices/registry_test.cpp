// Every row of the registry gives on the GPU what it gives on the CPU: to the bit, or within the
// rounding of its dtype where it computes; float64 is refused there by name. On a GPU that runs the
// library's kernels, the ops that the host computes are those that docs/gpu.md lists.
#include "registry/registry.h"

#include <cstring>
#include <fstream>
#include <mutex>
#include <set>
#include <sstream>

#include "devices/gpu.h"
#include "exec/layers/layer.h"
#include "io/files.h"
#include "kernels/metal/entries.h"
#include "ops/array_testing.h"
#include "support/rounding.h"

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

// Collects the ops that a GPU left to the host.
struct Fallbacks : exec::Layer {
  uint32_t interests() const override { return encoding; }
  void on_host_fallback(const exec::HostFallback& fallback) override {
    std::lock_guard guard(mutex);
    ops.insert(fallback.op);
  }
  std::mutex mutex;
  std::set<std::string> ops;
};

// Has the GPU kernels of the library, from images or a compiler?
bool has_kernels() {
  if (has_third_device()) return false;
  return exec::Runtime::get().cpu_device().target->has_compiler() ||
         !kernels::metal::images_of("copy").images().empty();
}

// The first column of the table of docs/gpu.md.
std::set<std::string> documented_fallbacks() {
  std::ifstream file(HOLDFAST_SOURCE_DIRECTORY "/docs/gpu.md");
  std::set<std::string> ops;
  bool is_inside = false;
  for (std::string line; std::getline(file, line);) {
    if (line.find("host-fallbacks:") != line.npos) is_inside = line.find(":begin") != line.npos;
    if (!is_inside || !line.starts_with("| `")) continue;
    std::istringstream names(line.substr(2, line.find(" |", 2) - 2));
    for (std::string name; names >> name;) {
      std::erase_if(name, [](char c) { return c == '`' || c == ','; });
      ops.insert(name);
    }
  }
  return ops;
}

// Does the row refuse GPU streams, as factorisations do?
bool is_of_cpu_streams(const std::string& what) {
  return what.find("CPU streams only") != std::string::npos;
}

}  // namespace

TEST_CASE("every row of the registry on the gpu equals the cpu") {
  install_gpu();
  DefaultDevice cpu(Device::cpu);
  auto fallbacks = std::make_shared<Fallbacks>();
  if (has_kernels()) exec::layers::add(fallbacks);
  int compared = 0;
  for (const registry::Row& row : registry::rows()) {
    for (const registry::Sample& sample : registry::samples_of(row)) {
      if (sample.outcome != registry::Sample::Outcome::result) continue;
      for (Dtype dtype : all_dtypes()) {
        if (dtype == float64 || !registry::accepts(row, sample, dtype)) continue;
        INFO(std::string(row.name)
             << " of " << sample.text << " with " << std::string(dtype_name(dtype)));
        std::vector<array> inputs = inputs_on_cpu(sample, dtype);
        const RoundedCall call{
            [&](const auto& given) { return row.run(registry::Call(given, sample.arguments)); },
            inputs, sample};
        registry::Results expected = call.run(inputs);
        eval(expected);
        DefaultDevice gpu(Device::gpu);
        try {
          registry::Results results = call.run(inputs);
          eval(results);
          REQUIRE(results.size() == expected.size());
          for (size_t i = 0; i < results.size(); ++i) {
            CHECK(results[i].dtype() == expected[i].dtype());
            CHECK(results[i].shape() == expected[i].shape());
            if (bytes_of(results[i]) == bytes_of(expected[i])) continue;
            DefaultDevice cpu_again(Device::cpu);
            const Rounding* rounding = has_kernels() ? rounding_of(row.name, dtype) : nullptr;
            if (rounding) {
              CHECK(beyond_rounding(*rounding, call, i, results[i], expected[i]) == "");
            } else {
              CHECK(registry::difference(results[i], expected[i], 0) == "");
            }
          }
          ++compared;
        } catch (const std::exception& error) {
          CHECK_MESSAGE(is_of_cpu_streams(error.what()), std::string(error.what()));
        }
      }
    }
  }
  CHECK(compared > 1000);
  if (has_kernels()) {
    // What has no row.
    DefaultDevice gpu(Device::gpu);
    TemporaryFolder folder;
    const std::string file = folder / "loaded.npy";
    save(file, arange(4, float32, Device::cpu));
    CHECK(array_equal(load(file), arange(4, float32)).item<bool>());
    auto rows = compile([](const std::vector<array>& in) -> std::vector<array> {
      return {softmax(in[0] * in[0], -1) + in[0]};
    });
    eval(rows({ones({8, 300})}));
    exec::layers::remove(fallbacks.get());
    const std::set<std::string> documented = documented_fallbacks();
    REQUIRE(!documented.empty());
    for (const std::string& op : fallbacks->ops)
      CHECK_MESSAGE(documented.contains(op), "the host computed " << op);
    for (const std::string& op : documented)
      CHECK_MESSAGE(fallbacks->ops.contains(op),
                    "docs/gpu.md lists " << op << ", which has a kernel");
  }
  if (has_third_device()) {
    CHECK(third_device_traffic().in > 0);
    CHECK(third_device_traffic().out > 0);
  }
}

TEST_CASE("every row of the registry refuses float64 on the gpu") {
  install_gpu();
  DefaultDevice cpu(Device::cpu);
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
