// Variables at program scope whose value is computed when the program starts: kernels have no such
// time.
#pragma once

#include <cstdint>
#include <optional>

namespace llvm {
class GlobalVariable;
class Module;
}  // namespace llvm

namespace holdfast::msl {

// What is left of the initialisation of variables at run time cannot be: such variables have no
// value (function constants that were not given, and what depends on them), which matters only
// where the kernel reads them.
void drop_initialisers(llvm::Module& module);

// The index of the function constant that would have to be given for `variable` to have a value, as
// far as drop_initialisers knows.
std::optional<uint64_t> missing_function_constant(const llvm::GlobalVariable& variable);

}  // namespace holdfast::msl
