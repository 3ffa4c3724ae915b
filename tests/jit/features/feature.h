// What of the Metal Shading Language works: a table of small kernels. Each row is run widened and
// on the reference lowering, whose outputs must have the same bits, and compared with plain C++.
// The table is the list that users read: docs/metal.md is made from it (features_test.cpp).
//
// To add a row: a name, the body of a kernel as for fast::metal_kernel, its arguments, and what it
// computes in C++ (see memory_features.cpp).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <holdfast/dtype.h>

#include "jit/kernel_testing.h"
#include "msl/signature.h"

namespace holdfast::jit::testing {

// An input or an output of a kernel: rows of elements without gaps.
struct Argument {
  std::string name;
  Dtype dtype;
  std::vector<int32_t> shape;  // none: a scalar
  std::vector<char> bytes;

  size_t size() const;
};

// What a row's C++ sees: inputs and outputs by position. Outputs start as the kernel's do.
class Arrays {
 public:
  Arrays(const std::vector<Argument>& inputs, std::vector<Argument>& outputs)
      : inputs_(inputs), outputs_(outputs) {}
  template <class T = float>
  const T* in(size_t i = 0) const {
    return reinterpret_cast<const T*>(inputs_[i].bytes.data());
  }
  template <class T = float>
  T* out(size_t i = 0) {
    return reinterpret_cast<T*>(outputs_[i].bytes.data());
  }

 private:
  const std::vector<Argument>& inputs_;
  std::vector<Argument>& outputs_;
};

struct Feature {
  const char* name;
  std::string body;
  std::vector<Argument> inputs;
  std::vector<Argument> outputs;
  std::function<void(Arrays&)> expected;
  // By default two whole simdgroups, then one whole and one of four threads.
  Size grid = {100, 1, 1};
  Size threadgroup = {64, 1, 1};
  std::string header = {};
  std::vector<std::pair<std::string, msl::TemplateValue>> templates = {};
  double ulp = 0;  // how far floats may be from C++'s, in units in the last place; 0: the same bits
  bool atomic_outputs = false;
  msl::MathMode math = msl::MathMode::safe;
};

// What does not compile by intention, and the text that the error must contain.
struct Refusal {
  const char* name;
  std::string header;
  std::string body;
  std::string message;
};

struct Section {
  const char* title;
  std::vector<Feature> features;
};

// The sections, each in a file of its own.
Section attribute_features();
Section contract_features();
Section lane_features();
Section memory_features();
Section type_features();
Section math_features();
Section construct_features();
Section helper_features();
Section trap_features();
std::vector<Refusal> refusals();

std::vector<Section> all_features();

// The kernel of a row, as fast::metal_kernel would generate it.
msl::GeneratedKernel generate(const Feature& feature);

// --- arguments ---

constexpr int32_t threads = 100;  // of the default grid

Argument zeros(std::string name, Dtype dtype, std::vector<int32_t> shape = {threads});
Argument floats(std::string name, std::vector<int32_t> shape = {threads}, float low = -2,
                float high = 2);
Argument integers(std::string name, Dtype dtype, std::vector<int32_t> shape, int64_t low,
                  int64_t high);
template <class T>
Argument values(std::string name, Dtype dtype, const std::vector<T>& of) {
  auto* first = reinterpret_cast<const char*>(of.data());
  return {std::move(name),
          dtype,
          {static_cast<int32_t>(of.size())},
          std::vector<char>(first, first + of.size() * sizeof(T))};
}
template <class T>
Argument scalar(std::string name, Dtype dtype, T value) {
  Argument result = values<T>(std::move(name), dtype, {value});
  result.shape.clear();
  return result;
}
// The same numbers in float16 or bfloat16.
Argument as(Dtype dtype, const Argument& floats);

// --- what C++ needs to know of a grid of one dimension ---

// Calls body(first thread, threads) for each simdgroup of the default grid.
void each_simdgroup(const std::function<void(size_t first, size_t count)>& body,
                    size_t grid = threads, size_t threadgroup = 64);
// The order in which a simdgroup reduces (msl/intrinsics.def): a butterfly.
float butterfly(const float* lanes, size_t count, float neutral,
                const std::function<float(float, float)>& combine);
// The order in which a simdgroup scans: the tree over the `active` ones of the lanes before `end`.
std::optional<float> prefix_tree(const float* lanes, uint32_t active, size_t end,
                                 const std::function<float(float, float)>& combine,
                                 size_t first = 0, size_t size = 32);

}  // namespace holdfast::jit::testing
