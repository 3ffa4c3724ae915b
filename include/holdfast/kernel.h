// Kernel: a compiled kernel of a whole MSL source, for primitives that dispatch by hand
// (Encoder::dispatch). For one function body, fast::metal_kernel is simpler.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace holdfast {

namespace exec {
class Pipeline;
}  // namespace exec

// A value: copies share the compiled code, which lives at least as long as what is running it.
class Kernel {
 public:
  // The value of a [[function_constant(index)]], as bytes of its MSL type ("bool", "int", "float4",
  // …), the first in the lowest place; what the type does not need is zero.
  struct Constant {
    uint32_t index;
    std::string type;
    std::array<uint64_t, 4> bits;
  };
  // Compiles `source`, or finds it in the kernel library. `entry` is a function of it or its
  // [[host_name]]; `directory` is where `#include "file"` looks. Throws std::runtime_error with the
  // compiler's messages.
  Kernel(std::string source, std::string entry, std::vector<Constant> constants = {},
         std::string directory = "");

  // [[max_total_threads_per_threadgroup]], or the device's limit.
  uint32_t max_threads_per_threadgroup() const;
  const exec::Pipeline& pipeline() const { return *pipeline_; }

 private:
  std::shared_ptr<const exec::Pipeline> pipeline_;
};

}  // namespace holdfast
