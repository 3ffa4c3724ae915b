// A compiled kernel as bytes, for the disk cache.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "devices/cpu/jit/compiler.h"

namespace holdfast::jit {

std::string to_bytes(const CompiledKernel& kernel);

// Nothing when anything about the bytes is not as `to_bytes` writes it: every length is checked
// against what is left.
std::optional<CompiledKernel> from_bytes(std::string_view bytes);

}  // namespace holdfast::jit
