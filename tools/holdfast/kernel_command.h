// What the subcommands of `holdfast kernel` share.
#pragma once

#include <string>
#include <vector>

#include "devices/cpu/jit/compiler.h"
#include "tools/holdfast/commands.h"

namespace holdfast::tool {

// How a source is compiled: -I, --lowering, --math, --instruction-set, --constant, --guard.
struct KernelOptions {
  KernelOptions();
  jit::CompileOptions compile;
  msl::MathMode math = msl::MathMode::safe;
  std::vector<msl::FunctionConstant> constants;
  std::vector<std::string> include_directories;
  unsigned seconds = 120;  // of `kernel check`: processor time for a kernel

  // Is arguments[i] one of them? Then takes it with its value.
  bool take(Arguments arguments, size_t& i);
  void apply(msl::KernelSource& source) const;
};

// The argument after option arguments[i]; moves on to it.
const std::string& value_of(Arguments arguments, size_t& i);

// "widened for avx2", or the reference lowering and why.
std::string lowering_text(const jit::CompiledKernel& kernel, jit::InstructionSet set);

int run_kernel_run(Arguments arguments);
int run_kernel_warm(Arguments arguments);

// The number of an NVIDIA GPU's architecture, as of "sm_90". Throws UsageError.
uint32_t architecture_of(const std::string& text);

}  // namespace holdfast::tool
