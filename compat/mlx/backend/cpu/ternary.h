#pragma once

#include "mlx/backend/common/ternary.h"
#include "mlx/backend/cpu/encoder.h"
