#pragma once

#include <holdfast/distributed.h>

#include "mlx/core.h"
#include "mlx/utils.h"
