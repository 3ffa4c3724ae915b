#pragma once

#include "mlx/backend/common/unary.h"
#include "mlx/backend/metal/device.h"
