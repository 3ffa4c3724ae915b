#pragma once

#include <holdfast/linalg.h>

#include "mlx/core.h"
#include "mlx/utils.h"
