#pragma once

#include "mlx/fast.h"
#include "mlx/primitives.h"
