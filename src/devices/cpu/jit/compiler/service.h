// The compiler of kernels: front-end, lowering, object. What libholdfast-jit exports.
#pragma once

#include <memory>

#include "devices/cpu/jit/compiler.h"

namespace llvm {
class Module;
}

namespace holdfast::jit {

// Scalar IR (msl/scalar_ir.h) in, object out: what Compiler::compile does after the front-end.
// `name` is the kernel's name for messages. Throws CompileError when Lowering::widened was asked
// for and widening declines.
CompiledKernel compile_scalar_ir(std::unique_ptr<llvm::Module> module,
                                 const msl::KernelInterface& interface,
                                 const CompileOptions& options, const std::string& name);

// The process's compiler.
Compiler& service();

}  // namespace holdfast::jit

// The one symbol that compiler_loader.cpp looks for. Returns null when `version`, the caller's
// HOLDFAST_JIT_VERSION, is not that of this library.
extern "C" holdfast::jit::Compiler* holdfast_jit_compiler(const char* version);
