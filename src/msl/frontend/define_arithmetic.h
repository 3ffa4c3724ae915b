// Arithmetic that C++ leaves undefined gets a meaning, the same on every device and in every
// lowering.
#pragma once

namespace llvm {
class Function;
}

namespace holdfast::msl {

// x / 0 = 0, x % 0 = x, INT_MIN / -1 = INT_MIN, INT_MIN % -1 = 0; shifts count modulo the width;
// floats become the nearest integer that the type has, NaN becomes 0.
//
// Before anything is optimised, because LLVM takes what is undefined for a licence; doing it again
// later does no harm.
void define_arithmetic(llvm::Function& function);

}  // namespace holdfast::msl
