// A kernel in PTX as bytes, for the images of the library.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "devices/cuda/ptx_kernel.h"

namespace holdfast::cuda {

std::string to_bytes(const PtxKernel& kernel);

// Nothing when anything about the bytes is not as `to_bytes` writes it.
std::optional<PtxKernel> from_bytes(std::string_view bytes);

}  // namespace holdfast::cuda
