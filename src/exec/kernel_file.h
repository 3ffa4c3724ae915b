// A compiled kernel as a file in the disk cache:
//
//   magic, format version          which program wrote it
//   size and checksum of the rest  whole, not half-written, not damaged
//   key                            all of it, so that a file is never taken for another's
//   kernel                         the target's own bytes (Binary::bytes)
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace holdfast::exec {

std::string to_kernel_file(std::string_view key, std::string_view kernel);

// The kernel. Nothing when anything about the file is not as `to_kernel_file` writes it, or the key
// is another one.
std::optional<std::string_view> from_kernel_file(std::string_view file, std::string_view key);

}  // namespace holdfast::exec
