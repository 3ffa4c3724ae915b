// Bounds for sources that would take the compiler hours or all memory. clang has its own for depth;
// these count what a short text can multiply: files that include each other, macros,
// instantiations.
#pragma once

#include "msl/frontend/diagnostics.h"

namespace clang {
class CompilerInstance;
class Sema;
}  // namespace clang

namespace holdfast::msl {

// To be called when the preprocessor is there, before it reads the source. Beyond a bound the
// compilation ends by give_up (guard.h) with a CompileError.
void limit_preprocessor(clang::CompilerInstance& compiler, Diagnostics& diagnostics);
// When Sema is there.
void limit_templates(clang::Sema& sema, Diagnostics& diagnostics);

}  // namespace holdfast::msl
