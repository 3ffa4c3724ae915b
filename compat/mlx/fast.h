#pragma once

#include <holdfast/fast.h>

#include "mlx/core.h"
#include "mlx/utils.h"
