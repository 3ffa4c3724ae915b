// Lines of a kernel's text as users count them: from the start of the part that they wrote.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>

#include "msl/kernel_source.h"

namespace llvm {
class DebugLoc;
class DILocation;
}  // namespace llvm

namespace holdfast::jit {

struct SourceLine {
  std::string part;  // empty: none, the line is one of the whole text
  unsigned line;
};

SourceLine source_line(const msl::KernelSource* source, unsigned line);

// The place in the user's text, outwards through what was inlined; null: not known. What the user
// has not written, such as the function that copies a struct, is at the struct's declaration, which
// says nothing.
const llvm::DILocation* place_of(const llvm::DebugLoc& location);

// What the user calls a variable: clang calls `shared` of kernel f "_ZZ1fE6shared", and what it has
// made two of "p.addr".
std::string variable_name(std::string_view name);

// Into an array of zeros, cut so that it ends with one.
template <size_t n>
void set_text(char (&to)[n], std::string_view from) {
  std::memcpy(to, from.data(), std::min(from.size(), n - 1));
}

}  // namespace holdfast::jit
