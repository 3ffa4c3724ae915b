#pragma once

#include "mlx/backend/common/binary.h"
#include "mlx/backend/metal/device.h"
