// Runs checked kernels over memory of the test's.
#pragma once

#include <cstdint>
#include <vector>

#include "devices/cpu/jit/kernel_checker.h"
#include "jit/widen_testing.h"

namespace holdfast::jit::testing {

struct Memory {
  std::vector<uint32_t> words;
  bool has_contents = true;
};

// `memory` by slot.
inline std::vector<exec::KernelFinding> run_checked(const CpuPipeline& pipeline,
                                                    std::vector<Memory>& memory,
                                                    const Dispatch& dispatch) {
  std::vector<void*> pointers;
  std::vector<KernelChecker::Buffer> sizes;
  for (const msl::KernelArgument& argument : pipeline.interface().arguments) {
    Memory& one = memory[argument.slot];
    pointers.push_back(one.words.data());
    sizes.push_back({one.words.size() * sizeof(uint32_t), 0, one.has_contents});
  }
  KernelChecker checker(pipeline, sizes, pointers.data());
  DispatchArguments arguments;
  arguments.buffers = pointers.data();
  arguments.checker = &checker;
  for (int axis = 0; axis < 3; ++axis) {
    arguments.grid[axis] = dispatch.grid[static_cast<size_t>(axis)];
    arguments.threadgroup[axis] = dispatch.threadgroup[static_cast<size_t>(axis)];
  }
  check_dispatch(pipeline, arguments);
  begin_dispatch(arguments);
  run_groups(pipeline, arguments, 0, threadgroups(arguments));
  return checker.findings();
}

}  // namespace holdfast::jit::testing
