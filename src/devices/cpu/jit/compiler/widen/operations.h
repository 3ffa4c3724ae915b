// Arithmetic on all 32 lanes at once, instruction by instruction.
#pragma once

#include <llvm/ADT/STLFunctionalExtras.h>
#include <llvm/IR/IRBuilder.h>

namespace holdfast::jit {

// Whether widen_operation knows a form of it that needs nothing but its operands as vectors.
bool has_wide_operation(const llvm::Instruction& instruction);

// `vector_of` gives an operand for all lanes, `mask` the lanes that are on (null: all). Pointers
// are in address space 0.
llvm::Value* widen_operation(llvm::IRBuilder<>& b, const llvm::Instruction& instruction,
                             llvm::Value* mask,
                             llvm::function_ref<llvm::Value*(llvm::Value*)> vector_of);

}  // namespace holdfast::jit
