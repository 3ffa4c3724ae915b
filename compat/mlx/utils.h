#pragma once

// Programs rely on the standard headers that MLX's headers include.
#include <thread>

#include <holdfast/utils.h>

#include "mlx/core.h"
