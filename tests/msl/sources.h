// Kernels for tests of the front-end.
#pragma once

#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>

#include <memory>
#include <string>

#include "msl/frontend/frontend.h"

namespace holdfast::msl::testing {

inline const std::string start = "#include <metal_stdlib>\nusing namespace metal;\n";

struct Compiled {
  std::unique_ptr<llvm::LLVMContext> context = std::make_unique<llvm::LLVMContext>();
  std::unique_ptr<llvm::Module> module;
  KernelInterface interface;
  std::string error;  // what() of the CompileError
};

// Compiles `user` behind the lines above; the user's text is the part "body".
inline Compiled compile(const std::string& user, const std::string& entry = "",
                        KernelSource source = {}) {
  source.kernel = "kernel_of_test";
  source.entry = entry;
  source.text = start + user;
  source.parts = {{"body", start.size(), source.text.size()}};
  Compiled compiled;
  try {
    compiled.module = to_scalar_ir(source, *compiled.context, compiled.interface);
  } catch (const CompileError& error) {
    compiled.error = error.what();
  }
  return compiled;
}

}  // namespace holdfast::msl::testing
