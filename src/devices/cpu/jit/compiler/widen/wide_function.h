// Shared functions (msl/scalar_ir.h) for all 32 lanes at once.
#pragma once

#include <llvm/ADT/StringRef.h>

#include "devices/cpu/jit/compiler.h"

namespace llvm {
class Function;
}

namespace holdfast::jit {

// Whether every instruction of it has a wide form.
bool can_widen_function(const llvm::Function& shared);

// `<32 x R> name(<32 x A>…, <32 x i1> lanes)`, beside `shared`. All lanes are computed; what is
// behind a branch is skipped when no lane that is on goes there. Without `lanes` where there is
// nothing to skip. Its calling convention leaves half
// of the vector registers to the caller: a call site has to be given it too.
llvm::Function* widen_function(llvm::Function& shared, llvm::StringRef name, InstructionSet set);

}  // namespace holdfast::jit
