#pragma once

#include "mlx/distributed/ops.h"
#include "mlx/primitives.h"
