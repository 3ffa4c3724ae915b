// Kernels on the whole of our metal_stdlib, compiled and run on this thread: no queue, no cache.
#pragma once

#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>

#include <string>
#include <vector>

#include "devices/cpu/jit/compiler/service.h"
#include "devices/cpu/jit/dispatch.h"
#include "msl/frontend/frontend.h"

namespace holdfast::msl::testing {

// A whole source, behind what MLX puts before a kernel.
inline KernelSource stdlib_source(const std::string& text, MathMode math = MathMode::safe) {
  const std::string prelude = "#include <holdfast/custom_kernel.h>\n";
  KernelSource source;
  source.kernel = "stdlib";
  source.text = prelude + text;
  source.parts = {{"body", prelude.size(), source.text.size()}};
  source.math = math;
  return source;
}

// What is wrong with the scalar IR of `source`: the compiler's message, or that of check_scalar_ir.
inline std::string problem_of(const KernelSource& source) {
  llvm::LLVMContext context;
  KernelInterface interface;
  try {
    auto module = to_scalar_ir(source, context, interface);
    return check_scalar_ir(*module, interface);
  } catch (const CompileError& error) {
    return error.what();
  }
}

// Runs the kernel of `source` over `threads` threads in one threadgroup.
inline void run_stdlib(const KernelSource& source, jit::Lowering lowering,
                       std::vector<void*> buffers, uint32_t threads,
                       jit::InstructionSet set = jit::host_instruction_set()) {
  llvm::LLVMContext context;
  KernelInterface interface;
  auto module = to_scalar_ir(source, context, interface);
  jit::CompileOptions options;
  options.lowering = lowering;
  options.instruction_set = set;
  auto pipeline = jit::CpuPipeline::load(
      "stdlib", jit::compile_scalar_ir(std::move(module), interface, options, "stdlib"));
  jit::DispatchArguments arguments;
  arguments.buffers = buffers.data();
  arguments.grid[0] = arguments.threadgroup[0] = threads;
  jit::check_dispatch(*pipeline, arguments);
  jit::begin_dispatch(arguments);
  jit::run_groups(*pipeline, arguments, 0, jit::threadgroups(arguments));
}

// Each lowering that this build has.
inline std::vector<jit::Lowering> lowerings() {
  return {jit::Lowering::reference, jit::Lowering::automatic};
}

}  // namespace holdfast::msl::testing
