// Variables at program scope whose value is computed when the program starts: kernels have no such
// time. And tables of addresses that are known when a threadgroup starts.
#pragma once

#include <cstdint>
#include <optional>

namespace llvm {
class Constant;
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

// The first value of a private array of pointers to threadgroup variables is a constant table for
// clang, but each group has other addresses: they are stored one by one.
void store_threadgroup_addresses(llvm::Module& module);

// Whether the value is made of addresses of threadgroup variables, which no constant can be.
bool holds_threadgroup_addresses(const llvm::Constant& value);

}  // namespace holdfast::msl
