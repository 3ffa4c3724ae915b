// Small branches without effects become selects: lanes that part and meet at once do not part at
// all.
#pragma once

namespace llvm {
class Function;
}

namespace holdfast::jit {

// Turns `if (c) x = f(); else x = g();` into `x = c ? f() : g();` where both sides are a few
// instructions that may run in any lane.
void if_convert(llvm::Function& function);

}  // namespace holdfast::jit
