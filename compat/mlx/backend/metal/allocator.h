#pragma once

#include "mlx/allocator.h"
#include "mlx/backend/metal/device.h"
