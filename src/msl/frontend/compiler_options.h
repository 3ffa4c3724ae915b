// How clang reads MSL: C++17 in SYCL's device mode, where address spaces are types that convert to
// the generic space. The target of the front-end is nvptx64, whatever the kernel will run on: its
// calling convention makes no vectors of structs, and sizes and alignments are those of the 64-bit
// machines we generate code for.
#pragma once

#include <string>

#include "msl/frontend/diagnostics.h"
#include "msl/frontend/files.h"
#include "msl/kernel_source.h"

namespace clang {
class CompilerInstance;
}

namespace holdfast::msl {

// Makes `compiler` ready to execute an action.
void set_up(clang::CompilerInstance& compiler, KernelFiles& files, Diagnostics& diagnostics);

// Where #include looks, for a source that came from a file.
void set_search_path(clang::CompilerInstance& compiler, const KernelSource& source);

// What stands before the user's text beside the prelude: the math mode, and the values of function
// constants. One line.
std::string source_preamble(const KernelSource& source);

}  // namespace holdfast::msl
