// A compiled kernel as the bytes of a file in the disk cache:
//
//   magic, format version          which program wrote it
//   size and checksum of the rest  whole, not half-written, not damaged
//   key                            all of it, so that a file is never taken for another's
//   kernel                         every length checked against what is left
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "devices/cpu/jit/compiler.h"

namespace holdfast::exec {

std::string serialise(std::string_view key, const jit::CompiledKernel& kernel);

// Nothing when anything about the bytes is not as `serialise` writes it, or the key is another one.
std::optional<jit::CompiledKernel> deserialise(std::string_view bytes, std::string_view key);

}  // namespace holdfast::exec
