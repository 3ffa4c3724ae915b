#pragma once

#include <holdfast/random.h>

#include "mlx/core.h"
#include "mlx/utils.h"
