// Remarks of the widening compiler as a kernel's author reads them.
#pragma once

#include <string>
#include <vector>

#include "devices/cpu/jit/compiler/widen/widen.h"
#include "msl/kernel_source.h"

namespace holdfast::jit {

// By line of the source: "body:3  the line", then what is to be said about it, each thing once.
// What belongs to no line stands at the end. `source` may be null: then there are no lines.
std::string in_source_order(const std::vector<Remark>& remarks, const msl::KernelSource* source);

}  // namespace holdfast::jit
