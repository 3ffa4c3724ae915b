#include "devices/cpu/jit/compiler/widen/describe.h"

#include <llvm/IR/DebugInfoMetadata.h>
#include <llvm/IR/Instructions.h>
#include <llvm/Support/raw_ostream.h>

#include "devices/cpu/jit/compiler/widen/intrinsics.h"
#include "msl/frontend/frontend.h"

namespace holdfast::jit {

using llvm::cast;
using llvm::dyn_cast;
using llvm::Instruction;
using llvm::Value;

unsigned line_of(const Instruction& instruction) {
  // From inside functions outwards to what the user wrote.
  for (const llvm::DILocation* place = instruction.getDebugLoc().get(); place;
       place = place->getInlinedAt()) {
    if (place->getFilename() == msl::source_file && place->getLine() != 0) return place->getLine();
  }
  return 0;
}

std::string describe(const Value& value) {
  auto* instruction = dyn_cast<Instruction>(&value);
  if (instruction && kernel_intrinsic(*instruction)) {
    llvm::StringRef name = cast<llvm::CallInst>(instruction)->getCalledFunction()->getName();
    return name.drop_front(llvm::StringRef(msl::intrinsic_prefix).size()).str();
  }
  if (instruction && instruction->hasName())
    return instruction->getOpcodeName() + (" " + instruction->getName()).str();
  std::string text;
  llvm::raw_string_ostream stream(text);
  value.print(stream);
  return llvm::StringRef(text).trim().str();
}

std::string noun_of(const Instruction& instruction) {
  if (line_of(instruction) == 0 || kernel_intrinsic(instruction)) return describe(instruction);
  switch (instruction.getOpcode()) {
    case Instruction::Load:
      return "a load";
    case Instruction::Store:
      return "a store";
    case Instruction::AtomicRMW:
    case Instruction::AtomicCmpXchg:
      return "an atomic operation";
    case Instruction::Br:
      return "a branch";
    case Instruction::PHI:
      return "a variable";
    default:
      return "a value";
  }
}

}  // namespace holdfast::jit
