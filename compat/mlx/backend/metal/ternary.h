#pragma once

#include "mlx/backend/common/ternary.h"
#include "mlx/backend/metal/device.h"
