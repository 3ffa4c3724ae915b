// Kernels in MSL, run widened and by the reference lowering on the same data: every byte must
// agree.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "jit/kernel_testing.h"

namespace holdfast::jit::testing {

struct Buffer {
  std::vector<char> bytes;

  static Buffer floats(size_t count, uint32_t seed, float low = -2, float high = 2);
  static Buffer integers(size_t count, uint32_t seed, uint32_t limit = ~0u);
  static Buffer zeros(size_t bytes);
  template <class T>
  static Buffer of(const std::vector<T>& values) {
    const char* first = reinterpret_cast<const char*>(values.data());
    return {std::vector<char>(first, first + values.size() * sizeof(T))};
  }
};

struct Dispatch {
  Size grid = {1, 1, 1};
  Size threadgroup = {1, 1, 1};
};

// The kernel `k` of a source.
CompiledKernel compile_msl(const std::string& text, Lowering lowering, InstructionSet set,
                           bool guarded = false);

// All of each buffer.
std::vector<ArgumentRange> ranges_of(const std::vector<Buffer>& buffers);

// What a kernel leaves in its buffers.
std::vector<Buffer> run_msl(const std::string& text, Lowering lowering, InstructionSet set,
                            std::vector<Buffer> buffers, const Dispatch& dispatch);

// Runs `text` for each instruction set of this machine, and expects that the widened code, with and
// without guards, leaves the same bytes as the reference lowering.
void check_widened(const std::string& text, const std::vector<Buffer>& buffers,
                   const std::vector<Dispatch>& dispatches);

}  // namespace holdfast::jit::testing
