// From LLVM IR to a relocatable object.
//
// The instruction set decides everything: nothing is asked of the processor that compiles, so that
// an object of one key is the same on every machine.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "devices/cpu/jit/compiler.h"

namespace llvm {
class Function;
class Module;
class TargetMachine;
}  // namespace llvm

namespace holdfast::jit {

// The machine that code is generated for. One for each thread that compiles: it is not shared.
std::unique_ptr<llvm::TargetMachine> make_target_machine(InstructionSet set);

// Gives the module the target's triple and data layout, and each defined function the attributes
// that the passes and the back-end read (processor, features, no unwinding, no library calls).
void set_target(llvm::Module& module, llvm::TargetMachine& machine);

// An attribute of functions, and of calls of them: all registers are as before afterwards. Such a
// function clears the upper halves of vectors itself before it calls others.
inline constexpr const char* keeps_registers = "no_caller_saved_registers";

// Cleans up after a lowering: the scalar optimisations of -O2 without vectorisers. Does not change
// the bits of any result.
void optimise(llvm::Module& module, llvm::TargetMachine& machine);

// Replaces llvm.memcpy, memmove and memset by code that calls nothing.
void expand_memory_intrinsics(llvm::Function& function);

struct ObjectCode {
  std::vector<char> bytes;   // position independent, ELF
  uint32_t stack_bytes = 0;  // of the function that needs most
};

// Consumes the module: code generation changes it. Throws std::logic_error that names the symbol
// when the code needs anything from outside the object.
ObjectCode emit_object(llvm::Module& module, llvm::TargetMachine& machine);

// The code that emit_object would make, as text. Leaves the module as it is.
std::string assembly_of(const llvm::Module& module, llvm::TargetMachine& machine);

}  // namespace holdfast::jit
