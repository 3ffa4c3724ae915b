// Brings a kernel into one function, but for arithmetic that would stand in it again and again.
#pragma once

#include <llvm/IR/PassManager.h>

#include <string>

namespace llvm {
class Function;
class Module;
}  // namespace llvm

namespace holdfast::msl {

// Inlines every call of `entry` and of what it calls, innermost first. `simplify` runs over each
// function before it is copied. What is left beside `entry` are shared functions, as scalar_ir.h
// describes them: a kernel with twenty sines would else take twenty times as long to compile. There
// is no recursion. Returns why it stopped: calls that multiply into more code than anything should
// compile; empty when all are inlined.
std::string inline_calls(llvm::Function& entry, llvm::FunctionPassManager& simplify,
                         llvm::FunctionAnalysisManager& analyses);

// Whether scalar_ir.h allows `function` beside the entry.
bool is_shared_function(const llvm::Function& function);

// Inlines the shared functions too, and erases them: for lowerings that want one function.
void inline_shared_functions(llvm::Module& module);

}  // namespace holdfast::msl
