// What normalisations there are.
#pragma once

#include <cstdint>

namespace holdfast::kernels {

// Numbers that files of functions hold: append only.
enum class NormKind : uint8_t { rms = 0, layer = 1 };

}  // namespace holdfast::kernels
