#pragma once

#include <holdfast/fft.h>

#include "mlx/core.h"
