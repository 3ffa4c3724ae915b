// Lines of a kernel's text as users count them: from the start of the part that they wrote.
#pragma once

#include <string>

#include "msl/kernel_source.h"

namespace holdfast::jit {

struct SourceLine {
  std::string part;  // empty: none, the line is one of the whole text
  unsigned line;
};

SourceLine source_line(const msl::KernelSource* source, unsigned line);

}  // namespace holdfast::jit
