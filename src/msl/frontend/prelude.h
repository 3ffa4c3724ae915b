// The prelude, precompiled: reading our headers takes clang half a second, their precompiled form a
// few milliseconds. The build writes it into files beside the module (tools/prelude); without a
// file that matches this build, it is made in memory at the first kernel.
#pragma once

#include <llvm/Support/MemoryBufferRef.h>

#include <string>

namespace holdfast::msl {

enum class Prelude {
  custom_kernel,  // what MLX puts before a custom kernel: holdfast/custom_kernel.h
  metal_file      // what a .metal file may include: all of metal_stdlib, no helpers, no using
};

// The first line of a source says which: custom kernels start with #include
// <holdfast/custom_kernel.h>.
Prelude prelude_of(const std::string& text);
const char* prelude_header(Prelude prelude);

// The precompiled form, for ever in memory. Empty when there is none and it cannot be made
// (`may_make`: whether to try).
llvm::MemoryBufferRef precompiled_prelude(Prelude prelude, bool may_make = true);

// Makes both and writes them into `folder`. Throws std::runtime_error.
void write_preludes(const std::string& folder);

}  // namespace holdfast::msl

// The same for tools/prelude, which knows only the module: 0, or 1 after printing what failed.
extern "C" int holdfast_jit_write_preludes(const char* folder);
