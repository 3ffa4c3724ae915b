#pragma once

#include <unordered_set>

#include <holdfast/compile_impl.h>
#include <holdfast/primitives.h>

#include "mlx/core.h"
#include "mlx/io/load.h"

namespace mlx::core {

// Ops take the name of a mode as text.
enum class QuantizationMode { Affine, Mxfp4, Mxfp8, Nvfp4 };

}  // namespace mlx::core
