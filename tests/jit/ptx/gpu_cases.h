// Kernels with all that a run of them needs, from three places: the table of features, the kernels
// of `bench kernels`, random programs. For tests of what the compiler makes of them for a GPU.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "devices/cuda/ptx_kernel.h"
#include "jit/kernel_testing.h"
#include "msl/kernel_source.h"

namespace holdfast::jit::testing {

// What elements of an argument are, for a comparison: two NaN are equal whatever their bits.
enum class ElementKind : uint8_t { bits, float16, bfloat16, float32 };

struct GpuArgument {
  std::vector<char> bytes;  // before the run
  bool is_output = false;
  ElementKind kind = ElementKind::bits;
};

struct GpuCase {
  std::string group, name;  // "features", "bench", "tiles" or "random", and which one
  msl::KernelSource source;
  Size grid = {1, 1, 1}, threadgroup = {1, 1, 1};
  // What a parameter of the kernel is bound to.
  std::function<GpuArgument(const msl::KernelArgument&)> argument;
  // How far guards let the kernel go in argument i, which has `bytes`; fewer leave room for what a
  // kernel does behind its end.
  std::function<uint64_t(size_t i, size_t bytes)> range;
  uint64_t bytes_of_range(size_t i, size_t bytes) const { return range ? range(i, bytes) : bytes; }
  // Whether the result may depend on the order of threads, or accesses leave the arguments on
  // purpose.
  bool has_fixed_result = true;

  bool is_divisible() const;  // into whole threadgroups
  // What the compiler may count on when it is run like this.
  cuda::PtxOptions options(cuda::Positions positions) const;
};

std::vector<GpuCase> feature_cases();
std::vector<GpuCase> bench_cases();
GpuCase random_case(uint64_t seed);

// What the kernel leaves in its arguments, by KernelInterface::arguments, on this processor.
std::vector<GpuArgument> run_on_cpu(const GpuCase& gpu_case);

}  // namespace holdfast::jit::testing
