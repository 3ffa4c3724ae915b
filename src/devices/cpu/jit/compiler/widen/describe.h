// Values and instructions in words, for remarks and reasons.
#pragma once

#include <llvm/IR/Instruction.h>

#include <string>

namespace holdfast::jit {

// A short description of a value for people: its name, else its IR.
std::string describe(const llvm::Value& value);
// The line of the user's source that an instruction comes from; 0: not known.
unsigned line_of(const llvm::Instruction& instruction);
// What to call it beside that line.
std::string noun_of(const llvm::Instruction& instruction);

}  // namespace holdfast::jit
