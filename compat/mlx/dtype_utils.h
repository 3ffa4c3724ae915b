#pragma once

#include <holdfast/dtype.h>

#include "mlx/core.h"
#include "mlx/utils.h"
