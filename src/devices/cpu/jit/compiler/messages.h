// A message of a kernel, as generated code hands it to the runtime.
#pragma once

#include <llvm/ADT/STLFunctionalExtras.h>
#include <llvm/IR/IRBuilder.h>

namespace holdfast::jit {

// Writes a LogMessage to `message`. `operand` gives operand i of the call of intrinsic `log`, of
// one thread.
void store_message(llvm::IRBuilderBase& b, llvm::Value* message, llvm::Value* format,
                   llvm::function_ref<llvm::Value*(unsigned)> operand);

}  // namespace holdfast::jit
