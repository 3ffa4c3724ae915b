#pragma once

#include <holdfast/fft.h>

#include "mlx/core.h"
#include "mlx/utils.h"
